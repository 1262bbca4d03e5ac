"""Groups of calls that name none: a mesh of two by two, each rank on a host of its own.

```
            data 0-2, 1-3      tensor 0-1, 2-3
 rank 0     |--|               |--|
 rank 1        |--|             |-|
 rank 2     |--|                    |--|
 rank 3        |--|                  |-|
 ms         10 11 13 14        20 22 25 27
```
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from traceforge.align.group_inference import ProcessGroup, UnassignedCall, divisions, infer, pipeline_of

MS = 1_000_000
DATA = {0: (10, 11), 1: (13, 14), 2: (10, 11), 3: (13, 14)}
TENSOR = {0: (20, 22), 1: (21, 22), 2: (25, 27), 3: (26, 27)}
TOGETHER = dict.fromkeys(range(4), (30, 31))

GROUPS = [
    ProcessGroup("0", "job", (0, 1, 2, 3)),
    ProcessGroup("1", "data", (0, 2)),
    ProcessGroup("2", "data", (1, 3)),
    ProcessGroup("3", "tensor", (0, 1)),
    ProcessGroup("4", "tensor", (2, 3)),
]


def calls(*program: dict[int, tuple[float, float]], ahead_ms: dict[int, int] | None = None) -> list[UnassignedCall]:
    """Five iterations of a program, each call with arrival and end by rank, ms; some hosts' clocks may be ahead."""

    def of_rank(rank: int) -> Iterator[UnassignedCall]:
        ahead = (ahead_ms or {}).get(rank, 0)
        for number in range(5 * len(program)):
            arrival, end = (100 * (number // len(program)) + ahead + ms for ms in program[number % len(program)][rank])
            yield UnassignedCall(
                rank, number, round(arrival * MS), round(end * MS), number // len(program), f"node{rank}"
            )

    return [call for rank in range(4) for call in of_rank(rank)]


def found(given: list[UnassignedCall], length: int) -> list[set[str]]:
    """Names of the groups of each call of the program; empty where none fits."""
    names: list[set[str]] = [set() for _ in range(length)]
    for call, group in infer(given, GROUPS):
        names[call.call_id % length].add(group.description)
        assert call in given
    return names


def test_pairs_that_are_late_are_not_taken_for_clocks_that_differ() -> None:
    # given pairs 1-3 that are 3 ms late in most calls, which is how far their clocks seem to be ahead
    assert found(calls(DATA, DATA, TENSOR), 3) == [{"data"}, {"data"}, {"tensor"}]


def test_clocks_that_do_differ_are_aligned() -> None:
    given = calls(DATA, DATA, TENSOR, ahead_ms={1: 40, 2: -7000, 3: 900})

    assert found(given, 3) == [{"data"}, {"data"}, {"tensor"}]


def test_a_host_that_falls_behind_within_each_iteration_is_not_taken_for_a_clock_that_differs() -> None:
    # given a second host that is 0.5 ms later with each of eight calls of its own, until the data-parallel calls, in
    # which it meets the first, and a clock that is 7.8 ms ahead; the ends of who does not meet move by 40 us each way
    #   host 0, ranks 0-1  |-|-|-|-|...      |data|
    #   host 1, ranks 2-3  |--|--|--|--|...  |data|
    tensor = [[(place * pace, place * pace + 0.9) for place in range(8)] for pace in (1, 1.5)]
    data = [[(begin + 2 * place, 23 + 2 * place) for place in range(2)] for begin in (9, 22)]
    given = []
    for number, rank in product(range(5), range(4)):
        host, pair = divmod(rank, 2)
        for place, (arrival, end) in enumerate(tensor[host] + data[host]):
            # those of a host end together, and those of a pair
            later_us = 40 * (number >> (host if place < 8 else pair) & 1)
            at = 100 * MS * number + 7_800_000 * host
            began, ended = (round(ms * MS) + at for ms in (arrival, end))
            given.append(
                UnassignedCall(rank, 10 * number + place, began, ended + 1000 * later_us, number, f"node{host}")
            )

    assert found(given, 10) == [{"tensor"}] * 8 + [{"data"}] * 2


def test_where_all_end_together_it_is_the_whole_job_that_meets() -> None:
    assert found(calls(TOGETHER, TOGETHER, TENSOR), 3) == [{"job"}, {"job"}, {"tensor"}]


def test_pairs_that_end_far_apart_did_not_meet_although_their_times_allow_it() -> None:
    # given calls in which all ranks are at once, and pairs, each within 1 ms, that end 9 ms after the others
    apart = {0: (10.0, 20.0), 2: (10.0, 21.0), 1: (10.0, 29.0), 3: (10.0, 30.0)}

    assert found(calls(TOGETHER, TOGETHER, apart), 3) == [{"job"}, {"job"}, {"data"}]


def test_pairs_of_one_host_that_end_now_earlier_and_now_later_than_the_others_did_not_meet() -> None:
    # given short kernels: those of one pair end together, the pairs 10 to 60 us apart, another way each iteration
    #   tensor 0-1  |--|             |--|      |--|
    #   tensor 2-3     |--|       |--|            |--|
    apart_us = [10, -20, 60, -10, 30]
    given = [
        UnassignedCall(rank, number, at - 20_000, at + 1_000 * (rank % 2), number, "node0")
        for number, us in enumerate(apart_us)
        for rank in range(4)
        for at in [(number + 1) * MS + (1_000 * us if rank > 1 else 0)]
    ]

    assert {group.description for _, group in infer(given, GROUPS)} == {"tensor"}

    # then of gloo's calls, whose threads end when they are scheduled, such times tell nothing
    of_hosts = [replace(call, on_device=False) for call in given]
    assert {group.description for _, group in infer(of_hosts, GROUPS)} == {"job"}


def test_ranks_that_meet_are_as_far_apart_in_each_iteration_as_their_clocks() -> None:
    # given calls of all four, and clocks of one host that are up to 60 us apart
    given = [
        UnassignedCall(rank, number, at - 20_000, at, number, "node0")
        for number in range(5)
        for rank in range(4)
        for at in [(number + 1) * MS + 20_000 * rank]
    ]

    assert {group.description for _, group in infer(given, GROUPS)} == {"job"}


def test_a_pair_that_is_always_late_by_as_much_did_not_meet_the_one_with_which_it_ends_elsewhere() -> None:
    # given one host whose clocks are up to 30 us apart, and of 16 calls an iteration every fourth of pairs, of which
    # the second is always 12 us later; the others of all
    #   tensor 0-1  |--|          |--|
    #   tensor 2-3     |--|          |--|
    #   all                 |--|          |--|
    given = [
        UnassignedCall(rank, place, at - 20_000, at, number, "node0")
        for number in range(4)
        for rank in range(4)
        for place in range(16)
        for at in [(16 * number + place + 1) * MS - 10_000 * rank + (12_000 if place % 4 == 0 and rank > 1 else 0)]
    ]

    found_groups = {(call.call_id % 4 == 0, group.description) for call, group in infer(given, GROUPS)}
    assert found_groups == {(True, "tensor"), (False, "job")}


def test_ranks_that_make_more_calls_than_others_are_a_group_of_their_own() -> None:
    # given pairs that decode 3 and 5 tokens in each step: at the last places nobody else calls
    pair = {0: (10.0, 11.0), 1: (10.0, 11.0)}
    given = [
        UnassignedCall(
            rank, place, *(round((100 * number + 5 * place + at) * MS) for at in pair[rank % 2]), number, None
        )
        for number in range(5)
        for rank in range(4)
        for place in range(5 if rank > 1 else 3)
    ]

    last = {group.ranks for call, group in infer(given, GROUPS) if call.call_id > 2}
    assert last == {(2, 3)}


def test_where_no_group_fits_none_is_named() -> None:
    alone = {0: (10.0, 11.0), 1: (20.0, 21.0), 2: (30.0, 31.0), 3: (40.0, 41.0)}
    on_one_host = [replace(call, host="node0") for call in calls(DATA, TENSOR, alone)]

    assert found(on_one_host, 3) == [{"data"}, {"tensor"}, set()]


def test_groups_of_which_one_rank_was_recorded_each_do_not_hide_the_one_that_meets() -> None:
    # given pairs of ranks 0 to 3 with 4 to 7, which have no trace, and calls of all four whose ends scatter by 1 ms
    pairs = [ProcessGroup(f"p{rank}", "pairs", (rank, rank + 4)) for rank in range(4)]
    scattered = {rank: (10.0, 30.0 + 0.3 * rank) for rank in range(4)}

    found_groups = {group.name for _, group in infer(calls(scattered), [*pairs, ProcessGroup("t", "tp", (0, 1, 2, 3))])}
    assert found_groups == {"t"}


def test_groups_that_a_process_makes_again_are_those_that_it_had() -> None:
    # given a second model of the same processes, and a library that wants a pipeline's group of its own
    again = [replace(group, name=f"again {group.name}") for group in GROUPS]
    stages = [ProcessGroup("8", "pipeline", (0, 1)), ProcessGroup("9", "pipeline", (2, 3))]
    others = [replace(group, name=f"{group.name}b", description="embedding of the pipeline") for group in stages]

    assert divisions([*GROUPS, *again]) == divisions(GROUPS)
    assert {rank: group.name for rank, group in pipeline_of([*stages, *stages, *others]).items()} == {
        0: "8", 1: "8", 2: "9", 3: "9",
    }  # fmt: skip
    assert pipeline_of([*stages, ProcessGroup("a", "pp", (0, 2)), ProcessGroup("b", "pp", (1, 3))]) == {}
