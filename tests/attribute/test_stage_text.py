"""When one stage of a pipeline is said to limit it: it must compute much longer, and evening out must save much."""

import pytest

from traceforge.attribute.stage_text import is_unbalanced


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
