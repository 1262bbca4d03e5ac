"""Which receive belongs to which send, and why some have no other end."""

import json

from tests.given import MS, US, Trace, rows_of
from tests.stories import told

ENDPOINTS = "SELECT rank, op, peer, tag, is_batched FROM align.endpoint ORDER BY rank, endpoint_id"
MESSAGES = """
SELECT source_rank, destination_rank, sequence, meeting_id
FROM align.message ORDER BY source_rank, destination_rank, sequence
"""
PHASES = """
SELECT phase, CAST(SUM(duration_ns) AS BIGINT)
FROM timeline.segment WHERE rank = ? AND phase IN ('communication', 'transfer', 'wait') AND start_ns >= 100
GROUP BY phase ORDER BY phase
"""
ALONE = "SELECT rank, endpoint_id, reason FROM align.unmatched_endpoint ORDER BY rank, endpoint_id"


class TestOneKernelForSeveral:
    """Batched sends and receives: the kernel has no arguments, the calls before it have."""

    # stages of ranks 4, 5, 6; rank 5 receives from 4 and sends to 6 with one kernel, at once
    # rank 4   |send 100–150|
    # rank 5      |recv, send 120–160|
    # rank 6              |recv 140–160|
    RANKS = (4, 5, 6)

    def _stages(self) -> list[Trace]:
        first = Trace(4).collective(10, 90).exchange(100, 150, [("send", 1)], ranks=self.RANKS)
        middle = Trace(5).collective(10, 90).exchange(120, 160, [("recv", 0), ("send", 2)], ranks=self.RANKS)
        last = Trace(6).collective(10, 90).exchange(140, 160, [("recv", 1)], ranks=self.RANKS)
        return [first, middle, last]

    def test_peers_are_the_places_in_the_group_that_the_calls_state(self) -> None:
        store = told(*self._stages(), stage="align")

        assert rows_of(store, ENDPOINTS) == [
            (4, "send", 5, 0, True),
            (5, "recv", 4, 0, True),
            (5, "send", 6, 0, True),
            (6, "recv", 5, 0, True),
        ]

    def test_one_kernel_meets_several_ranks(self) -> None:
        store = told(*self._stages(), stage="timeline")

        assert rows_of(store, MESSAGES) == [(4, 5, 0, 0), (5, 6, 0, 1)]
        times = "source_rank, ready_ns, posted_ns, received_ns, late_rank, wait_ns, transfer_ns"
        assert rows_of(store, f"SELECT {times} FROM timeline.message ORDER BY message_id") == [
            (4, 100, 120, 160, 5, 20, 40),
            (5, 120, 140, 160, 6, 20, 20),
        ]
        assert rows_of(store, ALONE) == []

    def test_it_transfers_only_once_all_of_them_are_there(self) -> None:
        # rank 5 is there at 120, rank 6 at 140: until then rank 5 waits, although rank 4's part may be under way.
        traces = [trace.step(1, 0, 200) for trace in self._stages()]
        store = told(*traces, stage="timeline")

        assert rows_of(store, PHASES, [5]) == [("transfer", 20), ("wait", 20)]

    def test_what_two_ranks_exchange_in_one_kernel_each_is_one_meeting(self) -> None:
        traces = [
            Trace(rank).exchange(100, 150, [("send", 1 - rank), ("recv", 1 - rank)], ranks=[0, 1]) for rank in (0, 1)
        ]
        store = told(*traces, stage="timeline")

        assert rows_of(store, MESSAGES) == [(0, 1, 0, 0), (1, 0, 0, 0)]
        met = "SELECT collective_id, rank, direction FROM align.match ORDER BY rank"
        assert rows_of(store, met) == [(0, 0, "both"), (0, 1, "both")]
        # 1,000 elements of 4 bytes each way
        assert rows_of(store, "SELECT op, size_bytes, complete FROM timeline.collective") == [
            ("send_recv", 4_000, True)
        ]

    def test_later_messages_between_the_same_ranks_are_paired_in_order(self) -> None:
        traces = [Trace(0), Trace(1)]
        for n in range(4):
            traces[0].exchange(100 * n + 50, 100 * n + 90, [("send", 1)], ranks=[0, 1])
            traces[1].exchange(100 * n + 60, 100 * n + 90, [("recv", 0)], ranks=[0, 1])
        store = told(*traces, stage="timeline")

        paired = "SELECT ready_ns, posted_ns FROM timeline.message ORDER BY message_id"
        assert rows_of(store, paired) == [(100 * n + 50, 100 * n + 60) for n in range(4)]

    def test_a_kernel_of_a_collective_in_between_carries_no_message(self) -> None:
        # host     |c10d::send|  |record of an all-reduce, launch|  |launch of the batch|
        trace = Trace(0).exchange(100, 150, [("send", 1)], ranks=[0, 1], issue_ns=62).collective(70, 95, issue_ns=60)
        store = told(trace, stage="align")

        carried = (
            "SELECT c.op, c.raw_arrival_ns FROM align.endpoint JOIN align.call AS c ON c.event_id = carrier_event_id"
        )
        assert rows_of(store, carried) == [("send", 100)]


class TestAlone:
    """Ends of messages that have no other end are counted with the reason."""

    def test_of_three_sends_to_a_rank_that_receives_two_one_is_alone(self) -> None:
        first, second = Trace(0), Trace(1)
        for n in range(3):
            first.step(n, 100 * n, 100 * n + 100).exchange(100 * n + 50, 100 * n + 90, [("send", 1)], ranks=[0, 1])
            second.step(n, 100 * n, 100 * n + 100)
            if n < 2:
                second.exchange(100 * n + 60, 100 * n + 90, [("recv", 0)], ranks=[0, 1])
        store = told(first, second, stage="align")

        assert rows_of(store, ALONE) == [(0, 2, "no_partner")]
        issues = "SELECT code, count, first_at FROM meta.issue"
        assert rows_of(store, issues) == [("message_unmatched", 1, "rank 0, no_partner")]

    def test_what_a_rank_says_it_sends_to_itself_meets_nobody(self) -> None:
        # given a rank that names its own place, and clocks that its messages would tie
        own = Trace(4).exchange(100, 150, [("send", 0)], ranks=(4, 5)).exchange(160, 190, [("recv", 0)], ranks=(4, 5))
        other = Trace(5).exchange(100, 150, [("recv", 1)], ranks=(4, 5))

        store = told(own, other, stage="align")

        assert rows_of(store, MESSAGES) == []
        assert len(rows_of(store, ALONE)) == 3

    def test_a_peer_without_a_file_is_the_reason(self) -> None:
        store = told(Trace(0).exchange(50, 90, [("send", 1)], ranks=[0, 1]), stage="align")

        assert rows_of(store, ALONE) == [(0, 0, "peer_unrecorded")]
        assert rows_of(store, "SELECT reason FROM align.unmatched") == [("peer_unrecorded",)]

    def test_a_wait_for_a_rank_without_a_file_is_not_told_from_transfer(self) -> None:
        # rank 1 exchanges with rank 0, whose file is here, and with rank 2, whose file is not
        first = Trace(0).step(1, 0, 200).exchange(110, 150, [("send", 1)], ranks=[0, 1, 2])
        second = Trace(1).step(1, 0, 200).exchange(100, 150, [("recv", 0), ("send", 2)], ranks=[0, 1, 2])
        store = told(first, second, stage="timeline")

        assert rows_of(store, PHASES, [1]) == [("communication", 40), ("wait", 10)]

    def test_without_recorded_shapes_nothing_names_the_peer(self) -> None:
        trace = Trace(0).exchange(50, 90, [("send", 1)], ranks=[0, 1, 2])
        trace.arguments.clear()
        store = told(trace, Trace(1), stage="align")

        assert rows_of(store, ALONE) == [(0, 0, "peer_unknown")]


def test_sends_of_hosts_begin_with_their_call_and_tags_tell_them_apart() -> None:
    # rank 0 sends tag 7, then tag 8; rank 1 receives tag 8 first
    groups = [("3", "mesh_pp", [0, 1]), ("1", "mesh_dp", [0, 2]), ("2", "mesh_dp", [1, 3]), ("4", "mesh_pp", [2, 3])]

    def call(trace: Trace, op: str, tag: int, start_ns: int, end_ns: int) -> None:
        args = {"Concrete Inputs": ["", "", str(1 - trace.rank), str(tag)]}  # type: ignore[operator]
        trace.arguments.append({"event_id": len(trace.events), "args": json.dumps(args)})
        trace.event("cpu_op", "c10d::send" if op == "send" else "c10d::recv_", start_ns, start_ns + 20)
        trace.event("user_annotation", f"gloo:{op}", start_ns + 10, end_ns)

    first, second = Trace(0, groups=groups), Trace(1, groups=groups)
    call(first, "send", 7, 100, 150)
    call(first, "send", 8, 200, 250)
    call(second, "recv", 8, 90, 240)
    call(second, "recv", 7, 300, 340)
    store = told(first, second, stage="timeline")

    assert rows_of(store, "SELECT tag, ready_ns, posted_ns, late_rank FROM timeline.message ORDER BY tag") == [
        (7, 100, 300, 1),
        (8, 200, 90, 0),
    ]


def host_call(trace: Trace, op: str, peer: int, start_ns: int, end_ns: int) -> None:
    """A send or receive of gloo: the call, and the work under its own name until it is asked for."""
    args = {"Concrete Inputs": ["", "", str(peer), "0"]}
    trace.arguments.append({"event_id": len(trace.events), "args": json.dumps(args)})
    trace.event("cpu_op", "c10d::send" if op == "send" else "c10d::recv_", start_ns, start_ns + 2)
    trace.event("user_annotation", f"gloo:{op}", start_ns + 1, end_ns)


def host_exchange(trace: Trace, start_ns: int, end_ns: int, *, to: int, source: int) -> None:
    """A send and a receive that gloo records with their shapes and the host awaits together; then work until 100."""
    for op, peer, at_ns in (("send", to, start_ns), ("recv", source, start_ns + 3)):
        host_call(trace, op, peer, at_ns, end_ns)
        shapes = {"Input Dims": [[1_000]], "Input type": ["float"]}
        trace.arguments.append({"event_id": len(trace.events) - 1, "args": json.dumps(shapes)})
    trace.host_work("aten::mm", end_ns, 100)


class TestOfHosts:
    """Sends and receives that hosts issue at once (batch_isend_irecv on gloo)."""

    @staticmethod
    def _stages() -> list[Trace]:
        # rank 0   |forward 0–100|send, receive 100––––––––––––––183|backward 185–200|
        # rank 1   |forward 0–––––––––––––––150|send, receive 150––183|backward 185–200|
        traces = [Trace(rank).step(1, 0, 200) for rank in range(2)]
        for trace, peer, ready_ns in zip(traces, (1, 0), (100, 150), strict=True):
            trace.host_work("aten::mm", 0, ready_ns)
            host_call(trace, "send", peer, ready_ns, 180)
            host_call(trace, "recv", peer, ready_ns + 5, 183)
            trace.host_work("aten::mm", 185, 200)
        return traces

    def test_what_is_awaited_together_is_one_call_that_ends_with_the_last_of_it(self) -> None:
        store = told(*self._stages(), stage="timeline")

        calls = "SELECT rank, op, raw_arrival_ns, raw_end_ns FROM align.call ORDER BY rank"
        assert rows_of(store, calls) == [(0, "send_recv", 100, 183), (1, "send_recv", 150, 183)]
        assert rows_of(store, "SELECT last_rank, skew_ns, transfer_ns FROM timeline.collective") == [(1, 50, 33)]

    def test_opposite_orders_of_what_is_awaited_together_do_not_contradict(self) -> None:
        # each of the two sends before it receives: one after the other, either would come before the other
        store = told(*self._stages(), stage="graph")

        assert rows_of(store, "SELECT rank, position, arrival_ns FROM graph.arrival ORDER BY rank") == [
            (0, 0, 100),
            (1, 0, 150),
        ]
        assert rows_of(store, "SELECT code FROM meta.issue") == []

    def test_what_is_asked_for_one_after_another_are_calls_of_their_own(self) -> None:
        # rank 0   |send 10–90 is asked for behind the product|      |mm 40–80|
        # rank 0        |receive 20–30|
        first, second = (Trace(rank).step(1, 0, 100) for rank in range(2))
        host_call(first, "send", 1, 10, 90)
        host_call(first, "recv", 1, 20, 30)
        first.host_work("aten::mm", 40, 80)
        host_call(second, "recv", 0, 12, 15)
        host_call(second, "send", 0, 18, 30)
        store = told(first, second, stage="align")

        assert rows_of(store, "SELECT rank, op, raw_end_ns FROM align.call ORDER BY rank, call_id") == [
            (0, "send", 90),
            (0, "recv", 30),
            (1, "recv", 15),
            (1, "send", 30),
        ]

    def test_a_send_is_over_when_the_other_rank_has_it_however_late_it_is_asked_for(self) -> None:
        # rank 0   |send 10 –––––––––––––––––––––– 90|, mm 20–60: until 60 it computes, then it idles to ask at 90
        # rank 1   |receive 5–30|
        first, second = (Trace(rank).step(1, 0, 100) for rank in range(2))
        host_call(first, "send", 1, 10, 90)
        first.host_work("aten::mm", 20, 60)
        host_call(second, "recv", 0, 5, 30)
        store = told(first, second, stage="timeline")

        ends = "SELECT rank, end_ns, recorded_end_ns FROM timeline.arrival ORDER BY rank"
        assert rows_of(store, ends) == [(0, 30, 90), (1, 30, 30)]
        assert rows_of(store, "SELECT transfer_ns FROM timeline.collective") == [(20,)]
        assert rows_of(store, "SELECT SUM(duration_ns) FROM timeline.phase WHERE rank = 0 AND phase = 'transfer'") == [
            (10,)
        ]

    def test_who_sends_and_receives_at_once_is_blocked_until_it_has_what_it_receives(self) -> None:
        # rank 0   |send, receive 10 ––––––––––– 60|      what it receives is long on its way
        # rank 1   |send, receive 10––30|
        traces = [Trace(rank).step(1, 0, 100).host_work("aten::mm", 0, 10) for rank in range(2)]
        for trace, peer, end in zip(traces, (1, 0), (60, 30), strict=True):
            host_exchange(trace, 10, end, to=peer, source=peer)
        store = told(*traces, stage="timeline")

        assert rows_of(store, "SELECT DISTINCT op FROM align.call") == [("send",)]
        assert rows_of(store, "SELECT rank, end_ns FROM timeline.arrival ORDER BY rank") == [(0, 60), (1, 30)]
        transfer = "SELECT SUM(duration_ns) FROM timeline.phase WHERE rank = 0 AND phase = 'transfer'"
        assert rows_of(store, transfer) == [(50,)]

    def test_in_a_ring_a_rank_is_blocked_until_it_has_what_its_neighbour_sent(self) -> None:
        # each sends to the next one and receives from the one before; what goes from 0 to 1 is long on its way
        # rank 0   |send to 1, receive from 2  10–20|
        # rank 1   |send to 2, receive from 0  10––––––––––––60|
        # rank 2   |send to 0, receive from 1  10––25|
        traces = [Trace(rank).step(1, 0, 100).host_work("aten::mm", 0, 10) for rank in range(3)]
        for rank, (trace, end) in enumerate(zip(traces, (20, 60, 25), strict=True)):
            host_exchange(trace, 10, end, to=(rank + 1) % 3, source=(rank - 1) % 3)
        store = told(*traces, stage="graph")

        met = "FROM {} AS a JOIN timeline.message AS m USING (collective_id) WHERE a.rank = 1 ORDER BY m.source_rank"
        for table in ("timeline.arrival", "graph.arrival"):
            ends = f"SELECT m.source_rank, m.destination_rank, a.end_ns {met.format(table)}"
            assert rows_of(store, ends) == [(0, 1, 60), (1, 2, 25)]

    def test_a_rank_may_as_well_be_blocked_by_what_it_sends(self) -> None:
        # as above, but rank 2 comes at 50, so that rank 1 cannot send before, and has long received
        # rank 0   |send to 1, receive from 2  10–––––––––56|
        # rank 1   |send to 2, receive from 0  10––––––––55|
        # rank 2                                   |50–53|
        traces = [Trace(rank).step(1, 0, 100) for rank in range(3)]
        for rank, (trace, start, end) in enumerate(zip(traces, (10, 10, 50), (56, 55, 53), strict=True)):
            trace.host_work("aten::mm", 0, start)
            host_exchange(trace, start, end, to=(rank + 1) % 3, source=(rank - 1) % 3)
        store = told(*traces, stage="graph")

        met = "FROM graph.arrival AS a JOIN timeline.message AS m USING (collective_id) WHERE a.rank = 1"
        (received,), (sent,) = rows_of(store, f"SELECT a.end_ns {met} ORDER BY m.source_rank")
        assert int(str(received)) < 50
        assert sent == 53


class TestClocks:
    """Messages tie the clocks of stages that nothing else ties."""

    @staticmethod
    def _stages(receiver_early_ns: int) -> list[Trace]:
        # every ms: stage 0 sends at 0, stage 1 sends back at 400 µs; stage 1's clock is 3 ms ahead
        traces = [Trace(0, host="a"), Trace(1, host="b", clock_ns=3 * MS)]
        for n in range(12):
            base = n * MS + (n * n % 7) * 10 * US
            traces[0].exchange(base, base + 50 * US, [("send", 1)], ranks=[0, 1])
            traces[1].exchange(base - receiver_early_ns, base + 50 * US, [("recv", 0)], ranks=[0, 1])
            back = base + 400 * US
            traces[1].exchange(back, back + 50 * US, [("send", 0)], ranks=[0, 1])
            traces[0].exchange(back - receiver_early_ns, back + 50 * US, [("recv", 1)], ranks=[0, 1])
        return traces

    def test_ends_that_agree_both_ways_are_common_and_fit_the_clock(self) -> None:
        store = told(*self._stages(receiver_early_ns=300 * US), stage="align")

        # the order of sends and receives alone would leave 50 µs open on either side
        assert rows_of(store, "SELECT offset_ns, status FROM align.clock WHERE rank = 1") == [(3 * MS, "fitted")]

    def test_sends_that_are_done_before_they_are_received_bound_it(self) -> None:
        traces = self._stages(receiver_early_ns=300 * US)
        for trace in traces:  # what was sent waits in a buffer: the sender is done 40 µs before
            for call, kernel in zip(trace.events[:-1], trace.events[1:], strict=True):
                is_send = kernel["duration_ns"] == 50 * US and "SendRecv" in str(kernel["name"])
                if is_send and "cuda" in str(call["name"]):
                    kernel["duration_ns"] = 10 * US
        store = told(*traces, stage="align")

        status, offset = rows_of(store, "SELECT status, offset_ns FROM align.clock WHERE rank = 1")[0]
        assert status == "bounded"
        assert abs(int(str(offset)) - 3 * MS) <= 50 * US
