"""Ranks and workloads of execution traces. In: files as rows. Out: rank by source; files by workload.

Writers rarely state a rank. Idea: it is the only number in which the names of the files of one kind and folder differ;
where that tells nothing, of those files whose names differ in numbers only. Two files of one kind and one rank are not
of one workload. Not handled: a workload in one folder whose files have names of their own, without a number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import polars as pl

_NUMBER = re.compile(r"\d+")
LONGEST_RANK = 6
"""Digits of a number in a name that may be a rank."""


@dataclass(frozen=True, slots=True)
class TraceGroup:
    """Execution traces that can be of one job: what tells them from others, and their source_id."""

    label: str
    files: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Folder:
    """Files of one folder, or of one name in it; ranks by kind and source_id, None where nothing tells one."""

    label: str
    ranks: Mapping[str, Mapping[int, int | None]]

    def fits(self, others: Sequence["_Folder"]) -> bool:
        """Whether no rank of a kind is also among the others' files; an unknown one may be any."""
        for kind, own in self.ranks.items():
            theirs = {rank for other in others for rank in other.ranks.get(kind, {}).values()}
            ours = set(own.values())
            if ours & theirs - {None} or (theirs and (None in ours) != (None in theirs)):
                return False
        return True

    def files(self) -> list[int]:
        return [source_id for ranks in self.ranks.values() for source_id in ranks]


def ranks_by_number(files: pl.DataFrame) -> dict[int, int]:
    """Rank by source, as far as the names tell it.

    Args:
        files: source_id, kind, path; one row a file.
    """
    found: dict[int, int] = {}
    for _, group in _with_names(files).group_by("kind", "folder", maintain_order=True):
        found |= numbered(group) or {
            source_id: rank
            for _, own in group.group_by("name", maintain_order=True)
            for source_id, rank in numbered(own).items()
        }
    return found


def workloads(files: pl.DataFrame) -> list[TraceGroup]:
    """Files by workload, the one of most files first.

    Args:
        files: source_id, kind, path, rank (as stated, or NULL); one row a file.
    """
    jobs: list[list[_Folder]] = []
    for group in sorted(_groups(files), key=lambda group: -len(group.files())):
        job = next((job for job in jobs if group.fits(job)), None)
        if job is None:
            jobs.append([group])
        else:
            job.append(group)
    labels = [job[0].label for job in jobs]
    return [
        TraceGroup(
            label if labels.count(label) == 1 else f"{label} {labels[: place + 1].count(label)}",
            sorted(one for group in job for one in group.files()),
        )
        for place, (label, job) in enumerate(zip(labels, jobs, strict=True))
    ]


def _groups(files: pl.DataFrame) -> Iterator[_Folder]:
    """Files by folder; those of a folder by name where ranks repeat among its files of one kind."""
    known = ranks_by_number(files)
    stated = dict(files.select("source_id", "rank").rows())
    for (folder,), group in _with_names(files).group_by("folder", maintain_order=True):
        whole = _group(PurePosixPath(str(folder)).name, group, known, stated)
        repeats = any(len(set(own.values()) - {None}) < len(own) for own in whole.ranks.values())
        if not repeats or group["name"].n_unique() == 1 or not known.keys() & set(group["source_id"]):
            yield whole
        else:
            for (name,), own in group.group_by("name", maintain_order=True):
                yield _group(str(name), own, known, stated)


def _group(label: str, files: pl.DataFrame, known: Mapping[int, int], stated: Mapping[int, int | None]) -> _Folder:
    ranks: dict[str, dict[int, int | None]] = {}
    for kind, source_id in files.select("kind", "source_id").rows():
        rank = stated[source_id]
        ranks.setdefault(kind, {})[source_id] = known.get(source_id) if rank is None else rank
    return _Folder(label, ranks)


def _with_names(files: pl.DataFrame) -> pl.DataFrame:
    """Each file's folder, and its name with a `#` for each number."""
    paths = [PurePosixPath(path) for path in files["path"]]
    return files.with_columns(
        folder=pl.Series([str(path.parent) for path in paths], dtype=pl.String),
        name=pl.Series([_NUMBER.sub("#", path.name) for path in paths], dtype=pl.String),
    )


def numbered(files: pl.DataFrame) -> dict[int, int]:
    """By source, the number of its name that differs between all of them; empty where none does, or several disagree.

    Files of one name, each in a folder of its own, are told by the folders' names.

    A name may hold it twice, counted from 0: `1764000000-TP-3-EP-3.trace.json.gz`, as SGLang writes where each rank
    has its own experts.

    Args:
        files: columns source_id and path.
    """
    paths = [PurePosixPath(path) for path in files["path"]]
    is_one_name = len(paths) > 1 and len({path.name for path in paths}) == 1
    numbers = [_NUMBER.findall(path.parent.name if is_one_name else path.name) for path in paths]
    if len({len(own) for own in numbers}) != 1:
        return {}
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) == files.height > 1]
    if any(len(number) > LONGEST_RANK for column in varying for number in column):
        return {}
    columns = {tuple(map(int, column)) for column in varying}
    if len(columns) != 1 or (len(varying) > 1 and all(0 not in column for column in columns)):
        return {}
    return dict(zip(files["source_id"], *columns, strict=True))
