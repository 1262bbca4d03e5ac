"""Ranks that count their steps from another one are numbered as most ranks are."""

from collections.abc import Sequence

from tests.given import Trace, rows_of
from tests.stories import told
from traceforge.align.step_numbers import FirstCall, shifts_of

_ONE_HOST = dict.fromkeys(range(4), "node0")
# Calls of one step end about together, steps are 10 ms apart, more or less.
_ENDS_NS = [0, 10_000_000, 21_000_000, 30_000_000, 42_000_000, 50_000_000]


def _named(first: int, names: Sequence[str]) -> dict[int, FirstCall]:
    return {number: FirstCall(name, 0) for number, name in enumerate(names, first)}


def _ended(first: int, ends_ns: Sequence[int]) -> dict[int, FirstCall]:
    return {number: FirstCall(None, end_ns) for number, end_ns in enumerate(ends_ns, first)}


def test_calls_of_one_name_are_of_one_step_and_most_ranks_say_its_number() -> None:
    # given rank 0, which starts two steps late and counts from 0 like the others
    calls = {0: _named(0, ["dp:3", "dp:4", "dp:5", "dp:6"])}
    calls |= {rank: _named(0, ["dp:1", "dp:2", "dp:3", "dp:4", "dp:5"]) for rank in (1, 2)}

    assert shifts_of(calls, {}) == {0: 2, 1: 0, 2: 0}
    # then most stand though rank 0 records as many steps
    assert shifts_of(calls | {0: _named(0, [f"dp:{call}" for call in range(3, 8)])}, {}) == {0: 2, 1: 0, 2: 0}


def test_calls_that_end_together_on_one_host_are_of_one_step() -> None:
    # given rank 2, which starts two steps late and counts from 5 like the others
    calls = {0: _ended(5, _ENDS_NS), 1: _ended(5, [end + 40_000 for end in _ENDS_NS]), 2: _ended(5, _ENDS_NS[2:])}

    assert shifts_of(calls, _ONE_HOST) == {0: 0, 1: 0, 2: 2}
    # then clocks that no host is known of do not tell
    assert shifts_of(calls, {0: "node0", 1: "node0"}) == {0: 0, 1: 0, 2: 0}


def test_clocks_of_two_hosts_differ_by_as_much_in_each_step() -> None:
    # given a host that starts two steps late, whose clock is 70 ms ahead and loses 10 us a step
    late = [end + 70_000_000 - 10_000 * number for number, end in enumerate(_ENDS_NS[2:])]
    hosts = {0: "node0", 1: "node0", 2: "node1"}
    first = {rank: _ended(5, _ENDS_NS) for rank in (0, 1)}

    assert shifts_of(first | {2: _ended(5, late)}, hosts) == {0: 0, 1: 0, 2: 2}
    # then steps of 10 ms that differ by 30 us at most do not tell, as a change of 10 us is not distinct
    even = [10_000_000 * number + 15_000 * (number % 3) for number in range(6)]
    late = [end - 10_000 * number for number, end in enumerate(even[2:])]
    first = {rank: _ended(5, even) for rank in (0, 1)}
    assert shifts_of(first | {2: _ended(5, late)}, hosts) == {0: 0, 1: 0, 2: 0}


def test_steps_that_share_no_ends_or_too_few_keep_their_numbers() -> None:
    # given a rank whose calls end 300 us later than the others', and one of which two end together with a neighbour's
    apart = {0: _ended(5, _ENDS_NS), 1: _ended(5, [end + 300_000 for end in _ENDS_NS])}
    few = {0: _ended(5, _ENDS_NS), 1: _ended(5, [_ENDS_NS[1], _ENDS_NS[2], 25_000_000, 35_000_000])}

    assert shifts_of(apart, _ONE_HOST) == {0: 0, 1: 0}
    assert shifts_of(few, _ONE_HOST) == {0: 0, 1: 0}


def test_names_that_contradict_one_another_say_nothing() -> None:
    # given a group whose name stands for another one on rank 1, with other calls a step
    calls = {0: _named(0, ["tp:1", "tp:4", "tp:7", "tp:10"]), 1: _named(0, ["tp:4", "tp:1", "tp:10", "tp:7"])}

    assert shifts_of(calls, {}) == {0: 0, 1: 0}


def test_a_rank_that_starts_late_and_counts_from_0_is_compared_with_the_others() -> None:
    # given eight steps, of which rank 2 records the last six as 0 to 5; rank 1 computes longer in the last three
    traces = [Trace(rank, clock_ns=2 * 10**18) for rank in range(3)]
    now = 0
    for number in range(8):
        compute = [10_000_000, 16_000_000 if number > 4 else 10_000_000, 10_000_000]
        end = now + max(compute) + 1_000_000
        for trace, duration in zip(traces, compute, strict=True):
            own = number - 2 if trace.rank == 2 else number
            if own >= 0:
                trace.step(own, now, end).kernel(now, now + duration).collective(now + duration, end)
        now = end

    store = told(*traces, stage="timeline")

    steps = "SELECT rank, MIN(iteration), MAX(iteration) FROM align.step GROUP BY ALL ORDER BY rank"
    assert rows_of(store, steps) == [(0, 0, 7), (1, 0, 7), (2, 2, 7)]
    assert rows_of(store, "SELECT DISTINCT duration_ns FROM timeline.iteration WHERE NOT is_partial ORDER BY 1") == [
        (11_000_000,),
        (17_000_000,),
    ]
    issues = "SELECT code, count FROM meta.issue WHERE code = 'steps_renumbered'"
    assert rows_of(store, issues) == [("steps_renumbered", 1)]
