"""What is said of a stage that computes longest, by what its kernels tell.

rank 0   |gemm mul gelu ×4|send|
rank 1   |wait················|gemm mul gelu ×4|send|           one stage each
rank 2   |wait·····································|gemm mul gelu ×4|
"""

from collections.abc import Mapping, Sequence

import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import Run, told

Call = tuple[str, int, int]
"""Kernel, rows of its input, duration."""

LAYER: tuple[Call, ...] = (("gemm", 512, 4 * MS), ("mul", 512, 3 * MS), ("gelu", 512, 3 * MS))
SLOW = tuple((name, rows, 6 * duration // 5) for name, rows, duration in LAYER)
VERDICT = "SELECT kind, headline, explanation, next_step FROM attribute.verdict"
OPERATIONS = {"gemm": "aten::mm", "mul": "aten::mul", "gelu": "aten::gelu", "head": "aten::mm"}


def _computes(trace: Trace, start: int, calls: Sequence[Call], *, has_shapes: bool) -> int:
    """When the last call ends."""
    at = start
    for kernel, rows, duration in calls:
        shapes, name = [[rows, 1024], [1024, 1024]], OPERATIONS[kernel]
        if has_shapes:
            trace.operation(name, at, at + 10 * US, shapes, ["c10::BFloat16", "c10::BFloat16"])
        else:
            trace.host_work(name, at, at + 10 * US)
        trace.kernel(at + 20 * US, at + duration, kernel, launch_ns=at + US)
        at += duration
    return at


def job(stages: Mapping[int, Sequence[Call]], *, has_shapes: bool = True) -> Run:
    """Three stages of four layers each, in twelve steps; some run other calls."""
    traces, ranks = [Trace(rank) for rank in range(3)], range(3)
    now = 0
    for n in range(12):
        at = now
        for rank, trace in enumerate(traces):
            begun = at
            if rank:
                trace.exchange(now + 100, at, [("recv", rank - 1)], ranks=ranks)
            at = _computes(trace, begun, stages.get(rank, LAYER * 4), has_shapes=has_shapes)
            if rank < 2:
                trace.exchange(at, at + MS, [("send", rank + 1)], ranks=ranks)
                at += MS
        for trace in traces:
            trace.collective(at, at + MS, group="all", ranks=list(ranks)).step(n, now, at + MS)
        now = at + MS
    return told(*traces)


def test_a_stage_whose_same_calls_take_longer_is_told_to_be_slower_and_nobody_is_accused() -> None:
    ((kind, headline, explanation, step),) = rows_of(job({1: SLOW * 4}), VERDICT)

    # 48 against 40 ms, and one micro-batch: all of 8 ms would be saved
    assert kind == "nothing_significant"
    assert str(headline).startswith(
        "Stage 1 (rank 1) computes 20 % longer than the usual stage, as it is slower at the same work: at the others' "
        "pace, an iteration would be about 8.0"
    )
    assert (
        "Stage 1 runs the same kernels as often as the other stages, on inputs of the same shapes, and a call takes "
        "20 % longer: the same work, more slowly." in str(explanation)
    )
    assert "slow in all replicas" not in str(explanation)
    assert str(step).startswith("Compare clock, temperature and power of the devices of stage 1")


def test_without_shapes_the_reason_is_not_sure() -> None:
    ((_, headline, explanation, _),) = rows_of(job({1: SLOW * 4}, has_shapes=False), VERDICT)

    assert "by design or by a fault, which one run cannot tell" in str(headline)
    assert "the same work, more slowly, unless its inputs are larger" in str(explanation)


@pytest.mark.parametrize(
    ("stage", "calls", "said"),
    [
        (1, LAYER * 5, "9.94 ms in more calls of kernels that others run, too."),
        (2, (*LAYER * 4, ("head", 512, 10 * MS)), "ms in kernels that no other stage runs on such inputs."),
        (2, (*LAYER * 4, ("gemm", 9_999, 10 * MS)), "ms in kernels that no other stage runs on such inputs."),
    ],
    ids=["a layer more", "a head", "the same kernel on other inputs"],
)
def test_a_stage_with_more_to_run_is_told_to_have_more_work(stage: int, calls: Sequence[Call], said: str) -> None:
    ((_, headline, explanation, step),) = rows_of(job({stage: calls}), VERDICT)

    assert f"Stage {stage} (rank {stage}) computes 15 % longer than the mean stage, as it has more work" in str(
        headline
    )
    # one micro-batch goes through all stages in turn, whoever does the work
    assert "would be about 9.9" in str(headline)
    assert "evened out hardly any" in str(headline)
    assert f"Kernels of stage {stage} take " in str(explanation)
    assert said in str(explanation)
    assert "then move layers to other stages" in str(step)


def test_a_head_on_a_slow_device_is_told_in_parts() -> None:
    ((_, headline, explanation, _),) = rows_of(job({2: (*SLOW * 4, ("head", 512, 8 * MS))}), VERDICT)

    assert "by design or by a fault, which one run cannot tell" in str(headline)
    assert "8.0" in str(explanation)
    assert "longer calls of kernels that others run, too (20 % longer)" in str(explanation)
