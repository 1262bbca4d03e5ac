"""Files beside timelines: logs, execution traces, dumps. In: files of one folder and runs of its timelines.

Out: the run of each. Idea: a file is of the run that its folder's timelines are of; logs of hosts that no timeline
is of are of another job. Not handled: several jobs of the same hosts whose logs lie in one folder.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import polars as pl


def runs_of_companions(files: pl.DataFrame, runs: Sequence[Sequence[int]]) -> dict[int, int]:
    """Place of the run of each file without a timeline: that of the only run in its folder or the nearest above.

    Files of folders whose timelines are of several runs, or that have none, are of the first run.

    Args:
        files: columns source_id, path and is_timeline.
        runs: the timelines' source_id, by run.
    """
    place_of = {source_id: place for place, run in enumerate(runs) for source_id in run}
    places: dict[PurePosixPath, set[int]] = {}
    for source_id, path in files.filter("is_timeline").select("source_id", "path").rows():
        for folder in PurePosixPath(path).parents:
            places.setdefault(folder, set()).add(place_of.get(source_id, 0))
    others = files.filter(~pl.col("is_timeline")).select("source_id", "path").rows()
    return {source_id: _only(next(_found(PurePosixPath(path), places), set())) for source_id, path in others}


def _found(path: PurePosixPath, places: dict[PurePosixPath, set[int]]) -> Iterator[set[int]]:
    return (places[folder] for folder in path.parents if folder in places)


def _only(places: set[int]) -> int:
    return next(iter(places)) if len(places) == 1 else 0


def logs_of_other_hosts(files: pl.DataFrame) -> list[int]:
    """Sources of logs of NCCL none of whose hosts a timeline is of; none where a timeline's host is not known.

    Args:
        files: columns source_id, kind, host and is_timeline.
    """
    hosts = files.select("is_timeline", host=pl.col("host").str.to_lowercase().str.split(".").list.first())
    recorded = hosts.filter("is_timeline")["host"]
    logs = files.with_columns(hosts["host"]).filter((pl.col("kind") == "nccl_log") & pl.col("host").is_not_null())
    if recorded.is_empty() or recorded.has_nulls() or logs["host"].is_in(recorded.implode()).any():
        return []
    return logs["source_id"].to_list()
