"""Ranks whose windows are cut at different places meet in the steps that begin together."""

from dataclasses import replace

import pytest

from traceforge.align.common_steps import by_period, in_common, take_turns
from traceforge.align.kernel_turns import are_parts
from traceforge.align.rank_trace import RankTrace, Step, between


def issued(tokens: str, first_ns: int = 0, *, last_ns: int = 1_000) -> RankTrace:
    """A rank that issues a call every 10 ns, from an instant on; each begins at once."""
    times = range(first_ns, first_ns + 10 * len(tokens), 10)
    return RankTrace(0, last_ns, [], list(zip(tokens, times, strict=True)), arrivals_ns=times)


def starts(steps: list[Step]) -> list[tuple[int, int]]:
    return [(step.iteration, step.start_ns) for step in steps]


class TestTurnsOfCalls:
    """On all ranks of a role a turn begins at the same call."""

    def test_a_rank_whose_window_begins_a_call_earlier_begins_its_turns_with_the_others(self) -> None:
        # rank 0      |abc abc abc      rank 1, which has one call more:  c|abc abc abc
        traces = {0: issued("abcabcabc", 10), 1: issued("cabcabcabc", 0)}

        found = by_period(traces, {0: 3, 1: 3})

        assert starts(found[0]) == starts(found[1]) == [(0, 10), (1, 40), (2, 70)]

    def test_where_calls_are_alike_the_nearest_in_time_is_the_same(self) -> None:
        traces = {0: issued("aaaaaa", 11), 1: issued("aaaaaaa", 0)}

        found = by_period(traces, {0: 2, 1: 2})

        assert starts(found[1]) == [(0, 10), (1, 30), (2, 50)]

    def test_ranks_of_equally_many_calls_begin_with_their_first(self) -> None:
        # given a rank that begins so early that its second call is nearer to the other's first
        traces = {0: issued("aaaaaa", 9), 1: issued("aaaaaa", 0)}

        assert starts(by_period(traces, {0: 2, 1: 2})[1]) == [(0, 0), (1, 20), (2, 40)]

    def test_sequence_numbers_tell_who_begins_earlier_whatever_clocks_say(self) -> None:
        # rank 0 has calls 4 to 11, rank 1 calls 1 to 8, rank 2 calls 5 to 12; two calls a turn, the first one even
        traces = {
            rank: replace(issued("aaaaaaaa", 500 * rank), names=[f"dp:{first + place}" for place in range(8)])
            for rank, first in enumerate([4, 1, 5])
        }

        found = by_period(traces, {0: 2, 1: 2, 2: 2})

        assert starts(found[0]) == [(0, 0), (1, 20), (2, 40), (3, 60)]
        assert starts(found[1]) == [(-1, 510), (0, 530), (1, 550)]
        assert starts(found[2]) == [(1, 1010), (2, 1030), (3, 1050)]

    def test_clocks_that_differ_leave_the_first_call_that_fits(self) -> None:
        traces = {0: issued("aaaaaa", 511), 1: issued("aaaaaaa", 0)}

        assert starts(by_period(traces, {0: 2, 1: 2})[1])[0] == (0, 0)

    def test_ranks_of_other_periods_are_of_other_roles(self) -> None:
        traces = {0: issued("abab" * 3), 1: issued("xyz" * 3, 5), 2: issued("?")}

        found = by_period(traces, {0: 4, 1: 3, 2: None})

        assert [len(found[rank]) for rank in (0, 1, 2)] == [3, 3, 0]

    @pytest.mark.parametrize(("last_ns", "is_whole"), [(90, True), (87, True), (86, False), (93, True), (94, False)])
    def test_a_last_turn_that_the_window_ends_is_whole_if_it_lasts_as_long_as_others(
        self, last_ns: int, is_whole: bool
    ) -> None:
        # turns |0–30|30–60|60– … of three calls each, the last call at 80; 27 to 33 ns are about 30
        found = by_period({0: issued("abcabcabc", last_ns=last_ns)}, {0: 3})

        assert [step.is_whole for step in found[0]] == [True, True, is_whole]


class TestInCommon:
    """Of ranks that record more steps, those that begin at about the same time as on the rank that records fewest."""

    def test_steps_before_and_behind_the_common_ones_are_numbered_on(self) -> None:
        # rank 0        |0  |20 |40 |             rank 1   |-19|1  |21 |41 |61
        found = {0: between([0, 20, 40], 60), 1: between([-19, 1, 21, 41, 61], 80)}

        common = in_common(found, [0, 1])

        assert common is not None
        assert starts(common[0]) == [(0, 0), (1, 20), (2, 40)]
        assert starts(common[1]) == [(-1, -19), (0, 1), (1, 21), (2, 41), (3, 61)]

    def test_half_a_step_apart_they_do_not_meet(self) -> None:
        found = {0: between([0, 20, 40], 60), 1: between([10, 30, 50, 70], 90)}

        assert in_common(found, [0, 1]) is None

    def test_a_truncated_rank_keeps_its_steps(self) -> None:
        found = {0: between([0, 20, 40], 60), 1: between([0, 20, 40, 60], 80), 2: between([0], 20)}

        common = in_common(found, [0, 1])

        assert common is not None
        assert starts(common[2]) == [(0, 0)]

    def test_steps_that_names_of_calls_have_numbered_need_no_clock(self) -> None:
        found = {0: between([0, 20, 40], 60), 1: between([500, 520, 540, 560], 580, first=-1)}

        assert in_common(found, [0, 1]) == found

    def test_two_steps_are_none_in_common(self) -> None:
        found = {0: between([0, 20], 40), 1: between([0, 20, 40, 60], 80)}

        assert in_common(found, [0, 1]) is None
        assert in_common({}, []) is None


@pytest.mark.parametrize(("runs", "expected"), [(2, True), (3, True), (4, False), (0, False)])
def test_turns_are_parts_of_a_step_where_an_optimizer_runs_for_several(runs: int, expected: bool) -> None:
    # given six turns of a rank, and how often its optimizer runs
    traces = {0: RankTrace(0, 60, [], [], optimizer_runs=runs)}

    assert are_parts(traces, {0: between(range(0, 60, 10), 60)}) is expected


def test_turns_are_parts_only_if_they_are_on_all_ranks() -> None:
    turns = between(range(0, 60, 10), 60)
    traces = {rank: RankTrace(0, 60, [], [], optimizer_runs=runs) for rank, runs in enumerate((2, 6))}

    assert not are_parts(traces, {0: turns, 1: turns})


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        # discriminator and generator; three critics a generator; a report every third step; nothing between; all alike
        ("dgdgdgdg", True),
        ("dddgdddgdddg", False),
        ("aabaabaab", False),
        ("a-a-a-a-", False),
        ("aaaaaa", False),
    ],
)
def test_steps_that_take_turns_are_parts_of_one(tokens: str, expected: bool) -> None:
    # given one call a step, but where there is a dash
    calls = [(kind, 10 * place + 5) for place, kind in enumerate(tokens) if kind != "-"]
    steps = between(range(0, 10 * len(tokens), 10), 10 * len(tokens))

    assert take_turns(RankTrace(0, 1_000, [], calls), steps) is expected
