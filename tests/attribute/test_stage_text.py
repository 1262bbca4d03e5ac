"""When stages of a pipeline are said to limit it, and what is said of them.

stage        0    1    2    3
computes    80  104   80   96      of 100 ns: 1 and 3 are 30 % and 20 % above the usual stage
"""

from dataclasses import replace

import pytest

from traceforge.attribute.longer_stages import LongerStages, StageLoad, told_of
from traceforge.attribute.stage_text import (
    behind_headline_of_stages,
    headline_of_stages,
    is_unbalanced,
    next_step_of_stages,
    of_each_alone,
    of_few_microbatches,
    of_slow_replicas,
    stages_beside_finding,
)

NO_HOSTS: dict[str | None, tuple[int, ...]] = {}


def stage(
    number: int, compute_ns: int, *, usual_ns: int = 80, mean_ns: int = 90, reason: str | None = None
) -> StageLoad:
    ranks, slower_ns = (2 * number, 2 * number + 1), 24 if reason else None
    is_longer = compute_ns > usual_ns
    return StageLoad(number, ranks, is_longer, compute_ns, usual_ns, mean_ns, reason, slower_ns, high_slowdown=0.3)


def even(heavy_ns: int = 90, mean_ns: int = 80) -> LongerStages:
    """Stage 1 is longer, and nothing tells why."""
    return told_of(
        [stage(1, heavy_ns, usual_ns=70, mean_ns=mean_ns), stage(0, 70, usual_ns=70, mean_ns=mean_ns)], NO_HOSTS
    )


def slow(*reasons: str | None, hosts: dict[str | None, tuple[int, ...]] = NO_HOSTS) -> LongerStages:
    """Stages 1 and 3 of the drawing."""
    first, second = (
        replace(stage(number, compute_ns, reason=reason), alone_ns=alone_ns, together_ns=24, even_saved_ns=9)
        for number, compute_ns, alone_ns, reason in zip((1, 3), (104, 96), (8, 3), reasons, strict=True)
    )
    return told_of([first, second, stage(0, 80), stage(2, 80)], hosts)


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
    told = {"longer_stages": even(heavy_ns, mean_stage_ns), "duration_ns": 100, "state": state}

    assert is_unbalanced(told) == expected


def test_a_run_without_stages_has_none_that_limits_it() -> None:
    assert not is_unbalanced({"state": "nothing_significant", "longer_stages": None})


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
    of_finding = {"finding_mode": mode, "finding_ranks": ranks}
    said = stages_beside_finding({"longer_stages": even(), "duration_ns": 100, **of_finding})

    assert said.startswith("Beside that: Stage 1 (ranks 2, 3) computes 12 % longer than the mean stage") == is_told
    assert bool(said) == is_told


@pytest.mark.parametrize(("bubble_share", "is_told"), [(3 / 7, True), (3 / 35, False), (None, False)])
def test_where_stages_idle_much_evening_out_may_save_nothing(bubble_share: float | None, is_told: bool) -> None:
    state = {"bubble_share": bubble_share, "microbatches": 4, "stages": 4, "longer_stages": even()}

    said = of_few_microbatches(state)
    assert said.startswith("With 4 micro-batches for 4 stages it may save far less, or nothing") == is_told
    assert bool(said) == is_told
    # what is played knows of it
    assert of_few_microbatches({**state, "longer_stages": replace(even(), is_played=True)}) == ""


def test_all_stages_that_are_slower_at_the_same_work_are_named_with_what_they_cost_together_and_alone() -> None:
    longer = slow("slower", "slower")
    state = {"longer_stages": longer, "duration_ns": 200, "state": "nothing_significant", "stages": 4}

    assert headline_of_stages(state) == (
        "Stages 1 (ranks 2, 3) and 3 (ranks 6, 7) compute 30 % and 20 % longer than the usual stage, as they are "
        "slower at the same work: at the others' pace, an iteration would be about 24 ns (12 %) shorter."
    )
    assert "Stages 1 and 3 run the same kernels as often as the other stages" in behind_headline_of_stages(state)
    assert of_each_alone(longer) == "Mended alone, one saves 8 ns (stage 1) and 3 ns (stage 3), as others stay slow."
    assert next_step_of_stages(state).startswith(
        "Compare clock, temperature and power of the devices of stages 1 and 3"
    )


def test_a_share_is_of_a_ranks_own_step_where_iterations_overlap() -> None:
    state = {"longer_stages": slow("slower", "slower"), "duration_ns": 300, "pipeline_iteration_ns": 200}

    assert "about 24 ns (12 %) shorter" in headline_of_stages(state)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ({"a": (0, 1), "b": (2, 3), "c": (4, 5), "d": (6, 7)}, "Their ranks are all those of hosts b and d."),
        # a rank of the stages is elsewhere; all hosts are; none is known
        ({"a": (0, 1, 2), "b": (3,), "c": (4, 5), "d": (6, 7)}, ""),
        ({"a": (2, 3, 6, 7)}, ""),
        ({None: (0, 1, 2, 3, 4, 5, 6, 7)}, ""),
    ],
)
def test_slow_stages_that_are_whole_hosts_are_said_to_be_these(
    hosts: dict[str | None, tuple[int, ...]], said: str
) -> None:
    longer = slow("slower", "slower", hosts=hosts)
    state = {"longer_stages": longer, "duration_ns": 200, "state": "nothing_significant"}

    assert ("Their ranks" in behind_headline_of_stages(state)) == bool(said)
    assert said in behind_headline_of_stages(state)


def test_stages_that_may_be_slow_are_told_with_both_what_evening_out_and_what_their_own_pace_would_save() -> None:
    state = {"longer_stages": slow("perhaps_slower", None), "duration_ns": 200, "state": "nothing_significant"}

    # 104 and 96 are 16 % and 7 % above the mean of 90
    assert headline_of_stages(state) == (
        "Stages 1 (ranks 2, 3) and 3 (ranks 6, 7) compute 16 % and 6.7 % longer than the mean stage, by design or by a "
        "fault, which one run cannot tell: at the others' pace, an iteration would be about 24 ns (12 %) shorter, "
        "evened out up to 9 ns (4.5 %)."
    )
    assert "unless its inputs are larger" in behind_headline_of_stages(state)


def test_with_one_micro_batch_evening_out_saves_nothing_and_a_mended_device_does() -> None:
    longer = replace(slow("perhaps_slower", None), even_ns=0)

    said = headline_of_stages({"longer_stages": longer, "duration_ns": 200})
    assert said.endswith("would be about 24 ns (12 %) shorter, evened out hardly any.")


@pytest.mark.parametrize(("third_ns", "named"), [(95, "Stages 1 and 3 have"), (94, "Stage 1 has")])
def test_a_stage_that_hardly_exceeds_the_mean_one_is_not_named_beside_the_longest(third_ns: int, named: str) -> None:
    loads = [replace(stage(1, 104, reason="more"), alone_ns=8, together_ns=24), stage(3, third_ns, reason="more")]
    longer = told_of([*loads, stage(0, 80)], NO_HOSTS)
    said = next_step_of_stages({"longer_stages": longer})

    assert ("stages 1 and 3 are meant" in said) == named.startswith("Stages")
    assert ("stage 1 is meant" in said) == named.startswith("Stage 1")


def test_a_slow_stage_beside_one_with_more_work_is_told_behind_it() -> None:
    longer = slow("more", "slower")
    state = {"longer_stages": longer, "duration_ns": 200, "state": "nothing_significant", "stages": 4}

    assert headline_of_stages(state).endswith(
        "as it has more work: with no more work than the others, an iteration would be about 8 ns (4.0 %) shorter, "
        "evened out up to 9 ns (4.5 %)."
    )
    assert "Beside that: Stage 3 (ranks 6, 7) computes 20 % longer than the usual stage, as it is slower" in (
        behind_headline_of_stages(state)
    )
    assert "Beside that" not in behind_headline_of_stages({**state, "duration_ns": 1_000})


def test_where_the_pipeline_is_not_known_slow_stages_cost_at_most_what_they_exceed_the_longest_other_one() -> None:
    loads = [stage(1, 104, reason="slower"), stage(2, 90, reason="more"), stage(0, 80)]

    assert headline_of_stages({"longer_stages": told_of(loads, NO_HOSTS), "duration_ns": 200}).endswith(
        "as it is slower at the same work: at the others' pace, an iteration would be up to 14 ns (7.0 %) shorter."
    )


def test_many_stages_are_named_by_the_first_three() -> None:
    loads = [stage(number, 100 + number, reason="slower") for number in (9, 7, 5, 3, 1)]
    longer = told_of([*loads, *(stage(number, 80) for number in (0, 2, 4, 6, 8))], NO_HOSTS)

    said = headline_of_stages({"longer_stages": longer, "duration_ns": 200})
    assert said.startswith(
        "Stages 1 (ranks 2, 3), 3 (ranks 6, 7), 5 (ranks 10, 11) and 2 more compute 26 % to 36 % longer than"
    )


@pytest.mark.parametrize(("reason", "is_hidden"), [("slower", False), (None, True)])
def test_a_stage_that_is_told_for_sure_is_not_said_to_be_hidden(reason: str | None, is_hidden: bool) -> None:
    longer = slow(reason, reason)
    state = {"longer_stages": longer, "duration_ns": 200, "state": "nothing_significant", "has_stages": True}

    assert bool(of_slow_replicas(state)) == is_hidden
