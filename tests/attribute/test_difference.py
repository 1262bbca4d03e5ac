"""What a rank does more, or more slowly, than the median rank, and what its finding says of it."""

import pytest

from tests.given import MS, US, Trace, built, rows_of, store_of
from tests.stories import Run, told
from traceforge.attribute.finding_operation import _next_step
from traceforge.store.stage import build_stage

STEP = 10 * MS
DIFFERENT = "SELECT rank, kind, name, calls, peer_calls, excess_ns_per_iteration FROM operation.difference"


def job(*calls: tuple[str, int, int], ranks: int = 4, late: int = 2, iterations: int = 12) -> list[Trace]:
    """Every rank runs aten::mm twice a step for 1 ms; the late one runs instead what is given: name, calls, ns each."""
    traces = []
    for rank in range(ranks):
        trace = Trace(rank)
        for number in range(iterations):
            at = start = number * STEP
            trace.step(number, start, start + STEP)
            for name, count, duration in calls if rank == late else (("aten::mm", 2, MS),):
                for _ in range(count):
                    trace.host_work(name, at, at + 10 * US).kernel(at + 20 * US, at + 20 * US + duration, "gemm",
                                                                   launch_ns=at + US)  # fmt: skip
                    at += duration + 30 * US
            trace.collective(at, start + STEP)
        traces.append(trace)
    return traces


def differing(*calls: tuple[str, int, int], ranks: int = 4) -> Run:
    return told(*job(*calls, ranks=ranks), stage="operation")


def computed(store: Run) -> list[tuple[object, ...]]:
    return rows_of(store, f"{DIFFERENT} WHERE kind <> 'gap'")


@pytest.mark.parametrize("ranks", [3, 4])
def test_more_calls_are_more_work(ranks: int) -> None:
    assert computed(differing(("aten::mm", 5, MS), ranks=ranks)) == [(2, "more_work", "aten::mm", 5.0, 2.0, 3 * MS)]


def test_longer_calls_are_slower_execution() -> None:
    assert computed(differing(("aten::mm", 2, 2 * MS))) == [(2, "slower_execution", "aten::mm", 2.0, 2.0, 2 * MS)]


@pytest.mark.parametrize(("rows", "kind"), [(2_000, "more_work"), (1_000, "slower_execution")])
def test_more_bytes_in_as_many_calls_are_more_work(rows: int, kind: str) -> None:
    # Every rank runs a softmax for 1 ms, which is bytes alone; rank 2 for 2 ms, of twice as many rows or of as many.
    traces = [Trace(rank) for rank in range(4)]
    for number, trace in enumerate(traces):
        own = (rows, 2 * MS) if number == 2 else (1_000, MS)
        for step in range(12):
            at = step * STEP
            trace.step(step, at, at + STEP)
            trace.operation("aten::_softmax", at, at + 10 * US, [[own[0], 64], [], []], ["c10::Half", "", ""])
            trace.kernel(at + 20 * US, at + 20 * US + own[1], "softmax", launch_ns=at + US)
            trace.collective(at + 5 * MS, at + STEP)

    found = told(*traces, stage="operation")

    assert rows_of(found, "SELECT rank, kind, is_work_known FROM operation.difference WHERE kind <> 'gap'") == [
        (2, kind, True)
    ]


def test_what_only_one_rank_does_is_new() -> None:
    found = computed(differing(("aten::mm", 2, MS), ("aten::nonzero", 1, 2 * MS)))
    assert found == [(2, "new_operation", "aten::nonzero", 1.0, 0.0, 2 * MS)]


def test_a_rank_whose_host_was_not_recorded_is_compared_by_kernels() -> None:
    # given rank 2 of four, of which kernels alone were recorded: two a step of 2 ms, as its peers' of 1 ms
    traces = job()
    late = traces[2] = Trace(2)
    for start in range(0, 12 * STEP, STEP):
        late.step(start // STEP, start, start + STEP)
        late.kernel(start, start + 2 * MS).kernel(start + 3 * MS, start + 5 * MS)
        late.collective(start + 5 * MS, start + STEP)

    # then it does nothing of its own
    found = computed(told(*traces, stage="operation"))
    assert found == [(2, "slower_execution", "gemm", 2.0, 2.0, 2 * MS)]


def test_ranks_that_do_the_same_do_not_differ() -> None:
    assert computed(differing(("aten::mm", 2, MS))) == []
    # A hundredth of a step is 100 us: less is no difference.
    assert computed(differing(("aten::mm", 2, MS + 45 * US))) == []


def test_ranks_are_compared_within_their_stage() -> None:
    # given two stages of two ranks: the second computes twice as much by design, and its rank 3 once more
    more = {2: ("aten::mm", 4, MS), 3: ("aten::mm", 5, MS)}
    traces = [job(more.get(rank, ("aten::mm", 2, MS)), late=rank)[rank] for rank in range(4)]
    with built(store_of(*traces), "timeline") as store:
        store.execute("UPDATE timeline.role SET role = rank // 2")
        build_stage(store, "traceforge.operation")
        found = rows_of(store, f"{DIFFERENT} WHERE kind <> 'gap'")

    assert found == [(3, "more_work", "aten::mm", 5.0, 4.0, MS)]


def test_a_finding_names_the_operation_and_asks_for_its_reason() -> None:
    store = told(*job(("aten::mm", 5, MS)))

    ((subject, step),) = rows_of(store, "SELECT subject, next_step FROM attribute.finding WHERE cause = 'slow_compute'")
    assert subject == "2"
    assert "why rank 2 runs aten::mm 5 times an iteration and the median rank 2 times" in str(step)
    first = "SELECT statement FROM attribute.evidence WHERE finding_id = 0 AND direction = 'for' ORDER BY place LIMIT 1"
    assert rows_of(store, first) == [
        ("Rank 2 makes 5 calls of aten::mm an iteration, the median rank 2: 3.00 ms more.",)
    ]


@pytest.mark.parametrize(("peer_calls", "said"), [(58, "Compare the shapes of aten::mm"), (40, "Find out why rank 2")])
def test_a_call_more_at_an_edge_does_not_explain_calls_that_take_longer(peer_calls: int, said: str) -> None:
    # given 59 calls of 1.3 ms, of which the median rank makes nearly as many, or far fewer, of 1 ms
    found = {
        "kind": "more_work", "name": "aten::mm", "calls": 59.0, "peer_calls": float(peer_calls),
        "call_duration_ns": 1_300_000, "peer_call_duration_ns": MS, "excess_ns_per_iteration": 18 * MS,
    }  # fmt: skip
    finding = {"subject": "2", "next_step": "", "delay_ns_per_iteration": 18 * MS}

    assert _next_step(finding, found).startswith(said)


def test_what_comes_once_an_iteration_is_no_plural() -> None:
    store = told(*job(("aten::mm", 2, MS), ("aten::nonzero", 1, 2 * MS)))

    ((step,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE cause = 'slow_compute'")
    assert "why rank 2 alone runs aten::nonzero (once an iteration)" in str(step)
    statements = rows_of(store, "SELECT statement FROM attribute.evidence WHERE direction = 'for' AND place = 0")
    assert [str(statement) for (statement,) in statements] == [
        "Rank 2 spends 2.00 ms an iteration in aten::nonzero (1 call); the median rank makes none."
    ]


def test_a_slow_device_is_still_asked_for_its_clocks() -> None:
    store = told(*job(("aten::mm", 2, 3 * MS)))

    ((step,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE cause = 'slow_compute'")
    # shapes were not recorded: whether rank 2 was given more to do is not known
    says = "aten::mm takes 3.00 ms a call on rank 2, 1.00 ms on the median rank; whether for as much work is not known"
    assert str(step).startswith(says)
    assert "clock, temperature" in str(step)


@pytest.mark.parametrize(
    ("call", "cause"),
    [("cudaMalloc", "allocator, 3.00 ms of them in cudaMalloc"), (None, "nothing launched in time")],
    ids=["a call", "nothing"],
)
def test_a_gap_names_the_call_that_fills_it_or_says_that_nothing_was_launched(call: str | None, cause: str) -> None:
    # given four ranks that compute 2 ms a step; rank 2 spends 3 ms in a call, or in nothing that is known, before that
    #   rank 2        |the call········|gemm····|all-reduce
    #   the others    |gemm····|all-reduce
    traces = []
    for rank in range(4):
        trace, stall = Trace(rank), 3 * MS if rank == 2 else 0
        for number in range(12):
            start = number * STEP
            trace.step(number, start, start + STEP)
            if stall and call:
                trace.host_work(call, start, start + stall, "cuda_runtime")
            at = start + stall
            trace.host_work("aten::mm", at, at + 10 * US).kernel(at, at + 2 * MS, "gemm", launch_ns=at)
            trace.collective(at + 2 * MS, start + STEP)
        traces.append(trace)
    store = told(*traces)

    first = "SELECT statement FROM attribute.evidence WHERE finding_id = 0 AND direction = 'for' ORDER BY place LIMIT 1"
    ((statement,),) = rows_of(store, first)
    assert str(statement) == (
        "The device of rank 2 is idle for 3.00 ms an iteration longer than the median rank's; "
        f"cause of the gaps: {cause}."
    )


@pytest.mark.parametrize(
    ("elements", "step"), [(1_700, "See why rank 2 sends and receives 1.7 times"), (1_050, "aten::mm")]
)
def test_a_rank_that_is_sent_more_is_asked_for_its_routing(elements: int, step: str) -> None:
    # given four ranks of experts, of which rank 2 computes 4 ms where others take 2 ms, after an all-to-all
    traces = []
    for rank in range(4):
        trace, spent, size = Trace(rank), (4 if rank == 2 else 2) * MS, elements if rank == 2 else 1_000
        for number in range(12):
            start = number * STEP
            trace.step(number, start, start + STEP)
            trace.collective(start + 100 * US, start + 200 * US, op="all_to_allv", elements=size)
            at = start + 300 * US
            trace.host_work("aten::mm", at, at + 10 * US).kernel(at + US, at + spent, "gemm", launch_ns=at)
            trace.collective(at + spent, start + STEP)
        traces.append(trace)
    store = told(*traces)

    ((said,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE cause = 'slow_compute'")
    assert str(said).startswith(step)
