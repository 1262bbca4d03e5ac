"""Which calls of different ranks are one collective. Reads align.call, membership and communicator; fills align.match.

The calls of a communicator are one sequence on each of its ranks, and are matched as such (`collective_matching`).
Calls that send and receive are matched by their messages (align.message): the two calls that meet in one are a
collective of two ranks. Calls without a partner are counted here and listed in align.unmatched.
"""

from collections import defaultdict
from types import MappingProxyType

import numpy as np
import polars as pl

from traceforge.align.collective_matching import ABSENT, match
from traceforge.align.collective_names import collective_kinds
from traceforge.align.sequence_alignment import CallSequence
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_CALLS = """
SELECT m.run_id, m.communicator_id, c.rank, c.call_id, COALESCE(c.op, '') AS op, c.size_bytes,
  COALESCE(c.stated_sequence, -1) AS stated_sequence, COALESCE(s.iteration, -1) AS iteration, c.raw_arrival_ns,
  c.raw_end_ns, r.raw_intact_ns IS NOT NULL AS is_truncated
FROM align.membership AS m
JOIN align.call AS c USING (run_id, rank, call_id)
JOIN align.rank AS r USING (run_id, rank)
ANTI JOIN align.endpoint AS e ON e.run_id = c.run_id AND e.source_id = c.source_id AND e.carrier_event_id = c.event_id
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
ORDER BY m.run_id, m.communicator_id, c.rank, c.call_id
"""

_MEETINGS = """
WITH met AS (
  SELECT run_id, meeting_id, communicator_id, sequence, UNNEST([
    {rank: source_rank, call_id: source_call_id, sends: true},
    {rank: destination_rank, call_id: destination_call_id, sends: false}
  ], recursive := true)
  FROM align.message
)
SELECT run_id, meeting_id AS collective_id, MIN(communicator_id) AS communicator_id, MIN(sequence) AS sequence, rank,
  call_id, 'pair' AS method,
  CASE WHEN BOOL_AND(sends) THEN 'send' WHEN BOOL_OR(sends) THEN 'both' ELSE 'recv' END AS direction,
  false AS is_rooted
FROM met
GROUP BY run_id, meeting_id, rank, call_id
ORDER BY run_id, meeting_id, rank
"""

_MESSAGES_ALONE = """
SELECT run_id, reason, COUNT(*) AS ends, MIN(rank) AS rank FROM align.unmatched_endpoint GROUP BY ALL ORDER BY ALL
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "collective_id": pl.Int64,
    "communicator_id": pl.Int64,
    "sequence": pl.Int64,
    "rank": pl.Int32,
    "call_id": pl.Int64,
    "method": pl.String,
    "direction": pl.String,
    "is_rooted": pl.Boolean,
}

# Only these carry the same number of bytes on every rank by definition.
_EQUAL_SIZES = ("all_reduce", "reduce_scatter", "broadcast", "reduce")


def rows(store: Store) -> pl.DataFrame:
    """One row a (collective, rank) that was matched; adds an issue for what was not."""
    calls, meetings = _with_kinds(store.query(_CALLS)), store.query(_MEETINGS)
    frames = [meetings]
    next_id = defaultdict[int, int](int, meetings.group_by("run_id").agg(pl.col("collective_id").max() + 1).iter_rows())
    for key, own in calls.group_by("run_id", "communicator_id", maintain_order=True):
        run_id, communicator_id = (int(str(part)) for part in key)
        frame = _matched(own, run_id, communicator_id, next_id[run_id])
        next_id[run_id] += frame["collective_id"].n_unique()
        frames.append(frame)
        _note_unmatched(store, run_id, communicator_id, own.height - frame.height)
    for run_id, reason, ends, rank in store.query(_MESSAGES_ALONE).iter_rows():
        _note_messages_alone(store, run_id, reason, ends, rank)
    known = [pl.col(name).cast(kind) for name, kind in _SCHEMA.items()]
    return pl.concat([frame.select(known) for frame in frames])


def _with_kinds(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with `kind`, a number for operation and, where it must agree, size; and `is_rooted`."""
    size = pl.when(pl.col("op").is_in(_EQUAL_SIZES)).then("size_bytes")
    rooted = [kind.name for kind in collective_kinds() if kind.rooted]
    return calls.with_columns(
        kind=pl.struct("op", size).rank("dense").cast(pl.Int64), is_rooted=pl.col("op").is_in(rooted)
    )


def _matched(calls: pl.DataFrame, run_id: int, communicator_id: int, first_id: int) -> pl.DataFrame:
    """Rows of align.match of one communicator."""
    by_rank = dict(calls.group_by("rank", maintain_order=True))
    ranks, frames = [int(str(rank)) for (rank,) in by_rank], list(by_rank.values())
    found = match([_calls(frame) for frame in frames], truncated=[frame["is_truncated"][0] for frame in frames])
    count = len(found.sequence)
    order = np.argsort(ranks)
    place = found.place[:, order]
    call_id = np.stack([frames[n]["call_id"].to_numpy()[found.place[:, n]] for n in order], axis=1)
    return pl.DataFrame(
        {
            "run_id": np.full(count * len(ranks), run_id),
            "collective_id": np.repeat(first_id + np.arange(count), len(ranks)),
            "communicator_id": np.full(count * len(ranks), communicator_id),
            "sequence": np.repeat(found.sequence, len(ranks)),
            "rank": np.tile(np.sort(ranks), count),
            "call_id": call_id.ravel(),
            "method": pl.Series([found.method]).new_from_index(0, count * len(ranks)),
            "direction": pl.Series([None], dtype=pl.String).new_from_index(0, count * len(ranks)),
            "is_rooted": np.repeat(frames[0]["is_rooted"].to_numpy()[found.place[:, 0]], len(ranks)),
        }
    ).filter(pl.Series(place.ravel() != ABSENT))


def _calls(frame: pl.DataFrame) -> CallSequence:
    names = ("kind", "stated_sequence", "iteration", "raw_arrival_ns", "raw_end_ns", "is_rooted")
    return CallSequence(*(frame[name].to_numpy().astype(np.int64) for name in names))


def _note_unmatched(store: Store, run_id: int, communicator_id: int, missing: int) -> None:
    if missing:
        detail = f"collective calls of communicator {communicator_id} have no certain partner on other ranks"
        issue = Issue("collective_unmatched", "warning", missing, f"communicator {communicator_id}", detail)
        store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))


_WHY_ALONE = MappingProxyType(
    {
        "not_launched": "their kernels were launched outside of the window or are not there",
        "cut_off": "their files end in the middle",
        "communicator_unknown": "nothing says which process group they belong to",
        "peer_unknown": "nothing names the rank at the other end (record shapes)",
        "peer_unrecorded": "the rank at the other end has no file",
        "peer_cut_off": "the file of the rank at the other end is truncated",
        "no_partner": "the other end has no call that fits",
    }
)


def _note_messages_alone(store: Store, run_id: int, reason: str, ends: int, rank: int) -> None:
    detail = f"sends and receives have no other end: {_WHY_ALONE[reason]}"
    issue = Issue("message_unmatched", "warning", ends, f"rank {rank}, {reason}", detail)
    store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))
