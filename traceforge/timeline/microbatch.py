"""Micro-batches of pipelines. Reads compute calls, messages and roles; fills timeline.microbatch.

Idea: messages keep their order, so that the n-th forward turn of every stage is the same pass of the same micro-batch;
the number of messages says how many micro-batches and chunks there are. Of several chunks the order is that in which
groups of micro-batches go through one chunk after the other, and no pass begins before the one that it needs has ended.
Not handled: several tensors a micro-batch in messages of their own, unless annotations name the turns; traces that do
not show which work autograd launched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.store.database import Store
from traceforge.timeline.chunks import Passes, group_size_of, passes_of
from traceforge.timeline.pipeline_work import NONE, read_pipeline_work
from traceforge.timeline.turns import FORWARD, RankTurns, Turns, counted, turns_of

_STAGES = "SELECT rank, stage FROM timeline.role WHERE run_id = $1 AND stage IS NOT NULL ORDER BY rank"

_MARKS = """
SELECT rank, raw_issue_ns FROM align.endpoint WHERE run_id = $1 AND rank BETWEEN $2 AND $3 ORDER BY rank, raw_issue_ns
"""

_STEPS = """
SELECT rank, iteration, raw_start_ns, raw_end_ns
FROM align.step
WHERE run_id = $1 AND rank BETWEEN $2 AND $3
ORDER BY rank, raw_start_ns
"""

# Messages between two ranks of a pipeline, by stage.
_MESSAGES = """
SELECT m.iteration, s.stage AS source_stage, d.stage AS destination_stage, COUNT(*) AS messages
FROM timeline.message AS m
JOIN timeline.role AS s ON s.run_id = m.run_id AND s.rank = m.source_rank
JOIN timeline.role AS d ON d.run_id = m.run_id AND d.rank = m.destination_rank
WHERE m.run_id = $1 AND m.iteration IS NOT NULL AND s.stage IS NOT NULL AND d.stage IS NOT NULL
GROUP BY m.iteration, s.stage, d.stage, m.source_rank, m.destination_rank
"""

DIRECTIONS = ("forward", "backward", "backward_input", "backward_weight")
_SCHEMA = {
    "run_id": pl.Int32, "iteration": pl.Int32, "rank": pl.Int32, "turn": pl.Int32, "chunk": pl.Int32,
    "microbatch": pl.Int32, "direction": pl.String, "issue_ns": pl.Int64, "start_ns": pl.Int64, "duration_ns": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expected:
    """What messages show of an iteration: micro-batches, and chunks of a stage."""

    microbatches: int
    chunks: int


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """Turns of every rank of a pipeline, a run at a time."""
    found: dict[int, dict[int, RankTurns]] = {}
    for batch in rank_batches(store):
        stages = _stages(store, batch.run_id)
        ranks = [one for one in batch.ranks if one.rank in stages]
        if ranks:
            found.setdefault(batch.run_id, {}).update(_turns(store, RankBatch(batch.run_id, ranks, batch.most_events)))
    for run_id, turns in found.items():
        frame = numbered(turns, _stages(store, run_id), store.query(_MESSAGES, [run_id]))
        yield frame.with_columns(run_id=pl.lit(run_id)).select(pl.col(n).cast(kind) for n, kind in _SCHEMA.items())


def _stages(store: Store, run_id: int) -> dict[int, int]:
    return dict(store.query(_STAGES, [run_id]).rows())


def _turns(store: Store, batch: RankBatch) -> Iterator[tuple[int, RankTurns]]:
    marks, steps = batch.by_rank(store, _MARKS), batch.by_rank(store, _STEPS)
    for one, work in read_pipeline_work(store, batch):
        own = steps.of(one.rank)
        starts, ends = (own[name].to_numpy() for name in ("raw_start_ns", "raw_end_ns"))
        place = np.searchsorted(starts, work.launch_ns, side="right") - 1
        iteration = np.full(len(place), NONE)
        inside = (place >= 0) & (work.launch_ns < ends[place]) if len(starts) else place < 0
        if len(starts):
            iteration[inside] = own["iteration"].to_numpy()[place[inside]]
        yield one.rank, turns_of(work, iteration, marks.of(one.rank)["raw_issue_ns"].to_numpy())


def numbered(turns: Mapping[int, RankTurns], stages: Mapping[int, int], messages: pl.DataFrame) -> pl.DataFrame:
    """Turns with chunks and micro-batches, of those iterations of ranks in which these are known."""
    count = 1 + max(stages.values())
    # Ranks by pipeline would be better still, but the replicas of a stage work alike.
    iterations = sorted({int(number) for own in turns.values() for number in np.unique(own.turns.iteration)})
    frames = [pl.DataFrame(schema={name: kind for name, kind in _SCHEMA.items() if name != "run_id"})]
    shown = {int(str(key)): own for (key,), own in messages.group_by("iteration")}
    for iteration in iterations:
        own = {rank: one.of(iteration) for rank, one in turns.items()}
        if iteration in shown and _hides_backward(shown[iteration], own):
            continue
        expected = expected_of(shown[iteration], count, own) if iteration in shown else None
        found = {rank: _of_rank(one, expected) for rank, one in own.items()}
        told = {rank: one for rank, one in found.items() if one is not None and len(one.turns.letter)}
        for rank, one in _with_chunks(told, stages, count, expected).items():
            frames.append(_frame(rank, iteration, one))
    return pl.concat(frames)


def _hides_backward(messages: pl.DataFrame, turns: Mapping[int, RankTurns]) -> bool:
    """Whether messages go back and no work is known to: without host operations a trace does not show the direction."""
    goes_back = bool((messages["destination_stage"] == messages["source_stage"] - 1).any())
    return goes_back and all((one.turns.letter == FORWARD).all() for one in turns.values())


def expected_of(messages: pl.DataFrame, stages: int, turns: Mapping[int, RankTurns]) -> Expected | None:
    """Micro-batches and chunks, from messages that all pairs of ranks agree upon.

    Of two stages, who passes a message on and who passes it back looks the same: as many chunks are taken as make
    the messages fit the forward turns.
    """
    forward = messages.filter(pl.col("destination_stage") == pl.col("source_stage") + 1)["messages"]
    if forward.is_empty() or forward.min() != forward.max():
        return None
    passes = int(forward[0])
    if stages > 2:
        last_to_first = (pl.col("source_stage") == stages - 1) & (pl.col("destination_stage") == 0)
        around = messages.filter(last_to_first)["messages"]
        microbatches = passes - (int(around[0]) if len(around) else 0)
        fits = microbatches > 0 and passes % microbatches == 0
        return Expected(microbatches, passes // microbatches) if fits else None
    seen = {int((one.turns.letter == FORWARD).sum()) for one in turns.values()}
    for chunks in range(1, passes + 1):
        # Forward through all of them, and back from all but the first.
        microbatches, rest = divmod(passes, 2 * chunks - 1)
        if not rest and microbatches * chunks in seen:
            return Expected(microbatches, chunks)
    return Expected(passes, 1)


def _of_rank(found: RankTurns, expected: Expected | None) -> Passes | None:
    """The turns of a rank in an iteration, with micro-batches and chunks where annotations name them."""
    if np.any(found.turns.microbatch != NONE):
        return passes_of(found.turns)
    if expected is None:
        return None
    passes = expected.microbatches * expected.chunks
    parts = [counted(found, letter, passes) for letter in np.unique(found.turns.letter).tolist()]
    told = [one for one in parts if one is not None]
    if not told or len(told) < len(parts) or told[0].letter[0] != FORWARD:
        return None
    joined = Turns(*(np.concatenate([getattr(one, name) for one in told]) for name in Turns.__slots__))
    ordered = joined.take(np.argsort(joined.start_ns, kind="stable"))
    unknown = np.full(len(ordered.letter), NONE)
    return Passes(ordered, unknown, unknown)


def _with_chunks(
    found: Mapping[int, Passes], stages: Mapping[int, int], count: int, expected: Expected | None
) -> dict[int, Passes]:
    """Passes with the numbers that annotations do not give: by the order of turns."""
    unnamed = {rank: one for rank, one in found.items() if np.any(one.microbatch == NONE)}
    result = {rank: one for rank, one in found.items() if rank not in unnamed}
    if unnamed and expected is not None:
        size = group_size_of(unnamed, stages, count, expected.microbatches, expected.chunks)
        if size is not None:
            result |= {
                rank: one.in_groups(size, expected.microbatches, expected.chunks) for rank, one in unnamed.items()
            }
    return result


def _frame(rank: int, iteration: int, passes: Passes) -> pl.DataFrame:
    turns = passes.turns
    return pl.DataFrame(
        {
            "iteration": pl.Series(np.full(len(turns.letter), iteration), dtype=pl.Int32),
            "rank": pl.Series(np.full(len(turns.letter), rank), dtype=pl.Int32),
            "turn": pl.Series(np.arange(len(turns.letter)), dtype=pl.Int32),
            "chunk": pl.Series(passes.chunk, dtype=pl.Int32),
            "microbatch": pl.Series(passes.microbatch, dtype=pl.Int32),
            "direction": pl.Series(DIRECTIONS).gather(turns.letter),
            "issue_ns": turns.issue_ns,
            "start_ns": turns.start_ns,
            "duration_ns": turns.end_ns - turns.start_ns,
        }
    )
