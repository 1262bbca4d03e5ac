"""The section on the pipeline: its schedule as blocks, bubbles between them, and the sentence above."""

from types import SimpleNamespace
from typing import Any, cast

from traceforge.report.blocks import Figure, Section
from traceforge.report.context import Context
from traceforge.report.sections.pipeline import SECTION

MS = 1_000_000
# Two stages, one micro-batch of 10 ms forward and 20 ms backward: 30 of 60 ms are bubble.
PIPELINE = {
    "schedule": "unknown", "stages": 2, "chunks": 1, "layout": "pp 2", "all_microbatches": 1,
    "is_first_left_out": True,
    "pipeline_iteration_ns": 60 * MS, "bubble_ns": 30 * MS, "fill_drain_ns": 29 * MS, "imbalance_ns": 0,
    "message_ns": MS, "late_peer_ns": 0, "even_saved_ns": 0, "more_microbatches": 4, "more_fill_drain_share": 0.1957,
}  # fmt: skip
STAGE = {
    "ranks": [0], "fill_ns": 0, "drain_ns": 29 * MS, "imbalance_ns": -2_000, "transfer_ns": MS, "launch_ns": 0,
    "late_peer_ns": 1_000,
}  # fmt: skip


def _turn(stage: int, direction: str, start: int, lasting: int) -> dict[str, Any]:
    return {
        "iteration": 7, "stage": stage, "rank": stage, "chunk": 0, "microbatch": 0, "direction": direction,
        "start_ns": start * MS, "duration_ns": lasting * MS,
    }  # fmt: skip


def _context(pipelines: int) -> Context:
    """A run that has, or has not, a pipeline: stage 0 forward at 100 ms, stage 1 both, stage 0 backward at 140 ms."""
    tables = {
        "sections/pipeline": [PIPELINE],
        "sections/pipeline_bubbles": [{**STAGE, "stage": stage} for stage in (0, 1)],
        "sections/pipeline_turns": [
            _turn(0, "forward", 100, 10), _turn(0, "backward", 140, 20),
            _turn(1, "forward", 110, 10), _turn(1, "backward", 120, 20),
        ],
    }  # fmt: skip
    store = SimpleNamespace(query=lambda _sql, _numbers: SimpleNamespace(item=lambda: pipelines))
    return cast(Context, SimpleNamespace(store=store, run_id=0, rows=tables.__getitem__))


def test_turns_are_blocks_and_what_is_between_them_is_bubble() -> None:
    section = SECTION.build(_context(1))

    assert isinstance(section, Section)
    figure = section.blocks[0]
    assert isinstance(figure, Figure)
    blocks = figure.panels[0].data["blocks"]
    columns = (blocks[name] for name in ("stage", "kind", "number", "start_ms", "end_ms"))
    assert list(zip(*columns, strict=True)) == [
        ("stage 0", "forward", "0", 0, 10),
        ("stage 0", "bubble", "", 10, 40),
        ("stage 0", "backward", "0", 40, 60),
        ("stage 1", "bubble", "", 0, 10),
        ("stage 1", "forward", "0", 10, 20),
        ("stage 1", "backward", "0", 20, 40),
        ("stage 1", "bubble", "", 40, 60),
    ]
    assert [entry.label for entry in figure.legend] == ["forward", "backward", "bubble"]


def test_the_sentence_says_what_more_micro_batches_would_leave() -> None:
    section = SECTION.build(_context(1))

    assert isinstance(section, Section)
    assert isinstance(section.blocks[0], Figure)
    assert section.blocks[0].caption == (
        "50 % of a rank's own step (60.0 ms, the first iteration left out) is pipeline bubble (an unknown schedule, "
        "2 stages): 48 points fill and drain, 1.7 points messages. With 4 micro-batches of this size instead of 1, "
        "fill and drain would take 20 %."
    )


def test_a_job_without_a_pipeline_has_no_such_section() -> None:
    assert SECTION.build(_context(0)) is None
