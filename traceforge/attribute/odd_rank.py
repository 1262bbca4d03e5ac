"""Which file does not fit the others, where ranks cannot be compared. Reads align.* and meta.issue; says so.

Idea: one damaged or foreign file keeps a whole job from being judged; it holds no device work although the others do,
or other calls than most, maybe as its device has times that cannot be. Not handled: jobs in which no majority of the
ranks is alike; pipelines.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traceforge.attribute.findings.subjects import ranks_said
from traceforge.store.database import Store
from traceforge.units import plural

_UNCOMPARED = ("irregular", "unmatched", "mostly_unmatched", "no_communication")

_RANKS = """
SELECT r.rank, r.has_device, COUNT(c.rank) AS calls,
  r.source_id IN (SELECT source_id FROM meta.issue WHERE code = 'kineto_stray_time') AS is_stray
FROM align.rank AS r
LEFT JOIN align.call AS c USING (run_id, rank)
WHERE r.run_id = ?
GROUP BY r.rank, r.has_device, r.source_id
ORDER BY r.rank
"""

Row = Mapping[str, Any]


def of_odd_ranks(store: Store, state: Row, row: Row) -> dict[str, object]:
    """The explanation with the ranks whose files are unlike most; nothing where ranks were compared."""
    if state["state"] not in _UNCOMPARED:
        return {}
    ranks = store.records(_RANKS, [state["run_id"]])
    # Stages of a pipeline differ in their calls.
    sentence = _without_device(ranks) or ("" if state["has_stages"] else _with_other_calls(ranks))
    return {"explanation": f"{sentence} {row['explanation']}"} if sentence else {}


def _without_device(ranks: Sequence[Row]) -> str:
    odd, usual = _odd(ranks, lambda rank: bool(rank["has_device"]))
    if not odd or not usual:
        return ""
    return f"{_files(odd)} no work of a device, unlike those of the others: look there first."


def _with_other_calls(ranks: Sequence[Row]) -> str:
    odd, usual = _odd(ranks, lambda rank: int(rank["calls"]))
    if not odd:
        return ""
    calls = plural(odd[0]["calls"], "call") if len({one["calls"] for one in odd}) == 1 else "other numbers of calls"
    whose = " at possible times" if all(one["is_stray"] for one in odd) else ""
    return f"{_files(odd)} {calls} of communication{whose}, those of most others {usual}: look there first."


def _odd(ranks: Sequence[Row], kind: Callable[[Row], int]) -> tuple[list[Row], int]:
    """Ranks unlike most, and what most are; no ranks where those alike are no majority."""
    if not ranks:
        return [], 0
    usual, _ = Counter(map(kind, ranks)).most_common(1)[0]
    odd = [rank for rank in ranks if kind(rank) != usual]
    return (odd, usual) if len(odd) < len(ranks) - len(odd) else ([], usual)


def _files(odd: Sequence[Row]) -> str:
    ranks = [one["rank"] for one in odd]
    return f"The {'file' if len(odd) == 1 else 'files'} of {ranks_said(ranks)} {'holds' if len(odd) == 1 else 'hold'}"
