"""Which files are of which job, as far as they state it. In: files as rows. Out: files by job.

Idea: two files that state different numbers of a scheduler's job, or different ports at which processes meet, are of
two jobs, whatever their names, times and devices. So are files between which no communicator, nor a chain of them,
goes, where all state theirs by a number that NCCL gave to one communicator alone.
Not handled: jobs of one time and place whose files state neither; they look like ranks of one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

NUMBERED_COMMUNICATOR = "NCCL communicator "
"""How names begin that hold the number that NCCL gave to one communicator; other names come again in other jobs."""


@dataclass(slots=True)
class StatedJob:
    """Files of one job, and what they state of it.

    Attributes:
        stated: such as `{"SLURM_JOB_ID": "4711"}`; empty where nothing is stated.
        files: their source_id.
    """

    stated: dict[str, str] = field(default_factory=dict)
    files: list[int] = field(default_factory=list)

    def label(self, others: Sequence["StatedJob"]) -> str:
        """What tells the job from others, in words; empty where nothing that is stated does."""
        for name, value in self.stated.items():
            if any(other.stated.get(name, value) != value for other in others):
                return f"{name} {value}"
        return ""


def jobs_of(files: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Files by job, each with what to call it; one group with an empty name where nothing tells jobs apart.

    Args:
        files: source_id; job, an object of JSON as text; communicators, a list of names; both NULL where not stated.
    """
    stated = _by_statement(files)
    found = []
    for job in stated:
        own = files.filter(pl.col("source_id").is_in(job.files))
        parts = _by_communicator(own)
        label = job.label(stated) if len(stated) > 1 else ""
        for place, part in enumerate(parts, start=1):
            number = f"job {place}" if len(parts) > 1 else ""
            found.append((", ".join(filter(None, [label, number])), own.filter(pl.col("source_id").is_in(part))))
    return found


def _by_statement(files: pl.DataFrame) -> list[StatedJob]:
    """Files that state nothing are with all others where these are of one job, else by themselves."""
    jobs: list[StatedJob] = []
    silent = StatedJob()
    for source_id, text in files.select("source_id", "job").rows():
        said = _said(text)
        job = next((job for job in jobs if not _contradict(job.stated, said)), None) if said else silent
        if job is None:
            jobs.append(job := StatedJob())
        job.stated = {**said, **job.stated}
        job.files.append(source_id)
    if len(jobs) == 1:
        jobs[0].files += silent.files
    elif silent.files or not jobs:
        jobs.append(silent)
    return jobs


def _said(text: str | None) -> dict[str, str]:
    said: Any = json.loads(text) if text else {}
    return {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else {}


def _contradict(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return any(other.get(name, value) != value for name, value in one.items())


def _by_communicator(files: pl.DataFrame) -> list[list[int]]:
    """Files that communicators link; all of them where one states no communicator."""
    every = files["source_id"].to_list()
    if files["communicators"].list.len().fill_null(0).min() == 0:
        return [every]
    groups: list[tuple[set[str], list[int]]] = []
    for source_id, names in files.select("source_id", "communicators").rows():
        linked = [group for group in groups if not group[0].isdisjoint(names)]
        groups = [group for group in groups if group[0].isdisjoint(names)]
        groups.append(
            (
                {*names}.union(*(group[0] for group in linked)),
                [one for group in linked for one in group[1]] + [source_id],
            )
        )
    return sorted(sorted(own) for _, own in groups)
