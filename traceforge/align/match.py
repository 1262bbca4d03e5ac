"""Which calls are one collective. Reads align.call, membership and communicator; fills align.match.

Within a communicator all ranks issue the same collectives in the same order. The number the trace states decides
where there is one; else equal sequences of (operation, size) are matched by place; else equal sequences within an
iteration. What fits neither is counted, not guessed; nor is a match kept under which a rank would end a collective
before another starts it. Not handled yet: sequences that differ in a few places.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.ingest import issue_rows

_CALLS = """
SELECT m.run_id, k.communicator_id, c.rank, c.call_id, COALESCE(c.op, '') AS op, c.size_bytes, c.stated_sequence,
  s.iteration, c.raw_arrival_ns, c.raw_end_ns
FROM align.membership AS m
JOIN align.call AS c USING (run_id, rank, call_id)
JOIN align.communicator AS k
  ON k.run_id = m.run_id AND k.name = m.group_name AND k.ranks = m.group_ranks
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
ORDER BY m.run_id, k.communicator_id, c.rank, c.call_id
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "collective_id": pl.Int64,
    "communicator_id": pl.Int64,
    "sequence": pl.Int64,
    "rank": pl.Int32,
    "call_id": pl.Int64,
    "method": pl.String,
}

# Only these carry the same number of bytes on every rank by definition.
_EQUAL_SIZES = {"all_reduce", "reduce_scatter", "broadcast", "reduce"}
_PLAUSIBLE_SHARE = 0.8
_TOLERANCE_NS = 100_000


@dataclass(frozen=True, slots=True)
class Call:
    """One collective call of one rank; times in ns on the rank's own clock."""

    call_id: int
    token: tuple[str, int | None]
    stated_sequence: int | None
    iteration: int | None
    arrival_ns: int
    end_ns: int


Collective = dict[int, Call]


@dataclass(frozen=True, slots=True)
class Matching:
    """Collectives of one communicator: sequence number and the call of each rank, and how they were found."""

    method: str
    collectives: list[tuple[int, Collective]]


def rows(store: Store) -> pl.DataFrame:
    """One row a (collective, rank) that was matched."""
    result: list[tuple[object, ...]] = []
    next_id: dict[int, int] = defaultdict(int)
    calls = store.query(_CALLS)
    for (run_key, communicator_id), frame in calls.group_by("run_id", "communicator_id", maintain_order=True):
        run_id = int(str(run_key))
        by_rank = _by_rank(frame)
        matching = match(by_rank)
        for sequence, collective in matching.collectives:
            for rank, call in collective.items():
                result.append((run_id, next_id[run_id], communicator_id, sequence, rank, call.call_id, matching.method))
            next_id[run_id] += 1
        _note_unmatched(store, run_id, int(str(communicator_id)), by_rank, matching)
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _by_rank(frame: pl.DataFrame) -> dict[int, list[Call]]:
    result: dict[int, list[Call]] = defaultdict(list)
    for _, _, rank, call_id, op, size, stated, iteration, arrival_ns, end_ns in frame.iter_rows():
        token = (op, size if op in _EQUAL_SIZES else None)
        result[rank].append(Call(call_id, token, stated, iteration, arrival_ns, end_ns))
    return dict(result)


def match(by_rank: Mapping[int, Sequence[Call]]) -> Matching:
    """Collectives of one communicator from the calls of each rank in order of issue."""
    if len(by_rank) < 2:
        return Matching("order", [(n, {rank: call}) for rank, calls in by_rank.items() for n, call in enumerate(calls)])
    for method in (_by_stated_sequence, _by_order, _by_order_in_iteration):
        matching = method(by_rank)
        if matching.collectives and _is_plausible(matching, sorted(by_rank)):
            return matching
    return Matching("order", [])


def _by_stated_sequence(by_rank: Mapping[int, Sequence[Call]]) -> Matching:
    found: dict[int, Collective] = defaultdict(dict)
    for rank, calls in by_rank.items():
        stated = [call.stated_sequence for call in calls]
        if None in stated or len(set(stated)) != len(stated):
            return Matching("sequence_number", [])
        for call in calls:
            found[call.stated_sequence or 0][rank] = call
    return Matching("sequence_number", [(n, found[n]) for n in sorted(found) if len(found[n]) == len(by_rank)])


def _by_order(by_rank: Mapping[int, Sequence[Call]]) -> Matching:
    return Matching("order", list(enumerate(_zip_if_equal(by_rank))))


def _by_order_in_iteration(by_rank: Mapping[int, Sequence[Call]]) -> Matching:
    collectives: list[Collective] = []
    per_rank = {rank: _by_iteration(calls) for rank, calls in by_rank.items()}
    common = set.intersection(*(set(groups) for groups in per_rank.values()))
    for iteration in sorted(common):
        collectives += _zip_if_equal({rank: groups[iteration] for rank, groups in per_rank.items()})
    return Matching("order_in_iteration", list(enumerate(collectives)))


def _by_iteration(calls: Sequence[Call]) -> dict[int, list[Call]]:
    groups: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        if call.iteration is not None:
            groups[call.iteration].append(call)
    return groups


def _zip_if_equal(by_rank: Mapping[int, Sequence[Call]]) -> Iterator[Collective]:
    if len({tuple(call.token for call in calls) for calls in by_rank.values()}) == 1:
        for calls in zip(*by_rank.values(), strict=True):
            yield dict(zip(by_rank, calls, strict=True))


def _is_plausible(matching: Matching, ranks: Sequence[int]) -> bool:
    """Whether, with a constant clock offset a rank, nobody ends before another has started."""
    reference = ranks[0]
    ends, arrivals = (
        np.array([[getattr(calls[rank], field) for rank in ranks] for _, calls in matching.collectives])
        for field in ("end_ns", "arrival_ns")
    )
    offsets = np.median(ends - ends[:, [ranks.index(reference)]], axis=0).astype(np.int64)
    last_arrival = (arrivals - offsets).max(axis=1)
    first_end = (ends - offsets).min(axis=1)
    return bool(np.mean(last_arrival <= first_end + _TOLERANCE_NS) >= _PLAUSIBLE_SHARE)


def _note_unmatched(
    store: Store, run_id: int, communicator_id: int, by_rank: Mapping[int, Sequence[Call]], matching: Matching
) -> None:
    total = sum(len(calls) for calls in by_rank.values())
    missing = total - sum(len(calls) for _, calls in matching.collectives)
    if missing:
        detail = f"collective calls of communicator {communicator_id} have no certain partner on other ranks"
        issue = Issue("collective_unmatched", "warning", missing, f"communicator {communicator_id}", detail)
        store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))
