"""Which calls of different ranks are one collective, and which group of ranks it joins."""

from collections.abc import Sequence

import pytest

from tests.given import MS, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.store.database import Store

MATCHES = "SELECT collective_id, sequence, rank, call_id, method FROM align.match ORDER BY collective_id, rank"
ISSUES = "SELECT code, severity, count FROM meta.issue WHERE stage = 'align' ORDER BY code"
SIZES = "SELECT size FROM align.communicator"
GROUPS = "SELECT name, description, ranks, size, origin FROM align.communicator ORDER BY communicator_id"
JOINED = """
SELECT DISTINCT rank, ranks, m.origin
FROM align.membership AS m JOIN align.communicator USING (run_id, communicator_id)
ORDER BY ALL
"""

ARRIVALS = """
SELECT LIST(c.raw_arrival_ns ORDER BY rank)
FROM align.match JOIN align.call AS c USING (run_id, rank, call_id)
GROUP BY collective_id ORDER BY collective_id
"""


def _matched(store: Store) -> list[tuple[object, ...]]:
    """For each collective the arrivals (raw, ns) of the calls that it joins, in order of rank."""
    return rows_of(store, ARRIVALS)


class TestPartners:
    """How partners are found."""

    def test_equal_sequences_are_matched_by_place(self) -> None:
        # rank 0   |reduce 10–30|  |gather 50–60|
        # rank 1      |reduce 15–30|  |gather 55–60|
        first = Trace(0).collective(10, 30).collective(50, 60, op="allgather")
        second = Trace(1).collective(15, 30).collective(55, 60, op="allgather")

        store = told(first, second, stage="align")

        assert rows_of(store, MATCHES) == [
            (0, 0, 0, 0, "order"),
            (0, 0, 1, 0, "order"),
            (1, 1, 0, 1, "order"),
            (1, 1, 1, 1, "order"),
        ]

    def test_a_kernel_of_an_earlier_window_at_one_ranks_head_shifts_nothing(self) -> None:
        # rank 0   |head 0–8|  |A 10–30|  |B 50–60|
        # rank 1                |A 15–30|  |B 55–60|
        first = Trace(0).unlaunched_kernel(0, 8).collective(10, 30).collective(50, 60)
        second = Trace(1).collective(15, 30).collective(55, 60)

        store = told(first, second, stage="align")

        assert _matched(store) == [([10, 15],), ([50, 55],)]

    def test_numbers_that_the_trace_states_decide(self) -> None:
        # rank 0                 |#7 10–30|  |#8 50–60|
        # rank 1   |#6 0–9|         |#7 15–30|  |#8 55–60|     (its window began earlier)
        first = Trace(0).collective(10, 30, sequence=7).collective(50, 60, sequence=8)
        second = Trace(1).collective(0, 9, sequence=6).collective(15, 30, sequence=7).collective(55, 60, sequence=8)

        store = told(first, second, stage="align")

        assert rows_of(store, MATCHES) == [
            (0, 7, 0, 0, "sequence_number"),
            (0, 7, 1, 1, "sequence_number"),
            (1, 8, 0, 1, "sequence_number"),
            (1, 8, 1, 2, "sequence_number"),
        ]
        assert rows_of(store, ISSUES) == [("collective_unmatched", "warning", 1)]

    def test_where_one_iteration_differs_the_others_are_matched_within_themselves(self) -> None:
        # rank 0   |step 1: A 10–30     |step 2: A 110–130     |step 3: A 210–230
        # rank 1   |step 1: A 15–30     |step 2: (none)        |step 3: A 215–230
        first, second = Trace(0), Trace(1)
        for number, start in ((1, 0), (2, 100), (3, 200)):
            first.step(number, start, start + 90).collective(start + 10, start + 30)
            second.step(number, start, start + 90)
            if number != 2:
                second.collective(start + 15, start + 30)

        store = told(first, second, stage="align")

        assert _matched(store) == [([10, 15],), ([210, 215],)]
        assert rows_of(store, "SELECT DISTINCT method FROM align.match") == [("order_in_iteration",)]
        assert rows_of(store, ISSUES) == [("collective_unmatched", "warning", 1)]

    def test_different_operations_have_no_certain_partner_and_are_counted(self) -> None:
        store = told(Trace(0).collective(10, 30), Trace(1).collective(15, 30, op="allgather"), stage="align")

        assert rows_of(store, MATCHES) == []
        assert rows_of(store, ISSUES) == [("collective_unmatched", "warning", 2)]

    def test_different_sizes_of_one_all_reduce_are_no_match(self) -> None:
        store = told(Trace(0).collective(10, 30, elements=8), Trace(1).collective(15, 30), stage="align")

        assert rows_of(store, MATCHES) == []

    def test_different_sizes_of_one_all_to_all_are_a_match(self) -> None:
        # Each rank sends as many elements as it likes.
        first = Trace(0).collective(10, 30, op="all_to_allv", elements=8)
        second = Trace(1).collective(15, 30, op="all_to_allv", elements=99)

        store = told(first, second, stage="align")

        assert _matched(store) == [([10, 15],)]

    def test_a_match_under_which_a_rank_ends_before_another_starts_is_refused(self) -> None:
        # rank 0   |A 0–1 ms|                 |B 10–11 ms|                 |C 20–21 ms|
        # rank 1       |A 2–3 ms|   |B 5–6 ms|     |C 12–13 ms|
        # Their ends lie 2, -5 and -8 ms apart: at a constant offset of -5 ms, B alone could be one collective.
        first, second = Trace(0), Trace(1)
        for start, other in ((0, 2), (10, 5), (20, 12)):
            first.collective(start * MS, (start + 1) * MS)
            second.collective(other * MS, (other + 1) * MS)

        store = told(first, second, stage="align")

        assert rows_of(store, MATCHES) == []
        assert rows_of(store, ISSUES) == [("collective_unmatched", "warning", 6)]

    def test_a_rank_alone_is_its_own_collective(self) -> None:
        store = told(Trace(0).collective(10, 30).collective(50, 60), stage="align")

        assert _matched(store) == [([10],), ([50],)]
        assert rows_of(store, ISSUES) == []


class TestGroups:
    """Which group of ranks a call joins."""

    def test_what_the_call_states_is_stated(self) -> None:
        traces = [Trace(rank).collective(10 + rank, 30, group="dp", ranks=[0, 1]) for rank in range(2)]

        store = told(*traces, stage="align")

        assert rows_of(store, GROUPS) == [("dp", "", [0, 1], 2, "stated")]

    def test_a_group_named_by_the_call_is_looked_up_in_the_jobs_list(self) -> None:
        groups = [("11", "mesh_dp", [0, 1])]
        traces = [Trace(rank, groups=groups).collective(10 + rank, 30, group="11") for rank in range(2)]

        store = told(*traces, stage="align")

        assert rows_of(store, GROUPS) == [("11", "mesh_dp", [0, 1], 2, "stated")]

    def test_without_any_word_of_groups_all_ranks_are_assumed_to_be_one(self) -> None:
        store = told(*data_parallel_job([[60, 40, 50]]), stage="align")

        assert rows_of(store, GROUPS) == [("", "", [0, 1, 2], 3, "assumed")]

    def test_the_only_group_of_the_job_is_assumed_with_its_name(self) -> None:
        # Rank 2 is a member whose trace is not here.
        groups = [("0", "default_pg", [0, 1, 2])]
        traces = [Trace(rank, groups=groups).collective(10 + rank, 30) for rank in range(2)]

        store = told(*traces, stage="align")

        assert rows_of(store, GROUPS) == [("0", "default_pg", [0, 1, 2], 3, "assumed")]

    def test_a_group_listed_without_its_members_tells_nothing(self) -> None:
        # as some writers list the group of all ranks, and others one of which they write the first ranks only
        unknown = [("0", "default_pg", []), ("1", "mesh_dp", [])]
        traces = [Trace(rank, groups=unknown).collective(10 + rank, 30) for rank in range(2)]

        store = told(*traces, stage="align")

        assert rows_of(store, GROUPS) == [("", "", [0, 1], 2, "assumed")]

    @pytest.mark.parametrize(("size", "found"), [(2, []), (4, [(4,)]), (None, [(4,)])])
    def test_calls_that_state_another_number_of_members_are_not_of_the_whole_job(
        self, size: int | None, found: list[tuple[int]]
    ) -> None:
        # as PyTorch 2.0 to 2.3 state the number alone: four ranks in pairs, or in one group
        traces = [Trace(rank).collective(10 + rank, 30) for rank in range(4)]
        for trace in traces:
            trace.collectives[0]["group_size"] = size

        store = told(*traces, stage="align", world_size=4)

        assert rows_of(store, SIZES) == found

    def test_a_group_may_be_larger_than_what_was_recorded_of_it(self) -> None:
        # given ranks 0 and 1 of a job of which nothing says more than that eight ranks communicate
        traces = [Trace(rank).collective(10 + rank, 30) for rank in range(2)]
        for trace in traces:
            trace.collectives[0]["group_size"] = 8

        store = told(*traces, stage="align")

        assert rows_of(store, SIZES) == [(8,)]

    def test_messages_to_a_place_are_not_of_the_whole_job_where_one_would_reach_its_sender(self) -> None:
        # given pipelines (0 2) and (1 3) that name no group; rank 1 is the first of its own, and sends to place 1
        sent = [Trace(rank).exchange(100, 130, [("send", 1)], ranks=[rank, rank + 2]) for rank in (0, 1)]
        received = [Trace(rank).exchange(90, 130, [("recv", 0)], ranks=[rank - 2, rank]) for rank in (2, 3)]
        for trace in (*sent, *received):
            trace.collectives[0] |= {"process_group_name": None, "process_group_ranks": None, "group_size": None}

        store = told(*sent, *received, stage="align")

        assert rows_of(store, "SELECT source_rank, destination_rank FROM align.message") == []
        reasons = rows_of(store, "SELECT DISTINCT reason FROM align.unmatched_endpoint")
        assert reasons == [("communicator_unknown",)]

    def test_where_several_groups_are_listed_the_one_whose_members_overlap_is_inferred(self) -> None:
        # rank 0   |10 – 30 ms|
        # rank 1     |12 – 30 ms|
        # rank 2                 |40 – 60 ms|          tensor-parallel pairs (0 1) and (2 3) overlap,
        # rank 3                   |44 – 60 ms|        data-parallel pairs (0 2) and (1 3) do not
        groups = [("1", "tp", [0, 1]), ("2", "tp", [2, 3]), ("3", "dp", [0, 2]), ("4", "dp", [1, 3])]

        store = told(*_once([(10, 30), (12, 30), (40, 60), (44, 60)], groups), stage="align")

        assert rows_of(store, JOINED) == [
            (0, [0, 1], "inferred"),
            (1, [0, 1], "inferred"),
            (2, [2, 3], "inferred"),
            (3, [2, 3], "inferred"),
        ]

    def test_groups_without_a_description_of_their_own_are_told_apart_by_their_ranks(self) -> None:
        # As above, but all four were made by `new_group`, which describes every group as "undefined".
        pairs = {"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]}
        groups = [(name, "undefined", ranks) for name, ranks in pairs.items()]

        store = told(*_once([(10, 30), (12, 30), (40, 60), (44, 60)], groups), stage="align")

        assert [ranks for _, ranks, _ in rows_of(store, JOINED)] == [[0, 1], [0, 1], [2, 3], [2, 3]]

    def test_a_kernel_of_sends_and_receives_alone_is_of_no_group_where_the_job_has_a_pipeline(self) -> None:
        # Two stages of two replicas in step: ranks 0 and 1 send to 2 and 3, all at once; then the replicas meet.
        # every rank   |send_recv 10 – 20 ms|   |all_reduce 30 – 40 ms|
        groups = [("1", "dp", [0, 1]), ("2", "dp", [2, 3])]
        pipelines = [("3", "PIPELINE_MODEL_PARALLEL_GROUP", [0, 2]), ("4", "PIPELINE_MODEL_PARALLEL_GROUP", [1, 3])]

        def kernels(listed: Sequence[tuple[str, str, Sequence[int]]]) -> list[Trace]:
            return [
                Trace(rank, groups=listed)
                .step(1, 0, 100 * MS)
                .kernel(10 * MS, 20 * MS, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
                .kernel(30 * MS, 40 * MS, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
                for rank in range(4)
            ]

        with_pipeline = told(*kernels([*groups, *pipelines]), stage="align")
        experts = told(*kernels([*groups, ("3", "ep", [0, 2]), ("4", "ep", [1, 3])]), stage="align")

        joined = "SELECT op, COUNT(*) FROM align.call JOIN align.membership USING (run_id, rank, call_id) GROUP BY op"
        assert rows_of(with_pipeline, joined) == [("all_reduce", 4)]
        assert rows_of(with_pipeline, ISSUES) == [("communicator_unknown", "warning", 4)]
        assert sorted(rows_of(experts, joined)) == [("all_reduce", 4), ("send_recv", 4)]

    def test_where_no_listed_group_fits_the_calls_are_counted_and_not_matched(self) -> None:
        # Every rank is done before the next one starts.
        groups = [("1", "tp", [0, 1]), ("2", "tp", [2, 3]), ("3", "dp", [0, 2]), ("4", "dp", [1, 3])]

        store = told(*_once([(10, 15), (20, 25), (30, 35), (40, 45)], groups), stage="align")

        assert rows_of(store, JOINED) == []
        assert rows_of(store, ISSUES) == [("communicator_unknown", "warning", 4)]

    def test_two_groups_of_the_same_ranks_keep_their_own_sequences(self) -> None:
        # rank 0   |tp 10–30|  |dp 50–60|  |tp 70–90|
        # rank 1   |tp 11–30|  |dp 51–60|  |tp 71–90|
        traces = [
            Trace(rank)
            .collective(10 + rank, 30, group="tp", ranks=[0, 1])
            .collective(50 + rank, 60, group="dp", ranks=[0, 1])
            .collective(70 + rank, 90, group="tp", ranks=[0, 1])
            for rank in range(2)
        ]

        store = told(*traces, stage="align")

        found = "SELECT DISTINCT name, m.sequence FROM align.match AS m JOIN align.communicator USING (communicator_id)"
        assert sorted(rows_of(store, found)) == [("dp", 0), ("tp", 0), ("tp", 1)]


def _once(calls_ms: Sequence[tuple[int, int]], groups: Sequence[tuple[str, str, Sequence[int]]]) -> list[Trace]:
    """One iteration with one call of each rank, (start, end) in ms, that says nothing of its group."""
    return [
        Trace(rank, groups=groups).step(1, 0, 100 * MS).collective(start * MS, end * MS)
        for rank, (start, end) in enumerate(calls_ms)
    ]
