"""Logs of several attempts in one folder. In: communicators that logs tell of. Out: files of other attempts.

Idea: a job that is started again leaves the logs of each attempt (`nccl.%h.%p.log` names processes). Files that share a
communicator are of one attempt; two that share none and yet a GPU are of two. The one whose processes the timelines
name was traced; else the latest by its time stamps, or by the numbers of its processes.
Not handled: one file with the output of several attempts; logs before NCCL 2.18, which name no communicator.
"""

from collections.abc import Iterable

import polars as pl

ATTEMPTS = """
SELECT c.source_id, c.comm_hash, p.host || ' ' || c.pci_address AS gpu, p.pid, t.latest_ns
FROM raw.nccl_communicator AS c
JOIN raw.nccl_process AS p USING (source_id, process_id)
JOIN meta.source AS s USING (source_id)
LEFT JOIN (SELECT source_id, MAX(raw_time_ns) AS latest_ns FROM raw.nccl_record GROUP BY source_id) AS t
  USING (source_id)
WHERE LIST_CONTAINS(?, s.run_id) AND c.comm_hash IS NOT NULL AND c.pci_address IS NOT NULL
ORDER BY c.source_id, c.comm_hash
"""

PROCESSES = """
SELECT DISTINCT TRY_CAST(t.process AS BIGINT) AS pid
FROM raw.track AS t
JOIN meta.source AS s USING (source_id)
WHERE LIST_CONTAINS(?, s.run_id) AND TRY_CAST(t.process AS BIGINT) IS NOT NULL
"""


def other_attempts(members: pl.DataFrame, recorded: pl.Series) -> list[list[int]]:
    """Sources of each attempt but the one that was traced; empty where all logs can be of one.

    Args:
        members: columns source_id, comm_hash, gpu, pid and latest_ns.
        recorded: numbers of the processes that timelines name.
    """

    def precedence(part: pl.DataFrame) -> tuple[int, int, int]:
        named = part.filter(pl.col("pid").is_in(recorded.implode()))["pid"].n_unique()
        return named, max(part["latest_ns"].drop_nulls().to_list(), default=-1), max(part["pid"].to_list())

    found: list[list[int]] = []
    taken: set[str] = set()
    parts = [members.filter(pl.col("source_id").is_in(part)) for part in _joined(members)]
    for part in sorted(parts, key=precedence, reverse=True):
        gpus = set(part["gpu"])
        if gpus & taken:
            found.append(part["source_id"].unique().sort().to_list())
        else:
            taken |= gpus
    return found


def _joined(members: pl.DataFrame) -> Iterable[list[int]]:
    """Sources that share communicators, directly or through others."""
    above = {source: source for source in members["source_id"]}

    def root(source: int) -> int:
        while above[source] != source:
            above[source] = above[above[source]]
            source = above[source]
        return source

    for _, sources in members.group_by("comm_hash", maintain_order=True).agg(pl.col("source_id").unique()).rows():
        for source in sources:
            above[root(source)] = root(sources[0])
    parts: dict[int, list[int]] = {}
    for source in above:
        parts.setdefault(root(source), []).append(source)
    return parts.values()
