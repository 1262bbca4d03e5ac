"""Files of one stretch of time by job. In: files as rows. Out: files by job, and what tells each.

Files that state different sizes of their job are of different jobs. Others of one time that repeat a rank lie in
folders of their own, or are of hosts that have all ranks each; replicas of an inference engine, whose ranks begin anew
in each, are told by the data-parallel place in their names. Two processes of a host that are one rank at one time are
of two jobs: a launcher starts the processes of a job one after another, so their numbers tell which are of one. What is
left of a rank with several files is a copy, or was recorded by another tool.
Not handled: jobs of one folder that share several hosts, or whose processes were started by turns.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import polars as pl

from traceforge.align.named_axes import replica
from traceforge.units import plural


def jobs_of_one_time(files: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Files by job, each with what to call it, which may be empty.

    Args:
        files: columns path, host, rank, process and stated_ranks.
    """
    folder = pl.col("path").map_elements(lambda path: str(PurePosixPath(path).parent), return_dtype=pl.String)
    for (path,), own in files.with_columns(folder=folder).group_by("folder", maintain_order=True):
        for told, parts in _by_replica(own) or _by_launch(own) or _by_host(own):
            yield ", ".join(filter(None, [PurePosixPath(str(path)).name, told])), parts


def by_world_size(files: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Files by the size of the job that they state, each with what to call it; all of them where they state one.

    A file that states none, or a size that its calls deny, is of the only job that lacks its rank, else of the largest.

    Args:
        files: columns source_id, rank, job_size and stated_ranks.
    """
    sized = pl.when(pl.col("stated_ranks") == pl.col("job_size")).then(pl.col("job_size"))
    stated = files.select(sized, "rank").rows()
    ranks: dict[int, set[int]] = {}
    for size, rank in stated:
        if size is not None:
            ranks.setdefault(size, set()).add(rank)
    if len(ranks) < 2:
        return [("", files)]
    sizes = [_likely_size(rank, ranks) if size is None else size for size, rank in stated]
    by_size = files.with_columns(size=pl.Series(sizes)).group_by("size", maintain_order=True)
    return [(f"job of {plural(size, 'rank')}", own.drop("size")) for (size,), own in by_size]


def _likely_size(rank: int, ranks: Mapping[int, set[int]]) -> int:
    lacking = [size for size, own in ranks.items() if rank < size and rank not in own]
    return lacking[0] if len(lacking) == 1 else max(ranks)


def _by_replica(files: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Files by the replica that their names state, where each has a rank once; none where one does not."""
    replicas = [replica(PurePosixPath(path).name) for path in files["path"]]
    parts = files.with_columns(replica=pl.Series(replicas, dtype=pl.Int64)).partition_by("replica", maintain_order=True)
    if None in replicas or len(parts) < 2 or any(own["rank"].n_unique() < own.height for own in parts):
        return []
    return [(f"DP {own['replica'][0]}", own.drop("replica")) for own in parts]


def _by_launch(files: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Files of one host by the job that started their processes; none where each has not the same ranks, once each."""
    if files["host"].n_unique() > 1 or files["host"].has_nulls() or files["process"].has_nulls():
        return []
    jobs: list[dict[int, int]] = [{}]
    for process, rank in files.select("process", "rank").unique().sort("process", "rank").rows():
        if rank in jobs[-1]:
            jobs.append({})
        jobs[-1][rank] = process
    are_alike = len(jobs) > 1 and len(jobs[0]) > 1 and all(job.keys() == jobs[0].keys() for job in jobs)
    if not are_alike or files["process"].n_unique() < len(jobs) * len(jobs[0]):
        return []
    spans = [(min(job.values()), max(job.values())) for job in jobs]
    return [
        (f"processes {low} to {high}", files.filter(pl.col("process").is_between(low, high))) for low, high in spans
    ]


def _by_host(files: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Files by host, where each has the same ranks, more than one, once each: two jobs of one time, a host each.

    Files that all state a job of one rank are jobs of their own, but for a rank that two tools recorded.
    """
    is_alone = (files["stated_ranks"] == 1).fill_null(value=False).all()
    if is_alone and not files["process"].has_nulls() and files["process"].n_unique() == files.height > 1:
        return [(f"process {process}", own) for (process,), own in files.group_by("process", maintain_order=True)]
    hosts = files.partition_by("host", maintain_order=True)
    ranks = {tuple(own["rank"].sort()) for own in hosts}
    are_alike = len(hosts) > 1 and len(ranks) == 1 and not files["host"].has_nulls()
    if not are_alike or any(len(own) == 1 or len(set(own)) < len(own) for own in ranks):
        return [("", files)]
    return [(f"host {own['host'][0]}", own) for own in hosts]
