"""When iterations start, how long they take, and which of them are not to be judged."""

import pytest

from tests.given import Trace, built, data_parallel_job, rows_of, store_of
from tests.stories import told
from traceforge.records import Issue
from traceforge.store.issues import issue_rows

ITERATIONS = "SELECT iteration, start_ns, duration_ns, ranks FROM timeline.iteration ORDER BY iteration"
RANK_ITERATIONS = "SELECT iteration, rank, start_ns, duration_ns FROM timeline.rank_iteration ORDER BY iteration, rank"


def test_an_iteration_lasts_from_the_first_start_to_the_last_end_of_any_rank() -> None:
    # rank 0   |10–––––––––90|
    # rank 1        |20––––––––––––110|
    store = told(Trace(0).step(7, 10, 90), Trace(1, clock_ns=0).step(7, 20, 110), stage="timeline")

    assert rows_of(store, ITERATIONS) == [(7, 10, 100, 2)]


def test_an_iteration_ends_when_what_it_issued_has_ended_and_the_next_starts_no_earlier() -> None:
    # host     |step 1: 0–––––50|step 2: 50––––––––100|
    # device              |all-reduce 40–––70|           issued in step 1
    trace = Trace().step(1, 0, 50).step(2, 50, 100).collective(40, 70)

    store = told(trace, stage="timeline")

    assert rows_of(store, RANK_ITERATIONS) == [(1, 0, 0, 70), (2, 0, 70, 30)]


def test_a_collective_belongs_to_the_step_that_issued_it_not_to_the_one_it_ran_in() -> None:
    # host     |step 1: 0–––50|step 2: 50–––––––100|      issued at 45
    # device                     |all-reduce 60–80|
    trace = Trace().step(1, 0, 50).step(2, 50, 100).collective(60, 80, issue_ns=45)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT iteration, arrival_ns FROM timeline.arrival") == [(1, 60)]


def test_a_collective_issued_between_two_steps_belongs_to_none() -> None:
    trace = Trace().step(1, 0, 50).step(2, 70, 100).collective(55, 60)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT iteration FROM timeline.arrival") == [(None,)]
    assert rows_of(store, RANK_ITERATIONS) == [(1, 0, 0, 50), (2, 0, 70, 30)]


@pytest.mark.parametrize(
    ("calls_in", "steps", "partial"),
    [
        # Gradients are accumulated over three steps; the recording ends two steps into the next round.
        ([2, 5], 8, [6, 7]),
        # It ends with a round.
        ([2, 5], 6, []),
        # Each step calls but the last, an evaluation say: no round is cut off.
        ([0, 1, 2], 4, []),
        # Ranks that go on alone for longer than ever before do so for another reason.
        ([2, 5], 9, []),
        ([0], 4, []),
        ([], 4, []),
    ],
)
def test_steps_of_a_round_whose_meeting_was_not_recorded_are_partial(
    calls_in: list[int], steps: int, partial: list[int]
) -> None:
    traces = [Trace(rank) for rank in range(2)]
    for trace in traces:
        for i in range(steps):
            trace.step(i, 100 * i, 100 * i + 100).kernel(100 * i, 100 * i + 60)
            if i in calls_in:
                trace.collective(100 * i + 60, 100 * i + 80)

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT iteration FROM timeline.iteration WHERE is_partial ORDER BY iteration") == [
        (i,) for i in partial
    ]


@pytest.mark.parametrize(
    ("computes", "flags"),
    [
        # The median of 90, 30, 30, 30 ns (and 10 ns of transfer each) is 40; the first is more than twice that.
        ([90, 30, 30, 30], [True, False, False, False]),
        # Just twice the median is not more than twice.
        ([70, 30, 30, 30], [False, False, False, False]),
        # Only the first iteration warms up; a slow one later is to be explained.
        ([30, 90, 30, 30], [False, False, False, False]),
        ([90, 30, 30], [True, False, False]),
        # Several iterations in a row may warm up.
        ([130, 90, 30, 30, 30, 30, 30], [True, True, False, False, False, False, False]),
        # But not half of the run, and not after one that did not.
        ([30, 90, 90, 30, 30, 30], [False] * 6),
        # What returns is no warm-up: 90, 85 and 95 ns (100, 95 and 105 with the transfer) are much the same.
        ([90, 30, 30, 85, 30, 30, 95, 30], [False] * 8),
        # Once later, or at less than nine tenths, shows nothing.
        ([90, 30, 30, 90, 30, 30, 30, 30], [True, *[False] * 7]),
        ([90, 30, 30, 75, 30, 30, 75, 30], [True, *[False] * 7]),
        # Two iterations are too few to tell.
        ([90, 30], [False, False]),
    ],
)
def test_first_iterations_of_more_than_twice_the_median_are_warm_up(computes: list[int], flags: list[bool]) -> None:
    job = data_parallel_job([[compute, 20] for compute in computes])

    store = told(*job, stage="timeline")

    assert rows_of(store, "SELECT is_warmup FROM timeline.iteration ORDER BY iteration") == [(flag,) for flag in flags]


def test_an_iteration_that_a_rank_did_not_record_is_partial() -> None:
    # rank 0   |step 1|step 2|
    # rank 1   |step 1|
    store = told(Trace(0).step(1, 0, 50).step(2, 50, 100), Trace(1).step(1, 0, 50), stage="timeline")

    assert rows_of(store, "SELECT iteration, ranks, is_partial FROM timeline.iteration ORDER BY iteration") == [
        (1, 2, False),
        (2, 1, True),
    ]


def test_an_iteration_whose_calls_lack_partners_where_a_rank_lost_its_record_is_partial() -> None:
    # given eight steps of three ranks, of which rank 2 lost what its device did in steps 3 and 4
    traces = [Trace(rank) for rank in range(3)]
    for number in range(8):
        start = 1_000 * number
        compute = 100 + 50 * (number % 3)
        for trace in traces:
            trace.step(number, start, start + 1_000)
            if trace.rank < 2 or number not in (3, 4):
                trace.kernel(start, start + compute).collective(start + compute, start + 900)

    store = told(*traces, stage="timeline")

    partial = "SELECT iteration FROM timeline.iteration WHERE is_partial ORDER BY iteration"
    assert rows_of(store, partial) == [(3,), (4,)]


def test_an_iteration_in_which_a_rank_lost_more_of_its_calls_than_usual_is_partial() -> None:
    # given eight steps of ten all-reduces, of which rank 2 lost two in step 3 and one in step 5
    traces = [Trace(rank) for rank in range(3)]
    lost = {(3, 4), (3, 5), (5, 6)}
    for number in range(8):
        for trace in traces:
            trace.step(number, 10_000 * number, 10_000 * (number + 1))
            for call in range(10):
                start = 10_000 * number + 1_000 * call
                compute = 100 + 30 * ((7 * number + 3 * call) % 11)
                if trace.rank < 2 or (number, call) not in lost:
                    trace.kernel(start, start + compute)
                    trace.collective(start + compute, start + 900, sequence=10 * number + call)

    store = told(*traces, stage="timeline")

    # then a tenth, as in step 5, is not too much
    partial = "SELECT iteration FROM timeline.iteration WHERE is_partial ORDER BY iteration"
    assert rows_of(store, partial) == [(3,)]


@pytest.mark.parametrize("what", ["kernel", "cuda_runtime"])
def test_an_iteration_in_which_device_work_of_a_rank_or_its_launch_has_no_time_is_partial(what: str) -> None:
    # given a rank whose profiler wrote no time for the kernel of its second iteration, or for its launch
    store = store_of(*data_parallel_job([[30, 20], [30, 20], [30, 20]]))
    ((number,),) = rows_of(
        store,
        "SELECT correlation FROM raw.event WHERE source_id = 1 AND category = 'kernel' AND name = 'gemm' "
        "ORDER BY raw_start_ns LIMIT 1 OFFSET 1",
    )
    ((event,),) = rows_of(
        store,
        "SELECT event_id FROM raw.event WHERE source_id = 1 AND correlation = ? AND category = ?",
        [number, what],
    )
    store.execute("UPDATE raw.occurrence SET raw_start_ns = NULL WHERE source_id = 1 AND event_id = ?", [event])
    said = [Issue("kineto_stray_time", "warning", 1, None, "")]
    store.append("meta.issue", issue_rows(0, 1, "ingest", said))

    built(store, "timeline")

    assert rows_of(store, "SELECT rank, iteration, events, untimed FROM timeline.untimed_work") == [(1, 1, 2, 1)]
    assert rows_of(store, "SELECT is_partial FROM timeline.iteration ORDER BY iteration") == [
        (False,),
        (True,),
        (False,),
    ]


def test_a_trace_without_steps_is_one_partial_iteration() -> None:
    store = told(Trace().kernel(10, 40).kernel(60, 90), stage="timeline")

    assert rows_of(store, "SELECT iteration, start_ns, duration_ns, is_partial FROM timeline.iteration") == [
        (0, 10, 80, True)
    ]


class TestUnmarkedSteps:
    """Steps inferred from the optimizer, where no ProfilerStep marks them."""

    STEPS = "SELECT iteration, raw_start_ns, raw_end_ns, is_whole FROM align.step ORDER BY iteration"

    @staticmethod
    def _trace(first_call: int) -> Trace:
        # host   |calls…|Optimizer.step|calls…|Optimizer.step|calls…|Optimizer.step|one call of the next
        trace = Trace()
        for base in (1000, 1100, 1200):
            for call in range(first_call if base == 1000 else 0, 3):
                trace.collective(base + 20 * call, base + 20 * call + 10)
            trace.host_work("Optimizer.step#SGD.step", base + 70, base + 90, "user_annotation")
        return trace.collective(1310, 1320)

    def test_a_step_that_the_window_cuts_is_kept_and_marked(self) -> None:
        store = told(self._trace(first_call=0), stage="timeline")

        assert rows_of(store, self.STEPS) == [
            (0, 1000, 1090, True),
            (1, 1090, 1190, True),
            (2, 1190, 1290, True),
            (3, 1290, 1320, False),
        ]
        assert rows_of(store, "SELECT iteration, is_partial FROM timeline.iteration ORDER BY 1")[-1] == (3, True)

    def test_a_window_that_begins_within_a_step_marks_the_first_one(self) -> None:
        store = told(self._trace(first_call=2), stage="align")

        assert rows_of(store, "SELECT is_whole FROM align.step ORDER BY iteration") == [
            (False,), (True,), (True,), (False,),
        ]  # fmt: skip


def test_batches_of_another_kind_than_most_are_kept_but_not_judged() -> None:
    # rank 0   |prefill 0–90|decode 90–100|decode 100–110|decode 110–120|decode 120–130|
    # rank 1   |prefill 0–90|decode 90–100|prefill 100–110|decode 110–120|decode 120–130|
    decode, prefill = "step[DECODE bs=8]", "step[EXTEND bs=1 toks=107]"
    names = ([prefill, decode, decode, decode, decode], [prefill, decode, prefill, decode, decode])
    starts_ns = [0, 90, 100, 110, 120, 130]
    traces = [Trace(rank) for rank in (0, 1)]
    for trace, batches in zip(traces, names, strict=True):
        for name, start_ns, end_ns in zip(batches, starts_ns, starts_ns[1:], strict=False):
            trace.host_work(name, start_ns, end_ns, "user_annotation")

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT is_partial, annotation FROM timeline.iteration ORDER BY iteration") == [
        (True, "step[EXTEND bs=# toks=#]"),
        (False, "step[DECODE bs=#]"),
        (True, "step[DECODE bs=#], step[EXTEND bs=# toks=#]"),
        (False, "step[DECODE bs=#]"),
        (False, "step[DECODE bs=#]"),
    ]
    assert rows_of(store, "SELECT code, detail FROM meta.issue WHERE stage = 'align' AND code LIKE 'iter%'") == [
        (
            "iterations_from_batches",
            "iterations are batches; 30 % of them are of another kind than most, and not judged",
        )
    ]


def test_two_runs_in_one_database_keep_apart() -> None:
    # run 0   |step 1: 0–50|      run 1   |step 1: 0–80|
    store = store_of(Trace(0).step(1, 0, 50), Trace(0, path="other.json").step(1, 0, 80))
    store.execute("INSERT INTO meta.run VALUES (1, 'other', NULL)")
    store.execute("UPDATE meta.source SET run_id = 1 WHERE source_id = 1")

    built(store, "timeline")

    assert rows_of(store, "SELECT run_id, iteration, duration_ns FROM timeline.iteration ORDER BY run_id") == [
        (0, 1, 50),
        (1, 1, 80),
    ]
