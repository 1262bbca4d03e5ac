"""How the pipeline works: its schedule drawn, and why its stages idle.

Reads timeline.pipeline, microbatch, bubble and schedule. Absent where there is no pipeline, or its turns are not told.
"""

from collections import Counter
from collections.abc import Sequence

from traceforge.attribute.stage_text import of_bubbles
from traceforge.report.blocks import Block, Figure, LegendEntry, Note, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.pipeline import DIRECTIONS, pipeline_spec
from traceforge.report.context import Context, Row
from traceforge.report.embedded_data import Dataset
from traceforge.report.formatting import clean, count, crossed, duration, rank_list, signed
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_IS_TOLD = "SELECT COUNT(*) FROM timeline.pipeline WHERE run_id = ?"


def _build(context: Context) -> Section | None:
    if not context.store.query(_IS_TOLD, [context.run_id]).item():
        return None
    (pipeline,) = context.rows("sections/pipeline")
    stages, turns = context.rows("sections/pipeline_bubbles"), context.rows("sections/pipeline_turns")
    blocks: list[Block] = [_schedule(pipeline, stages, turns)] if turns else []
    if pipeline["layout"]:
        blocks.append(Note(f"Parallel layout: {crossed(clean(pipeline['layout'], 120))}."))
    return Section(blocks)


def _schedule(pipeline: Row, stages: list[Row], turns: list[Row]) -> Figure:
    drawn = _blocks(turns)
    fullest = max(Counter(drawn["stage"]).values())
    panel = Panel(
        pipeline_spec(len({row["stage"] for row in turns}), fullest),
        {"blocks": drawn},
        "One iteration of the pipeline: for each stage the passes of its micro-batches and the bubbles between them.",
    )
    ranks = list(dict.fromkeys(row["rank"] for row in turns))
    seen = [kind for kind in DIRECTIONS if kind in drawn["kind"]]
    notes = [
        f"Iteration {turns[0]['iteration']}, nearest to the median, on ranks {rank_list(ranks)}.",
        "Numbers are micro-batches. A bubble holds waiting and messages; the table says why a stage idles, on average.",
    ]
    if pipeline["chunks"] > 1:
        notes.append(f"Each stage holds {count(pipeline['chunks'])} chunks; the tooltip says which.")
    return Figure(
        "pipeline",
        of_bubbles(pipeline),
        [panel],
        Table.of(stages, _COLUMNS),
        ["sections/pipeline", "sections/pipeline_bubbles", "sections/pipeline_turns"],
        legend=[LegendEntry(DIRECTIONS[kind][0], DIRECTIONS[kind][1]) for kind in seen],
        notes=notes,
    )


def _blocks(turns: Sequence[Row]) -> Dataset:
    """Turns and the bubbles between them, ms from the first turn's start."""
    origin, end = min(row["start_ns"] for row in turns), max(row["start_ns"] + row["duration_ns"] for row in turns)
    least_ns = thresholds.LEAST_DRAWN_BUBBLE_SHARE * (end - origin)
    found: list[tuple[str, str, str, str, int, int]] = []
    for stage in dict.fromkeys(row["stage"] for row in turns):
        name, reached = f"stage {stage}", origin
        for row in (one for one in turns if one["stage"] == stage):
            start, until = row["start_ns"], row["start_ns"] + row["duration_ns"]
            if start - reached >= least_ns:
                found.append((name, "bubble", "bubble", "", reached, start))
            words = f"micro-batch {row['microbatch']}, {DIRECTIONS[row['direction']][1]}, chunk {row['chunk']}"
            found.append((name, row["direction"], words, str(row["microbatch"]), start, until))
            reached = max(reached, until)
        if end - reached >= least_ns:
            found.append((name, "bubble", "bubble", "", reached, end))
    return {
        "stage": [stage for stage, *_ in found],
        "kind": [kind for _, kind, *_ in found],
        "words": [words for _, _, words, *_ in found],
        "number": [text for _, _, _, text, *_ in found],
        "start_ms": [_ms(start - origin) for *_, start, _ in found],
        "end_ms": [_ms(until - origin) for *_, until in found],
        "middle_ms": [_ms((start + until) / 2 - origin) for *_, start, until in found],
    }


def _ms(duration_ns: float) -> float:
    return round(duration_ns / 1e6, 4)


_COLUMNS = (
    number("stage", lambda row: count(row["stage"])),
    TableColumn("ranks", lambda row: rank_list(row["ranks"])),
    number("fill", lambda row: duration(row["fill_ns"])),
    number("drain", lambda row: duration(row["drain_ns"])),
    number("imbalance", lambda row: signed(row["imbalance_ns"])),
    number("messages", lambda row: signed(row["transfer_ns"])),
    number("late launches", lambda row: duration(row["launch_ns"])),
    number("late peers", lambda row: signed(row["late_peer_ns"])),
)

SECTION = Plugin(45, "The pipeline", "Pipeline", _build)
