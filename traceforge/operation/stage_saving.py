"""What longer stages cost a pipeline. Reads stage_load, stage_work and turns; fills operation.stage_saving.

Idea: the pipeline is played at its usual durations, and with passes of one stage, or of several at once, as long as on
the stages that are not longer. While another stage is as slow, mending one alone saves little.
Not handled: work beside the turns (optimizer), which slow devices do longer, too; pipelines whose turns are not known.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.bubble import PLAYED, repeated
from traceforge.timeline.pipeline_play import Times, play
from traceforge.timeline.pipeline_run import PipelineRun, read_pipeline_run

_STAGES = """
SELECT l.run_id, l.stage, l.is_longer, IF(w.reason IN ('slower', 'more'), w.reason, '') AS reason
FROM timeline.stage_load AS l
LEFT JOIN operation.stage_work AS w ON w.run_id = l.run_id AND w.stage = l.stage
WHERE l.run_id IN (SELECT run_id FROM timeline.bubble)
ORDER BY l.run_id, l.stage
"""
_SCHEMA = {"run_id": pl.Int32, "stage": pl.Int32, "alone_ns": pl.Int64, "together_ns": pl.Int64}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a longer stage of a run whose pipeline is known."""
    for (run_id,), own in store.query(_STAGES).partition_by("run_id", as_dict=True, maintain_order=True).items():
        run = store.once(read_pipeline_run, int(run_id))
        # A stage of whose compute nothing is known has no time to be held against.
        if run is None or own["stage"].to_list() != list(range(len(run.ranks))):
            continue
        usual = own.filter(~pl.col("is_longer"))["stage"].to_list()
        longer = dict(own.filter("is_longer").select("stage", "reason").iter_rows())
        alone = {stage: saved_ns(run, [stage], usual) for stage in longer}
        together = {reason: _together_ns(run, reason, longer, usual, alone) for reason in set(longer.values())}
        found = [(run_id, stage, alone[stage], together[reason]) for stage, reason in longer.items()]
        yield pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _together_ns(
    run: PipelineRun, reason: str, longer: Mapping[int, str], usual: Sequence[int], alone: Mapping[int, int]
) -> int:
    """What all stages that are longer for a reason save at once."""
    slow = [stage for stage, own in longer.items() if own == reason]
    return alone[slow[0]] if len(slow) == 1 else saved_ns(run, slow, usual)


def saved_ns(run: PipelineRun, slow: Collection[int], usual: Sequence[int]) -> int:
    """How much shorter an iteration is if passes of some stages take as long as on the usual ones, played."""
    lengths = [_lengths(run, stage) for stage in range(len(run.ranks))]
    turns = []
    for stage, (own, times) in enumerate(zip(run.program.turns, run.prompt_turns, strict=True)):
        # A stage's passes keep their proportions, as its chunks may differ.
        factor = {
            direction: float(np.mean([lengths[one].get(direction, 0.0) for one in usual])) / length if length else 1.0
            for direction, length in lengths[stage].items()
        }
        scale = np.array([[[factor[turn.direction]] for turn in own]])
        turns.append(times * scale if stage in slow else times)
    return round(_iteration_ns(run, run.prompt_turns) - _iteration_ns(run, turns))


def _lengths(run: PipelineRun, stage: int) -> dict[str, float]:
    """By direction what all passes of a stage take in an iteration."""
    found: dict[str, float] = {}
    for number, turn in enumerate(run.program.turns[stage]):
        found[turn.direction] = found.get(turn.direction, 0.0) + float(run.prompt_turns[stage][0, number, 0])
    return found


def _iteration_ns(run: PipelineRun, turns: Sequence[Times]) -> float:
    course = play(run.program, repeated(replace(run.usual, turns=turns), PLAYED))
    return float(course.duration[-1].max())
