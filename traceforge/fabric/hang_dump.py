"""The dump used for each rank. Reads meta.source and raw.flight_recorder_*; fills fabric.hang_dump.

Idea: a dump counts only if its rank is known and is a member of every group that the dump describes; of several
attempts or jobs the one with the latest call is used, and of several dumps of one rank that one.
Not handled: names that give no rank, as of processes alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import polars as pl

from traceforge.align.trace_ranks import numbered
from traceforge.fabric.hang_attempt import RankDump, of_latest_attempt
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_DUMPS = """
WITH latest AS (
  SELECT source_id, MAX(raw_created_ns) AS latest_ns FROM raw.flight_recorder_entry GROUP BY source_id
)
SELECT s.run_id, s.rank, s.source_id, s.path, s.rank_origin = 'metadata' AS is_stated, l.latest_ns
FROM meta.source AS s
LEFT JOIN latest AS l USING (source_id)
-- A dump without calls still tells how far its rank got.
WHERE s.kind = 'flight_recorder' AND s.status IN ('used', 'empty')
ORDER BY s.run_id, s.rank, l.latest_ns DESC NULLS LAST, s.source_id
"""

# Sources that describe a group of which their rank is no member.
_OF_OTHERS = """
SELECT DISTINCT g.source_id
FROM raw.flight_recorder_group AS g
JOIN (SELECT UNNEST(CAST(? AS INTEGER[])) AS source_id, UNNEST(CAST(? AS INTEGER[])) AS rank) AS own USING (source_id)
WHERE NOT LIST_CONTAINS(fabric.stated_members(g.ranks), own.rank)
"""

_LEFT_OUT = {
    "hang_rank_unknown": "flight recorder dumps whose rank neither their groups nor their names state were left out; "
    "name them as PyTorch does, with the rank at the end",
    "hang_rank_is_no_member": "flight recorder dumps were left out whose file name ends with a rank that is no member "
    "of the groups inside; name them as PyTorch does, with the rank at the end",
    "hang_other_attempt": "flight recorder dumps of another attempt or job were left out: ranks repeat between "
    "folders, and the folders with the latest call are used",
    "hang_rank_repeated": "several flight recorder dumps are of one rank; the one with the latest call is used",
}


def rows(store: Store) -> pl.DataFrame:
    """One row a rank; adds an issue for every kind of dump that is left out."""
    kept: list[dict[str, int]] = []
    for (run_id,), dumps in store.query(_DUMPS).group_by("run_id", maintain_order=True):
        run = int(str(run_id))
        usable, reasons = _usable(store, dumps)
        attempt = of_latest_attempt(usable)
        reasons |= {dump.source_id: "hang_other_attempt" for dump in usable if dump.source_id not in attempt}
        own = _one_a_rank([dump for dump in usable if dump.source_id in attempt])
        reasons |= dict.fromkeys(attempt - set(own.values()), "hang_rank_repeated")
        kept += [{"run_id": run, "rank": rank, "source_id": source} for rank, source in own.items()]
        store.append("meta.issue", issue_rows(run, None, "fabric", list(_issues(dumps, reasons))))
    return pl.DataFrame(kept, infer_schema_length=None)


def _usable(store: Store, dumps: pl.DataFrame) -> tuple[list[RankDump], dict[int, str]]:
    """Dumps of one run whose rank is known, in their order, and why the others are not."""
    ranks = dict(dumps.select("source_id", "rank").rows())
    others = _of_others(store, ranks)
    if not dumps["is_stated"].any() and all(rank is None or source in others for source, rank in ranks.items()):
        # No name ends with the rank: the only number that differs between all names may be it, from 0 on or from 1.
        guessed = numbered(dumps)
        for first in (0, 1):
            counted = {source: number - first for source, number in guessed.items()}
            if counted and min(counted.values()) >= 0 and not _of_others(store, counted):
                ranks, others = counted, frozenset()
                break
    reasons = {source: "hang_rank_unknown" for source, rank in ranks.items() if rank is None}
    reasons |= dict.fromkeys(others, "hang_rank_is_no_member")
    usable = [
        RankDump(source, PurePosixPath(path), ranks[source], latest_ns)
        for source, path, latest_ns in dumps.select("source_id", "path", "latest_ns").rows()
        if source not in reasons
    ]
    return usable, reasons


def _of_others(store: Store, ranks: Mapping[int, int | None]) -> frozenset[int]:
    """Sources whose rank is no member of some group that they describe."""
    known = {source: rank for source, rank in ranks.items() if rank is not None}
    return frozenset(row["source_id"] for row in store.records(_OF_OTHERS, [list(known), list(known.values())]))


def _one_a_rank(dumps: Sequence[RankDump]) -> dict[int, int]:
    """Source by rank: the first of each."""
    found: dict[int, int] = {}
    for dump in dumps:
        found.setdefault(dump.rank, dump.source_id)
    return found


def _issues(dumps: pl.DataFrame, reasons: Mapping[int, str]) -> Iterator[Issue]:
    for code, detail in _LEFT_OUT.items():
        files = dumps.filter(pl.col("source_id").is_in([source for source, own in reasons.items() if own == code]))
        if files.height:
            yield Issue(code, "warning", files.height, files["path"][0], detail)
