"""When one stage of a pipeline is said to limit it: it must compute much longer, and evening out must save much."""

import pytest

from traceforge.attribute.stage_text import (
    headline_of_stages,
    is_unbalanced,
    of_few_microbatches,
    stages_beside_finding,
)


@pytest.mark.parametrize(
    ("heavy_ns", "mean_stage_ns", "state", "expected"),
    [
        (90, 80, "nothing_significant", True),  # 12.5 % longer, 10 of 100 saved
        (92, 88, "nothing_significant", False),  # saves 4 of 100, but is only 4.5 % longer
        (22, 20, "nothing_significant", False),  # 10 % longer, but saves only 2 of 100
        (90, 80, "finding", False),  # somebody is at fault: that comes first
    ],
)
def test_a_stage_limits_a_pipeline_only_if_it_is_much_longer_and_much_can_be_saved(
    heavy_ns: int, mean_stage_ns: int, state: str, *, expected: bool
) -> None:
    told = {"heavy_ns": heavy_ns, "mean_stage_ns": mean_stage_ns, "duration_ns": 100, "state": state}

    assert is_unbalanced({**told, "heavy_excess_share": heavy_ns / mean_stage_ns - 1}) == expected


def test_a_run_without_stages_has_none_that_limits_it() -> None:
    assert not is_unbalanced({"state": "nothing_significant", "heavy_excess_share": None})


@pytest.mark.parametrize(
    ("mode", "ranks", "is_told"),
    [
        ("runtime_control_plane", [2, 3], True),
        ("synchronization_amplification", [0], True),
        # what makes the stage compute longer is told already
        ("synchronization_amplification", [3], False),
    ],
)
def test_a_finding_does_not_hide_a_stage_that_limits_the_pipeline(mode: str, ranks: list[int], is_told: bool) -> None:
    heavy = {"heavy_stage": 1, "heavy_ranks": [2, 3], "heavy_ns": 90, "mean_stage_ns": 80, "heavy_excess_share": 0.125}
    said = stages_beside_finding({**heavy, "duration_ns": 100, "finding_mode": mode, "finding_ranks": ranks})

    assert said.startswith("Beside that: Stage 1 (ranks 2, 3) computes 12 % longer") == is_told
    assert bool(said) == is_told


@pytest.mark.parametrize(("bubble_share", "is_told"), [(3 / 7, True), (3 / 35, False), (None, False)])
def test_where_stages_idle_much_evening_out_may_save_nothing(bubble_share: float | None, is_told: bool) -> None:
    said = of_few_microbatches({"bubble_share": bubble_share, "microbatches": 4, "stages": 4})

    assert said.startswith(" With 4 micro-batches for 4 stages it may save far less, or nothing") == is_told
    assert bool(said) == is_told


@pytest.mark.parametrize(
    ("lost_to_pace_ns", "said"),
    [
        (16, "at the others' pace, an iteration would be up to 16 ns (16 %) shorter"),
        (1, "evened out, an iteration would"),
    ],
)
def test_a_slow_stage_beside_another_one_is_not_said_to_save_nothing(lost_to_pace_ns: int, said: str) -> None:
    heavy = {"heavy_stage": 1, "heavy_ranks": [1], "heavy_ns": 90, "mean_stage_ns": 80, "heavy_excess_share": 0.125}
    state = {**heavy, "duration_ns": 100, "stage_reason": "slower", "lost_to_pace_ns": lost_to_pace_ns}

    assert f"as it is slower at the same work: {said}" in headline_of_stages(state)
