"""Which calls of different ranks are one collective. Reads align.call, membership and communicator; fills align.match.

The calls of a communicator are one sequence on each of its ranks, and are matched as such (`collective_matching`).
Sends and receives are matched by directed pair of ranks, each pair a sequence of its own, where the trace names the
peer or the communicator has two ranks. CallSequence without a partner are counted here and listed in align.unmatched.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.collective_matching import ABSENT, Matching, match
from traceforge.align.sequence_alignment import CallSequence
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_CALLS = """
SELECT m.run_id, m.communicator_id, c.rank, c.call_id, COALESCE(c.op, '') AS op, c.size_bytes,
  COALESCE(c.stated_sequence, -1) AS stated_sequence, COALESCE(s.iteration, -1) AS iteration, c.raw_arrival_ns,
  c.raw_end_ns, r.raw_intact_ns IS NOT NULL AS is_truncated,
  CASE
    WHEN c.op NOT IN ('send', 'recv') THEN NULL
    WHEN c.peer IS NOT NULL THEN c.peer
    WHEN k.size = 2 THEN k.ranks[CASE WHEN k.ranks[1] = c.rank THEN 2 ELSE 1 END]
  END AS peer
FROM align.membership AS m
JOIN align.call AS c USING (run_id, rank, call_id)
JOIN align.rank AS r USING (run_id, rank)
JOIN align.communicator AS k USING (run_id, communicator_id)
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
ORDER BY m.run_id, m.communicator_id, c.rank, c.call_id
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
_EQUAL_SIZES = ("all_reduce", "reduce_scatter", "broadcast", "reduce", "send", "recv")
_POINT_TO_POINT = ("send", "recv")


@dataclass(frozen=True, slots=True)
class _Sequence:
    """CallSequence that are matched among themselves: of a communicator, or of a directed pair of its ranks."""

    run_id: int
    communicator_id: int
    calls: pl.DataFrame
    is_pair: bool

    @property
    def ranks(self) -> list[int]:
        """Ranks with calls, the sender first."""
        return self.calls["rank"].unique(maintain_order=True).to_list()


def rows(store: Store) -> pl.DataFrame:
    """One row a (collective, rank) that was matched; adds an issue for what was not."""
    calls = _with_kinds(store.query(_CALLS))
    frames: list[pl.DataFrame] = []
    next_id: dict[int, int] = defaultdict(int)
    matched: dict[tuple[int, int], int] = defaultdict(int)
    for sequence in _sequences(calls):
        matching, frame = _matched(sequence, next_id[sequence.run_id])
        next_id[sequence.run_id] += len(matching.sequence)
        matched[sequence.run_id, sequence.communicator_id] += frame.height
        frames.append(frame)
    for (run_id, communicator_id), own in calls.group_by("run_id", "communicator_id", maintain_order=True):
        key = (int(str(run_id)), int(str(communicator_id)))
        _note_unmatched(store, *key, own.height - matched[key])
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _with_kinds(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with `kind`: a number for operation and, where it must agree, size; a receive is as its send."""
    op = pl.when(pl.col("op").is_in(_POINT_TO_POINT)).then(pl.lit("send")).otherwise("op")
    size = pl.when(pl.col("op").is_in(_EQUAL_SIZES)).then("size_bytes")
    return calls.with_columns(kind=pl.struct(op, size).rank("dense").cast(pl.Int64))


def _sequences(calls: pl.DataFrame) -> Iterator[_Sequence]:
    is_pair = pl.col("op").is_in(_POINT_TO_POINT)
    for (run_id, communicator_id), own in calls.group_by("run_id", "communicator_id", maintain_order=True):
        key = (int(str(run_id)), int(str(communicator_id)))
        if not (together := own.filter(~is_pair)).is_empty():
            yield _Sequence(*key, together, is_pair=False)
        sent = pl.col("op") == "send"
        paired = own.filter(is_pair & pl.col("peer").is_not_null()).with_columns(
            sender=pl.when(sent).then("rank").otherwise("peer"), receiver=pl.when(sent).then("peer").otherwise("rank")
        )
        for _, channel in paired.group_by("sender", "receiver", maintain_order=True):
            sender_first = channel.sort(~sent, maintain_order=True)
            if sender_first["op"].n_unique() == 2:
                yield _Sequence(*key, sender_first, is_pair=True)


def _matched(sequence: _Sequence, first_id: int) -> tuple[Matching, pl.DataFrame]:
    """How a sequence was matched, and its rows of align.match."""
    ranks = sequence.ranks
    by_rank = dict(sequence.calls.group_by("rank", maintain_order=True))
    frames = [by_rank[(rank,)] for rank in ranks]
    # The sequence numbers that PyTorch gives to sends and receives are each rank's own.
    found = match(
        [_calls(frame, sequence.is_pair) for frame in frames],
        truncated=[frame["is_truncated"][0] for frame in frames],
        from_first_to_second=sequence.is_pair,
    )
    count = len(found.sequence)
    order = np.argsort(ranks)
    place = found.place[:, order]
    call_id = np.stack([frames[n]["call_id"].to_numpy()[found.place[:, n]] for n in order], axis=1)
    method = "pair" if sequence.is_pair and found.method == "order" else found.method
    return found, pl.DataFrame(
        {
            "run_id": np.full(count * len(ranks), sequence.run_id),
            "collective_id": np.repeat(first_id + np.arange(count), len(ranks)),
            "communicator_id": np.full(count * len(ranks), sequence.communicator_id),
            "sequence": np.repeat(found.sequence, len(ranks)),
            "rank": np.tile(np.sort(ranks), count),
            "call_id": call_id.ravel(),
            "method": pl.Series([method]).new_from_index(0, count * len(ranks)),
        }
    ).filter(pl.Series(place.ravel() != ABSENT))


def _calls(frame: pl.DataFrame, is_pair: bool) -> CallSequence:
    names = ("kind", "stated_sequence", "iteration", "raw_arrival_ns", "raw_end_ns")
    kind, stated, *others = (frame[name].to_numpy().astype(np.int64) for name in names)
    return CallSequence(kind, np.full(len(kind), ABSENT) if is_pair else stated, *others)


def _note_unmatched(store: Store, run_id: int, communicator_id: int, missing: int) -> None:
    if missing:
        detail = f"collective calls of communicator {communicator_id} have no certain partner on other ranks"
        issue = Issue("collective_unmatched", "warning", missing, f"communicator {communicator_id}", detail)
        store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))
