"""Partners where sequences differ: lost events, windows that begin mid-run, sends and receives, coalesced groups."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.given import MS, US, Trace, rows_of
from tests.stories import told
from traceforge.align.collective_matching import ABSENT, match
from traceforge.align.sequence_alignment import CallSequence, align_sequences, is_renumbered
from traceforge.store.database import Store

ARRIVALS = """
SELECT LIST(c.raw_arrival_ns ORDER BY rank)
FROM align.match JOIN align.call AS c USING (run_id, rank, call_id)
GROUP BY collective_id ORDER BY MIN(c.raw_arrival_ns)
"""
METHODS = "SELECT DISTINCT method FROM align.match"
UNMATCHED = "SELECT rank, call_id, reason FROM align.unmatched ORDER BY ALL"

RUN = 12
PROGRAM = ("allreduce", "allgather", "reduce_scatter")


def _start(n: int) -> int:
    """Start of the n-th collective, ns; no two iterations last equally long."""
    return n * 10 * MS + (n * n * 37 % 101) * 20 * US


def _ranks(kept: list[list[int]], clock_ns: int = 0) -> list[Trace]:
    """Two ranks of one program of which each recorded only the collectives named."""
    traces = [Trace(0), Trace(1, clock_ns=clock_ns, host="node1")]
    for rank, (trace, numbers) in enumerate(zip(traces, kept, strict=True)):
        for n in numbers:
            trace.collective(_start(n) + rank * 100 * US, _start(n) + 2 * MS, op=PROGRAM[n % 3])
    return traces


def _matched(store: Store) -> list[tuple[object, ...]]:
    return rows_of(store, ARRIVALS)


class TestLostEvents:
    """Ranks that recorded different parts of the same sequence."""

    def test_calls_after_a_lost_one_still_find_their_partners(self) -> None:
        # rank 0   0 1 2 3 4 5 6 7 8 9 10 11
        # rank 1   0 1 2 3 · 5 6 7 8 · 10 11
        everything = list(range(RUN))
        kept = [n for n in everything if n not in (4, 9)]

        store = told(*_ranks([everything, kept]), stage="align")

        assert _matched(store) == [([_start(n), _start(n) + 100 * US],) for n in kept]
        assert rows_of(store, METHODS) == [("alignment",)]

    def test_a_window_that_begins_three_steps_later_is_not_matched_by_place(self) -> None:
        # rank 0   0 1 2 3 4 5 6 7 8
        # rank 1         3 4 5 6 7 8 9 10 11     whose clock is 4 ms ahead
        store = told(*_ranks([list(range(9)), list(range(3, 12))], clock_ns=4 * MS), stage="align")

        # By place the kinds would agree as well; the ends would not.
        expected = [([_start(n), _start(n) + 100 * US + 4 * MS],) for n in range(3, 9)]
        assert _matched(store) == expected
        assert rows_of(store, "SELECT offset_ns FROM align.clock WHERE rank = 1") == [(4 * MS,)]

    def test_what_finds_no_partner_is_listed_with_its_reason(self) -> None:
        traces = _ranks([list(range(RUN)), [n for n in range(RUN) if n != 4]])
        traces[1].unlaunched_kernel(0, 5)

        store = told(*traces, stage="align")

        assert rows_of(store, UNMATCHED) == [(0, 4, "no_partner"), (1, 0, "not_launched")]

    def test_three_ranks_that_lost_different_calls_keep_what_all_have(self) -> None:
        traces = [Trace(rank) for rank in range(3)]
        for n in range(RUN):
            for rank, trace in enumerate(traces):
                if (n, rank) not in ((2, 0), (5, 1), (8, 2)):
                    trace.collective(_start(n) + rank * US, _start(n) + MS, op=PROGRAM[n % 3])

        store = told(*traces, stage="align")

        assert len(_matched(store)) == RUN - 3

    @examples(30)
    @given(
        st.sets(st.integers(0, 29), max_size=6), st.sets(st.integers(0, 29), max_size=6), st.integers(-(10**15), 10**15)
    )
    def test_no_two_calls_of_different_collectives_are_ever_paired(
        self, lost: set[int], other_lost: set[int], clock_ns: int
    ) -> None:
        kept, other = ([n for n in range(30) if n not in gone] for gone in (lost, other_lost))
        kind = np.arange(30) % 3
        end = np.array([_start(n) + 2 * MS for n in range(30)])

        pairs = align_sequences(
            CallSequence(kind[kept], kind[kept], kind[kept], end[kept] - 2 * MS, end[kept]),
            CallSequence(kind[other], kind[other], kind[other], end[other] - MS + clock_ns, end[other] + clock_ns),
        )

        assert [(kept[i], other[j]) for i, j in pairs.tolist()] == [(n, n) for n in sorted({*kept} & {*other})]
        assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs.tolist()))


class TestStatedNumbers:
    """Numbers of the trace, which several calls may share."""

    def test_calls_of_one_number_are_told_apart_by_their_place_among_them(self) -> None:
        # A coalesced group of three collectives carries one number.
        traces = [Trace(rank) for rank in range(2)]
        for rank, trace in enumerate(traces):
            for start, number in ((10, 7), (30, 7), (50, 7), (70, 8)):
                trace.collective(start + rank, start + 10, sequence=number)

        store = told(*traces, stage="align")

        assert rows_of(store, "SELECT DISTINCT collective_id, sequence FROM align.match ORDER BY 1") == [
            (0, 7),
            (1, 7),
            (2, 7),
            (3, 8),
        ]
        assert rows_of(store, METHODS) == [("sequence_number",)]

    def test_calls_of_one_number_that_differ_in_operation_are_no_match(self) -> None:
        first = Trace(0).collective(10, 30, sequence=1).collective(40, 50, sequence=2)
        second = Trace(1).collective(11, 30, sequence=1).collective(41, 50, sequence=2, op="allgather")

        store = told(first, second, stage="align")

        assert rows_of(store, "SELECT DISTINCT sequence FROM align.match") == [(1,)]


class TestPairs:
    """What one rank sends another receives."""

    # stage 0   |send 10–40|                        |recv 60–90|
    # stage 1     |recv 20–40|compute…|send 70–90|

    @staticmethod
    def _stages(**arguments: object) -> list[Trace]:
        first = Trace(0).collective(10, 40, op="send", group="pp", ranks=[0, 1], **arguments)  # type: ignore[arg-type]
        first.collective(60, 90, op="recv", group="pp", ranks=[0, 1], **arguments)  # type: ignore[arg-type]
        second = Trace(1).collective(20, 40, op="recv", group="pp", ranks=[0, 1], **arguments)  # type: ignore[arg-type]
        second.collective(70, 90, op="send", group="pp", ranks=[0, 1], **arguments)  # type: ignore[arg-type]
        return [first, second]

    def test_in_a_group_of_two_a_send_meets_the_others_receive(self) -> None:
        store = told(*self._stages(), stage="timeline")

        assert _matched(store) == [([10, 20],), ([60, 70],)]
        assert rows_of(store, METHODS) == [("pair",)]
        assert rows_of(store, "SELECT op, complete, last_rank FROM timeline.collective ORDER BY first_arrival_ns") == [
            ("send_recv", True, 1),
            ("send_recv", True, 1),
        ]

    def test_numbers_of_sends_are_each_ranks_own_and_do_not_decide(self) -> None:
        traces = self._stages()
        for number, row in enumerate([*traces[0].collectives, *traces[1].collectives]):
            row["sequence"] = number

        store = told(*traces, stage="align")

        assert _matched(store) == [([10, 20],), ([60, 70],)]

    @pytest.mark.parametrize("is_named", [True, False])
    def test_in_a_larger_group_the_peer_decides(self, is_named: bool) -> None:
        # ranks 4 → 5 → 6, each step 50 ns later; the receiver of one is the sender of the next
        ranks = [4, 5, 6]
        traces = [Trace(rank) for rank in ranks]
        for place in (0, 1):
            for trace, op, peer in ((traces[place], "send", place + 1), (traces[place + 1], "recv", place)):
                start = 50 * place + 10 * (op == "recv")
                known = {} if is_named else {"group_rank": peer}
                trace.collective(start, 50 * place + 40, op=op, group="pp", ranks=ranks, **known)  # type: ignore[arg-type]
                if is_named:
                    name = "Dst Rank" if op == "send" else "Src Rank"
                    event = trace.collectives[-1]["event_id"]
                    trace.arguments.append({"event_id": event, "args": json.dumps({name: ranks[peer]})})

        store = told(*traces, stage="timeline")

        assert _matched(store) == [([0, 10],), ([50, 60],)]
        assert rows_of(store, "SELECT complete FROM timeline.collective") == [(True,), (True,)]

    def test_a_send_to_nobody_named_stays_unmatched(self) -> None:
        traces = [Trace(rank).collective(10, 20, op="send", group="pp", ranks=[0, 1, 2]) for rank in range(3)]

        store = told(*traces, stage="align")

        assert rows_of(store, UNMATCHED) == [(rank, 0, "peer_unknown") for rank in range(3)]

    def test_a_sender_may_be_done_before_the_receiver_starts_but_not_the_other_way_round(self) -> None:
        def calls(starts: list[int], ends: list[int]) -> CallSequence:
            zeros = np.zeros(len(starts), dtype=np.int64)
            return CallSequence(zeros, zeros + ABSENT, zeros + ABSENT, np.array(starts) * MS, np.array(ends) * MS)

        # Ends agree but for two in four; what is sent early waits in a buffer.
        early, late = calls([0, 10, 20, 30], [1, 11, 25, 35]), calls([4, 14, 20, 30], [5, 15, 25, 35])

        assert len(match([early, late], from_first_to_second=True).sequence) == 4
        assert len(match([early, late]).sequence) < 4


class TestCollectivesWithARoot:
    """In a broadcast the root is done before others come, and they are before others still."""

    @staticmethod
    def _calls(starts_ms: list[int], ends_ms: list[int], rooted: list[int]) -> CallSequence:
        kind = np.array(rooted, dtype=np.int64)
        zeros = np.zeros(len(kind), dtype=np.int64)
        return CallSequence(
            kind, zeros + ABSENT, zeros + ABSENT, np.array(starts_ms) * MS, np.array(ends_ms) * MS, rooted=kind
        )

    def test_beside_collectives_that_need_all_they_tell_nothing(self) -> None:
        # rank 0   |broadcast 0–1|       |all-reduce 20–30|   each 50 ms; the root is gone
        # rank 1              |5–6|      |all-reduce 25–30|   before rank 1 comes
        broadcasts, reductions = range(0, 500, 50), range(20, 520, 50)
        order = [time for pair in zip(broadcasts, reductions, strict=True) for time in pair]
        rooted = [1, 0] * 10
        root = self._calls(order, [time + (1 if one else 10) for time, one in zip(order, rooted, strict=True)], rooted)
        other = self._calls(
            [time + 5 for time in order],
            [time + (6 if one else 10) for time, one in zip(order, rooted, strict=True)],
            rooted,
        )

        assert len(match([root, other]).sequence) == 20

        # while the same times of collectives that all need are no match
        plain = [CallSequence(own.kind, own.stated, own.iteration, own.arrival_ns, own.end_ns) for own in (root, other)]
        assert len(match(plain).sequence) < 20

    @pytest.mark.parametrize("way", ["sends", "gets"])
    def test_alone_they_match_where_one_rank_is_there_before_or_until_all_others(self, way: str) -> None:
        # A broadcast: rank 0 leaves at 1, rank 1 comes at 5. A reduction to rank 0: rank 1 leaves before it comes.
        starts, late = [0, 20, 40, 60], [2, 9, 4, 13]
        after = [s + by for s, by in zip(starts, late, strict=True)]
        first, later = (self._calls(own, [s + 1 for s in own], [1] * 4) for own in (starts, after))

        found = match([first, later] if way == "sends" else [later, first])

        assert (found.method, found.place.tolist()) == ("order", [[0, 0], [1, 1], [2, 2], [3, 3]])

    def test_lost_calls_are_found_by_the_order_in_time_of_those_that_are_left(self) -> None:
        # rank 1 lacks the third broadcast, and comes to each after the root has left
        starts = [0, 20, 40, 60, 90]
        root = self._calls(starts, [s + 1 for s in starts], [1] * 5)
        left = [s + by for s, by in zip(starts, [2, 6, 0, 3, 8], strict=True) if s != 40]
        other = self._calls(left, [s + 1 for s in left], [1] * 4)

        found = match([root, other])

        assert (found.method, found.place.tolist()) == ("alignment", [[0, 0], [1, 1], [3, 2], [4, 3]])


@pytest.mark.parametrize(("swapped", "method"), [(1, "order_of_kind"), (2, "alignment")])
def test_threads_side_by_side_may_begin_calls_of_unlike_kinds_in_either_order(swapped: int, method: str) -> None:
    # rank 0   |A|B|···  each 20 ms; A and B are begun together by two threads
    # rank 1   |B|A|···  in the third iteration; or A behind a call that begins when it has ended
    kind = np.tile([0, 1, 2, 3, 4], 8)
    start = np.repeat(np.arange(8) * 20, 5) * MS + np.tile([0, 0, 8, 9, 10], 8) * MS
    other = kind.copy()
    other[[10, 10 + swapped]] = other[[10 + swapped, 10]]
    none = np.full(40, ABSENT)
    first = CallSequence(kind, none, none, start, start + 4 * MS)
    second = CallSequence(other, none, none, start, start + 4 * MS)

    found = match([first, second])

    assert found.method == method
    if method == "order_of_kind":
        assert found.place[10:12].tolist() == [[10, 11], [11, 10]]


def test_a_coalesced_launch_outside_of_its_records_is_a_call_if_it_says_what_it_is() -> None:
    # host     |record 0–1|   |launch at 20, outside
    # device                  |coalesced 20–30|  whose own arguments name it
    traces = [Trace(rank).collective(0, 9) for rank in range(2)]
    for rank, trace in enumerate(traces):
        trace.kernel(20 + rank, 30, "ncclDevKernel_Generic()", launch_ns=20)
        trace.collectives.append({"event_id": len(trace.events) - 1, "collective_name": "coalesced"})

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT op, is_linked FROM align.call WHERE rank = 0 ORDER BY call_id") == [
        ("all_reduce", True),
        ("coalesced", True),
    ]
    assert len(_matched(store)) == 2


def test_clocks_that_drift_over_a_long_window_do_not_hide_a_match() -> None:
    # Rank 1 gains 40 µs a second for two minutes: 4.8 ms, while each collective takes 1 ms.
    count = 240
    start = np.arange(count) * 500 * MS
    end = start + MS
    zeros = np.zeros(count, dtype=np.int64)
    first = CallSequence(zeros, zeros + ABSENT, zeros + ABSENT, start, end)
    second = CallSequence(zeros, zeros + ABSENT, zeros + ABSENT, start + start // 25_000, end + end // 25_000)

    assert len(match([first, second]).sequence) == count


@pytest.mark.parametrize("labels_agree", [True, False])
def test_a_clock_set_in_mid_run_hides_no_match_if_the_iterations_agree(labels_agree: bool) -> None:
    # given 24 collectives, one an iteration, of 1 ms each; rank 1's clock is set by 40 ms after the tenth
    iteration = np.arange(24)
    start = np.array([_start(n) for n in range(24)])
    later = start + 40 * MS * (iteration >= 10)
    zeros = np.zeros(24, dtype=np.int64)
    first = CallSequence(zeros, zeros + ABSENT, iteration, start, start + MS)
    second = CallSequence(zeros, zeros + ABSENT, iteration if labels_agree else iteration + 1, later, later + MS)

    found = match([first, second])
    assert (found.method == "order" and len(found.sequence) == 24) is labels_agree


def test_ranks_that_read_one_clock_match_though_the_spread_of_their_ends_changes() -> None:
    # rank 0   |0-------12|   in seven of ten, else |0--2|
    # rank 1     |1-2|                                |1-2|
    # At the usual distance of their ends, 10 ms, three of ten would be out of order; as written none is.
    start = np.arange(10) * 20 * MS
    late = np.array([12, 12, 12, 2, 12, 12, 2, 12, 2, 12]) * MS
    kind, stated = np.zeros(10, dtype=np.int64), np.full(10, ABSENT)
    first = CallSequence(kind, stated, np.arange(10), start, start + late)
    second = CallSequence(kind, stated, np.arange(10), start + 1 * MS, start + 2 * MS)

    found = match([first, second])

    assert found.place.tolist() == [[n, n] for n in range(10)]


@pytest.mark.parametrize(
    ("ahead", "apart_ms", "is_contradicted"),
    [
        (3, 151, True),  # three steps of 50 later: clocks are 1 apart
        (-3, -149, True),
        (3, 1, False),  # a rank that counts its steps otherwise
        (3, 6000, False),  # clocks that tell nothing either way
        (0, 151, False),
    ],
)
def test_steps_of_other_numbers_are_not_paired_where_clocks_deny_it(
    ahead: int, apart_ms: int, is_contradicted: bool
) -> None:
    # given seven steps of 50 with two calls each, and one call before the first
    iteration = np.array([-1, *np.repeat(np.arange(10, 17), 2)])
    end_ns = (np.arange(15) * 25 + 40) * MS
    other = np.where(iteration < 0, -1, iteration + ahead)

    assert is_renumbered(iteration, end_ns, other, end_ns + apart_ms * MS) == is_contradicted


def test_ranks_that_record_as_many_steps_of_other_numbers_meet_in_those_of_one_number() -> None:
    # given steady steps of 50, of which rank 0 records 10 to 19 and rank 1, whose clock is 2 ahead, 13 to 22
    traces = []
    for rank, first in enumerate((10, 13)):
        trace = Trace(rank)
        for n in range(first, first + 10):
            start = n * 50 * MS + 2 * MS * rank
            trace.step(n, start, start + 50 * MS).kernel(start, start + 30 * MS)
            trace.collective(start + 30 * MS, start + 40 * MS, group="0", ranks=range(2))
        traces.append(trace)
    store = told(*traces, stage="align timeline")

    matched = "SELECT COUNT(*), MIN(iteration), MAX(iteration) FROM timeline.collective WHERE complete"
    assert rows_of(store, matched) == [(7, 13, 19)]
