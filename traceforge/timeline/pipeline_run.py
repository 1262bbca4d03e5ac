"""A run's pipeline as it was measured. In: timeline tables. Out: `PipelineRun`: program, replicas, durations.

The program is the order of turns that most iterations of each stage have. A replica is a rank of each stage that
exchange messages. Usual durations are medians over replicas, iterations and micro-batches of the same pass.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, subtract, union
from traceforge.timeline.pipeline_messages import chains_of, exchanges_of, moved_of, read_messages
from traceforge.timeline.pipeline_play import Loads
from traceforge.timeline.pipeline_program import (
    PipelineProgram,
    PipelineTurn,
    Place,
    needed_turns,
    one_by_one,
    program_of,
)
from traceforge.timeline.pipeline_times import RankStory, RankTimes, times_of

_TURNS = """
SELECT m.iteration, m.rank, r.stage, m.chunk, m.microbatch, m.direction, m.issue_ns, m.start_ns,
  m.start_ns + m.duration_ns AS end_ns
FROM timeline.microbatch AS m
JOIN timeline.role AS r USING (run_id, rank)
WHERE m.run_id = $1
ORDER BY m.rank, m.iteration, m.turn
"""

_WINDOWS = """
SELECT w.rank, w.iteration, w.start_ns, w.start_ns + w.duration_ns AS end_ns, i.is_warmup OR i.is_partial AS is_odd
FROM timeline.rank_iteration AS w
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE w.run_id = $1
ORDER BY w.rank, w.iteration
"""

_SPARE = """
SELECT rank, start_ns, start_ns + duration_ns AS end_ns, phase, phase IN ('input', 'runtime', 'idle') AS is_quiet
FROM timeline.segment
WHERE run_id = $1 AND phase NOT IN ('compute', 'copy')
ORDER BY rank, start_ns
"""

# Collectives of ranks, and whether stages meet in them.
_COLLECTIVES = """
WITH spread AS (
  SELECT c.communicator_id, COUNT(DISTINCT r.stage) > 1 AS has_stages
  FROM (SELECT run_id, communicator_id, UNNEST(ranks) AS rank FROM timeline.communicator WHERE run_id = $1) AS c
  JOIN timeline.role AS r USING (run_id, rank)
  GROUP BY c.communicator_id
)
SELECT a.rank, a.iteration, a.arrival_ns AS start_ns, a.end_ns, s.has_stages
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
JOIN spread AS s USING (communicator_id)
WHERE a.run_id = $1 AND c.op <> 'send_recv'
ORDER BY a.rank, a.arrival_ns
"""

# What a rank without any has none of.
_INTERVAL = {
    "iteration": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64, "phase": pl.String, "is_quiet": pl.Boolean,
    "has_stages": pl.Boolean,
}  # fmt: skip

# Phases in which messages run, or collectives.
EXCHANGING = ("wait", "transfer", "communication")

_V_SHAPED = "SELECT COUNT(*) > 0 FROM timeline.schedule WHERE run_id = $1 AND schedule IN ('zb_v', 'dualpipe_v')"

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """A pipeline in replicas.

    Attributes:
        program: what the stages do.
        iterations: those in which all of them do it.
        ranks: of each stage, one a replica.
        times: what each rank measured.
        loads: that, as durations of the program.
        usual: usual durations, one iteration of one replica.
        prompt_turns: usual durations of turns, were each host as prompt as the usual stage's; shapes (1, turns, 1).
    """

    program: PipelineProgram
    iterations: Integers
    ranks: Sequence[Sequence[int]]
    times: Mapping[int, RankTimes]
    loads: Loads
    usual: Loads
    prompt_turns: Sequence[NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class _RankTurns:
    """Turns of a rank in one iteration."""

    turns: tuple[PipelineTurn, ...]
    issues: Integers
    starts: Integers
    ends: Integers


def read_pipeline_run(store: Store, run_id: int) -> PipelineRun | None:
    """The pipeline of a run, or None where the turns of some stage are not known."""
    turns = store.query(_TURNS, [run_id])
    turns_of = _rank_turns(turns)
    stages = dict(turns.select("rank", "stage").unique(maintain_order=True).iter_rows())
    orders = _orders(turns_of, stages)
    needed = None if orders is None else needed_turns(orders, is_v_shaped=store.query(_V_SHAPED, [run_id]).item())
    if orders is None or needed is None:
        return None
    messages, collectives = read_messages(store, run_id), store.query(_COLLECTIVES, [run_id])
    ranks = _replicas(stages, messages, len(orders))
    windows = _by_rank(store.query(_WINDOWS, [run_id]))
    everyone = [rank for own in ranks for rank in own]
    iterations = _iterations(orders, turns_of, stages, everyone, windows)
    if not everyone or not len(iterations):
        return None
    chains = chains_of(needed)
    first, middle = [own[0] for own in ranks], int(iterations[len(iterations) // 2])
    issues = [turns_of[rank, middle].issues for rank in first]
    exchanges = exchanges_of(store, run_id, issues, first, middle, chains, messages)
    meets = _meets(turns_of, collectives) or _start_together(turns_of, windows, everyone, iterations)
    program = program_of(orders, needed, exchanges, meets=meets) if exchanges else None
    program = program or program_of(orders, needed, one_by_one(orders, needed), meets=meets)
    if program is None:
        return None
    moved = moved_of(orders, ranks, iterations, chains, messages)
    spare, met = _by_rank(store.query(_SPARE, [run_id])), _by_rank(collectives)
    times = {
        rank: times_of(_story([turns_of[rank, i] for i in iterations.tolist()], windows[rank], iterations,
                              moved.ready[rank], spare.get(rank), met.get(rank)))
        for rank in everyone
    }  # fmt: skip
    is_odd = windows[everyone[0]].filter(pl.col("iteration").is_in(iterations))["is_odd"].to_numpy()
    loads = _loads(ranks, times, moved.transfer)
    usual = _usual(program, loads, is_odd)
    late = [_medians(one[_kept(is_odd)], _passes(own)) for one, own in zip(_late(ranks, times), orders, strict=True)]
    return PipelineRun(program, iterations, ranks, times, loads, usual, _prompt(program, usual.turns, late))


def _by_rank(frame: pl.DataFrame) -> dict[int, pl.DataFrame]:
    return {int(str(key)): own for (key,), own in frame.group_by("rank", maintain_order=True)}


def _rank_turns(turns: pl.DataFrame) -> dict[tuple[int, int], _RankTurns]:
    found = {}
    for (rank, iteration), own in turns.group_by("rank", "iteration", maintain_order=True):
        names = tuple(PipelineTurn(*row) for row in own.select("direction", "chunk", "microbatch").iter_rows())
        place = int(str(rank)), int(str(iteration))
        found[place] = _RankTurns(names, *(own[name].to_numpy() for name in ("issue_ns", "start_ns", "end_ns")))
    return found


def _orders(
    turns_of: Mapping[tuple[int, int], _RankTurns], stages: Mapping[int, int]
) -> list[tuple[PipelineTurn, ...]] | None:
    """The order that most iterations of each stage have, or None where a stage has none."""
    orders: list[Counter[tuple[PipelineTurn, ...]]] = [Counter() for _ in range(1 + max(stages.values()))]
    for (rank, _), one in turns_of.items():
        orders[stages[rank]][one.turns] += 1
    return [own.most_common(1)[0][0] for own in orders] if all(orders) else None


def _meets(turns_of: Mapping[tuple[int, int], _RankTurns], collectives: pl.DataFrame) -> bool:
    """Whether a collective in which stages meet begins behind the last turn of an iteration."""
    last = {place: int(one.ends[-1]) for place, one in turns_of.items()}
    between = collectives.filter(pl.col("has_stages")).select("rank", "iteration", "start_ns")
    return any(start >= last.get((rank, iteration), start + 1) for rank, iteration, start in between.iter_rows())


def _start_together(
    turns_of: Mapping[tuple[int, int], _RankTurns],
    windows: Mapping[int, pl.DataFrame],
    ranks: Sequence[int],
    iterations: Integers,
) -> bool:
    """Whether stages begin an iteration only once all have ended the last: something unseen ties them."""
    starts = {rank: dict(own.select("iteration", "start_ns").iter_rows()) for rank, own in windows.items()}
    return len(iterations) > 1 and all(
        min(starts[rank][after] for rank in ranks) >= max(int(turns_of[rank, before].ends[-1]) for rank in ranks)
        for before, after in pairwise(iterations.tolist())
    )


def _replicas(stages: Mapping[int, int], messages: pl.DataFrame, count: int) -> list[list[int]]:
    """Ranks of each stage, those of one pipeline at the same place."""
    partner: dict[tuple[int, int], int] = {}
    counts = messages.group_by("source_rank", "destination_rank").len().sort("len", "source_rank", "destination_rank")
    for source, destination, _ in counts.iter_rows():
        if source in stages and destination in stages:
            partner[source, stages[destination]] = destination
    found: list[list[int]] = [[] for _ in range(count)]
    for first in sorted(rank for rank, stage in stages.items() if stage == 0):
        chain = [first]
        while len(chain) < count and (chain[-1], len(chain)) in partner:
            chain.append(partner[chain[-1], len(chain)])
        if len(chain) == count:
            for stage, rank in enumerate(chain):
                found[stage].append(rank)
    return found


def _iterations(
    orders: Sequence[tuple[PipelineTurn, ...]],
    turns_of: Mapping[tuple[int, int], _RankTurns],
    stages: Mapping[int, int],
    ranks: Sequence[int],
    windows: Mapping[int, pl.DataFrame],
) -> Integers:
    """Iterations in which all ranks take their turns in these orders."""
    common = set.intersection(*(set(windows[rank]["iteration"]) for rank in ranks)) if ranks else set[int]()
    found = [
        i for i in sorted(common)
        if all((rank, i) in turns_of and turns_of[rank, i].turns == orders[stages[rank]] for rank in ranks)
    ]  # fmt: skip
    return np.array(found, dtype=np.int64)


def _story(
    turns: Sequence[_RankTurns],
    windows: pl.DataFrame,
    iterations: Integers,
    ready: Integers,
    spare: pl.DataFrame | None,
    met: pl.DataFrame | None,
) -> RankStory:
    own = windows.filter(pl.col("iteration").is_in(iterations))
    edges = np.stack([own["start_ns"].to_numpy(), own["end_ns"].to_numpy()], axis=1)
    spare, met = (pl.DataFrame(schema=_INTERVAL) if one is None else one for one in (spare, met))
    meeting, among, quiet = met.filter("has_stages"), met.filter(~pl.col("has_stages")), spare.filter("is_quiet")
    starts, ends = (np.array([getattr(one, name) for one in turns]) for name in ("starts", "ends"))
    return RankStory(
        edges, starts, ends, ready, _meeting(meeting, iterations, ends[:, -1], edges[:, 1]),
        subtract(_intervals(spare), _intervals(among)), _intervals(quiet),
        {phase: _intervals(spare.filter(pl.col("phase") == phase)) for phase in EXCHANGING},
    )  # fmt: skip


def _intervals(frame: pl.DataFrame) -> Intervals:
    return union(*(frame[name].cast(pl.Int64).to_numpy() for name in ("start_ns", "end_ns")))


def _meeting(meeting: pl.DataFrame, iterations: Integers, last: Integers, end: Integers) -> Integers:
    """The first collective of each iteration behind its last turn in which stages meet."""
    result = np.stack([end, end], axis=1)
    for i, iteration in enumerate(iterations.tolist()):
        own = meeting.filter((pl.col("iteration") == iteration) & (pl.col("start_ns") >= int(last[i])))
        if own.height:
            result[i] = own["start_ns"][0], own["end_ns"][0]
    return result


def _loads(
    ranks: Sequence[Sequence[int]], times: Mapping[int, RankTimes], transfer: Mapping[int, NDArray[np.float64]]
) -> Loads:
    def across(name: str) -> NDArray[np.float64]:
        return np.stack(
            [np.stack([getattr(times[rank], name) for rank in own], axis=-1) for own in ranks], axis=1
        ).astype(float)

    busy = [np.stack([times[rank].turns for rank in own], axis=-1).astype(float) for own in ranks]
    turns = [one + late for one, late in zip(busy, _late(ranks, times), strict=True)]
    arriving = [np.stack([transfer[rank] for rank in own], axis=-1) for own in ranks]
    return Loads(turns, arriving, across("before"), across("behind"), across("after"))


def _late(ranks: Sequence[Sequence[int]], times: Mapping[int, RankTimes]) -> list[NDArray[np.float64]]:
    """By how much hosts are late in each turn, by stage; shapes (iterations, turns, replicas)."""
    return [np.stack([times[rank].late for rank in own], axis=-1).astype(float) for own in ranks]


def _usual(program: PipelineProgram, loads: Loads, is_odd: NDArray[np.bool_]) -> Loads:
    """Medians of each pass over micro-batches, judged iterations and replicas; unknown messages become usual."""
    kept = _kept(is_odd)
    turns, arriving = [], []
    for stage, own in enumerate(program.turns):
        turns.append(_medians(loads.turns[stage][kept], _passes(own)))
        ways = [program.needed.get(Place(stage, number), Place(stage, number)).stage for number in range(len(own))]
        usual = _medians(loads.arriving[stage][kept], ways)
        arriving.append(usual)
        np.copyto(loads.arriving[stage], usual, where=np.isnan(loads.arriving[stage]))
    before, after = (_across(np.median(one[kept], axis=0))[None, :, None] for one in (loads.before, loads.after))
    # Behind its last turn a rank waits for later replicas; the last of them does not.
    behind = np.median(loads.behind[kept].min(axis=2), axis=0)[None, :, None]
    return Loads(turns, arriving, before, behind, after)


def _kept(is_odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The iterations that count for usual durations."""
    return ~is_odd if not is_odd.all() else np.ones_like(is_odd)


def _passes(turns: Sequence[PipelineTurn]) -> list[tuple[str, int]]:
    return [(turn.direction, turn.chunk) for turn in turns]


def _prompt(
    program: PipelineProgram, turns: Sequence[NDArray[np.float64]], late: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Turns without what a stage's host is usually later than that of the usual stage: it is no work of the stage."""
    by_direction: dict[str, list[float]] = {}
    for own, times in zip(program.turns, late, strict=True):
        for direction in sorted({turn.direction for turn in own}):
            mean = np.mean([times[0, number, 0] for number, turn in enumerate(own) if turn.direction == direction])
            by_direction.setdefault(direction, []).append(float(mean))
    common = {direction: float(_across(np.array(found))) for direction, found in by_direction.items()}
    return [
        usual - np.maximum(times - np.array([[[common[turn.direction]] for turn in own]]), 0)
        for own, usual, times in zip(program.turns, turns, late, strict=True)
    ]


def _medians(times: NDArray[np.float64], kinds: Sequence[Hashable]) -> NDArray[np.float64]:
    """The median of each kind in place of each of that kind, shape (1, kinds, 1); 0 where nothing is known."""
    found = {}
    for kind in set(kinds):
        own = times[:, [one == kind for one in kinds]]
        of_replicas = [one[~np.isnan(one)] for one in np.moveaxis(own, -1, 0)]
        known = [float(np.median(one)) for one in of_replicas if len(one)]
        found[kind] = float(_across(np.array(known))) if known else 0.0
    return np.array([[[found[kind]] for kind in kinds]])


def _across(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median over replicas, the last axis; of two in the middle the lower one: of two replicas one may be slow."""
    result: NDArray[np.float64] = np.sort(times, axis=-1)[..., (times.shape[-1] - 1) // 2]
    return result
