"""The verdict on a run: a finding, nothing significant, or why it cannot be known."""

import re

import pytest

from tests.attribute.jobs import traces_of, verdict_of
from tests.fabric.logs import Process, store_of_logs
from tests.given import MS, US, Trace, built, data_parallel_job, store_of
from tests.stories import told
from traceforge.attribute.excluded import seen, without_owner
from traceforge.attribute.log_text import of_logs_alone
from traceforge.attribute.longer_stages import StageLoad, told_of
from traceforge.records import Issue
from traceforge.store.issues import issue_rows
from traceforge.store.stage import stage_documents


def test_a_straggler_is_the_verdict() -> None:
    # given rank 1 that is 40 us late in all of twelve iterations of 150 us
    verdict = verdict_of(*traces_of({(i, 1): 40 * US for i in range(12)}, iterations=12))

    assert (verdict["kind"], verdict["confidence"]) == ("finding", "high")
    assert str(verdict["headline"]).startswith("Rank 1 computes longer than its peers")
    assert verdict["explanation"] == (
        "The 12 iterations judged take 150 µs on average, 40.0 µs (27 %) more than at the job's own typical pace."
    )
    # It runs one kernel more than the others.
    assert str(verdict["next_step"]).startswith("Find out why rank 1 runs gemm 2 times an iteration")


def test_a_rank_that_is_late_for_two_reasons_is_told_with_what_both_cost() -> None:
    # given twelve iterations of 145 us, in which rank 1 computes for 20 us more, and copies for 15 us
    #   rank 0   |compute 100···|wait······|transfer 10|
    #   rank 1   |20|copy 15|compute 100···|transfer 10|
    traces = [Trace(rank) for rank in range(3)]
    for i, now in enumerate(range(0, 12 * 145 * US, 145 * US)):
        for trace in traces:
            begin = now + 35 * US * (trace.rank == 1)
            trace.step(i, now, now + 145 * US)
            if trace.rank == 1:
                trace.kernel(now, now + 20 * US).copy(now + 20 * US, begin)
            trace.kernel(begin, begin + 100 * US).collective(begin + 100 * US, now + 145 * US)

    headline = str(verdict_of(*traces)["headline"])

    assert headline.startswith("Rank 1 computes longer than its peers")
    # 20 and 35 of 145 us
    assert headline.endswith(
        "It costs the job 20.0 µs an iteration (14 %). With the other causes found there: 35.0 µs (24 %)."
    )


def test_long_iterations_are_told_in_milliseconds() -> None:
    # given twelve iterations of 110 ms, alike
    verdict = verdict_of(*data_parallel_job([[100 * MS, 100 * MS]] * 12, transfer_ns=10 * MS))

    assert str(verdict["explanation"]).startswith(
        "The 12 iterations judged take 110 ms on average, no more than at the job's own typical pace. Where the time "
        "goes: Bound by its kernels: the device computes 91 % of each 110 ms step"
    )
    assert str(verdict["explanation"]).endswith(
        "What is slow alike for everyone in all iterations does not show this way. No file says how many ranks the job "
        "has: of others, if there are any, nothing is known."
    )


def test_a_job_whose_size_is_recorded_leaves_nobody_unknown() -> None:
    store = store_of(*data_parallel_job([[100 * MS, 100 * MS]] * 12, transfer_ns=10 * MS), world_size=2)
    with built(store, "attribute"):
        assert "how many ranks" not in str(store.value("SELECT explanation FROM attribute.verdict"))


def test_iterations_that_overlap_are_told_with_how_often_they_begin() -> None:
    # given two ranks of which the second begins each iteration 40 ms after the first, and ends it as much later
    traces = [Trace(rank) for rank in range(2)]
    for n in range(12):
        for rank, trace in enumerate(traces):
            begin = (100 * n + 40 * rank) * MS
            trace.step(n, begin, begin + 100 * MS).kernel(begin, (100 * n + 60) * MS)
            trace.collective((100 * n + 60) * MS, (100 * n + 70) * MS, issue_ns=begin + 1)

    assert str(verdict_of(*traces)["explanation"]).startswith(
        "The 12 iterations judged take 140 ms on average (they overlap: one begins every 100 ms), "
    )


def test_one_iteration_is_told_in_the_singular() -> None:
    verdict = verdict_of(*data_parallel_job([[100 * MS, 100 * MS]], transfer_ns=10 * MS))

    assert str(verdict["explanation"]).startswith(
        "The one iteration judged takes 110 ms, no more than at the pace of its median rank."
    )


def test_iterations_that_only_some_ranks_recorded_are_counted_as_not_judged() -> None:
    # given two ranks, of which one records twelve iterations and the other the first nine
    first, _ = data_parallel_job([[100 * MS, 100 * MS]] * 12, transfer_ns=10 * MS)
    _, second = data_parallel_job([[100 * MS, 100 * MS]] * 9, transfer_ns=10 * MS)
    verdict = verdict_of(first, second)

    assert str(verdict["explanation"]).startswith(
        "9 of 12 iterations were judged (the others are not whole, or not comparable); they take 110 ms"
    )


def test_a_run_that_loses_much_to_everyone_in_turn_has_no_single_culprit() -> None:
    # given eight ranks that each compute 100 ms and a pseudo-random 0 to 16 ms more: the last of them is always late
    compute = [
        [100 * MS + (rank * 7919 + n * 104_729 + rank * n * 31) % 97 * MS // 6 for rank in range(8)] for n in range(30)
    ]
    verdict = verdict_of(*data_parallel_job(compute, transfer_ns=10 * MS))

    # then the time is said, with what owns it, and the negative is not plain
    assert verdict["kind"] == "nothing_significant"
    assert re.fullmatch(
        r"No single culprit: [\d.]+ % of an iteration is delay, spread over ranks "
        r"\(slow compute (?:\d\.\d|\d\d) %\)\.",
        str(verdict["headline"]),
    )
    assert float(str(verdict["delay_share"])) > 0.05
    assert "Nobody owns it: no rank costs more than" in str(verdict["explanation"])


def test_a_run_too_short_to_show_an_owner_does_not_say_that_there_is_none() -> None:
    # given 2.5 ms of delay in steps of 44 ms, of which one rank may own all: three steps show only 22 ms
    sights = {
        "rank_sight_ns": 22 * MS,
        "pause_sight_ns": None,
        "host_sight_ns": None,
        "transfer_sight_ns": None,
        "is_one_replica": False,
    }
    short = {**sights, "excess_ns": 2.5 * MS, "duration_ns": 44 * MS}

    assert without_owner(short) == (
        "Who owns it cannot be told: in so few or so uneven iterations only a rank that costs more than 22.0 ms (50 %)"
        " shows."
    )
    assert without_owner({**short, "excess_ns": 30 * MS}) == (
        "Nobody owns it: no rank costs more than 22.0 ms (50 %) an iteration."
    )


def test_nothing_is_as_sure_as_the_smallest_delay_that_would_show_is_small_as_pages_print_it() -> None:
    # given two ranks that compute 100 ms in each of twelve iterations of 110 ms
    store = built(
        store_of(*data_parallel_job([[100 * MS, 100 * MS]] * 12, transfer_ns=10 * MS), world_size=2), "attribute"
    )
    (state,) = [one for one in stage_documents("traceforge.attribute") if one.name == "attribute.verdict_state"]

    # when a rank's delay of this share of them would have been found, then printed limits are 5.0 % and 15.0 %
    for share, confidence in {0.0504: "high", 0.0506: "medium", 0.1494: "medium", 0.1496: "low"}.items():
        store.execute("UPDATE attribute.sight SET smallest_delay_ns_per_iteration = ?", [round(share * 110 * MS)])
        store.create(state)
        assert store.rows("SELECT state, confidence FROM attribute.verdict_state") == [
            ("nothing_significant", confidence)
        ]


def test_a_parameter_server_that_others_wait_for_is_named_as_such_and_not_as_slow() -> None:
    # given eight ranks of which rank 0 only steps the optimizer, in ms; the others compute up to 1 ms less than 40
    #   rank 0       |reduce: waits··········40|41 optimizer 47|broadcast|48
    #   ranks 1 … 7  |compute·········40|reduce|41 waits·······|broadcast|48
    traces = [Trace(rank) for rank in range(8)]
    for n in range(12):
        start, reduced, end = 50 * n * MS, (50 * n + 41) * MS, (50 * n + 48) * MS
        traces[0].step(n, start, end).collective(start, reduced)
        traces[0].kernel(reduced, reduced + 6 * MS).collective(reduced + 6 * MS, end)
        for rank, trace in enumerate(traces[1:], start=1):
            ready = start + 40 * MS - (rank * 7919 + n * 104_729 + rank * n * 31) % 97 * MS // 97
            trace.step(n, start, end).kernel(start, ready).collective(ready, reduced).collective(reduced, end)
    verdict = verdict_of(*traces, world_size=8)

    # then it is not said that nobody owns what the others wait for, and nobody is accused
    assert verdict["kind"] == "nothing_significant"
    assert "nearly all of it while the others wait for rank 0, which computes less" in str(verdict["headline"])
    assert "Rank 0 owns 6.00 ms of it" in str(verdict["explanation"])
    assert re.search(r"it computes 6\.00 ms, the median rank 39\.\d ms, so that it is", str(verdict["explanation"]))


def test_where_the_time_goes_is_said_though_most_ranks_were_not_recorded() -> None:
    # given two ranks of eight, in iterations of 100 ms of work and 10 ms in which they communicate
    verdict = verdict_of(*data_parallel_job([[100 * MS, 100 * MS]] * 12, transfer_ns=10 * MS), world_size=8)

    # then others may be late, and communication may be waiting for them
    assert str(verdict["headline"]).startswith("Nothing significant on the 2 of 8 ranks recorded")
    assert "Where the time goes: Bound by its kernels: the device computes 91 % of each 110 ms" in str(
        verdict["explanation"]
    )


def test_much_delay_in_few_iterations_is_not_called_nothing() -> None:
    # given eight ranks as above, of which only two iterations were recorded
    compute = [[100 * MS + (rank * 7919 + n * 104_729) % 97 * MS // 6 for rank in range(8)] for n in range(2)]
    verdict = verdict_of(*data_parallel_job(compute, transfer_ns=10 * MS))

    # then the share that is lost is said, and that no culprit of it is certain
    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "low")
    assert float(str(verdict["delay_share"])) > 0.05
    headline = r"No certain culprit: [\d.]+ % of an iteration is delay \(slow compute [\d.]+ %\)\."
    assert re.fullmatch(headline, str(verdict["headline"]))


def test_a_run_faster_than_its_reference_lies_below_it() -> None:
    # given three iterations, one of which is 30 ms faster on all ranks: 10 ms on average
    verdict = verdict_of(*data_parallel_job([[100 * MS] * 2, [100 * MS] * 2, [70 * MS] * 2], transfer_ns=10 * MS))

    assert "10.0 ms (10 %) less than at the job's own typical pace" in str(verdict["explanation"])


@pytest.mark.parametrize(("iterations", "confidence"), [(2, "low"), (3, "medium"), (9, "medium"), (12, "high")])
def test_that_nothing_is_significant_is_the_surer_the_more_was_seen(iterations: int, confidence: str) -> None:
    job = data_parallel_job([[100 * US, 100 * US]] * iterations, transfer_ns=10 * US)
    verdict = verdict_of(*job, world_size=2)

    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", confidence)
    # and it says above which size something would have been seen
    sizes = re.findall(
        r"no rank (?:and no episode of slow transfers )?costs more than [0-9.]+ µs", str(verdict["headline"])
    )
    assert len(sizes) == 1


def test_a_negative_is_less_sure_where_nobody_knows_how_many_ranks_there_are() -> None:
    verdict = verdict_of(*data_parallel_job([[100 * US, 100 * US]] * 12, transfer_ns=10 * US))

    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "medium")


def test_a_rank_whose_time_nothing_explains_is_told_that_nothing_is_recorded() -> None:
    # given one rank with a step of 100 us in which nothing is on record but its mark
    trace = Trace(0)
    for i in range(12):
        trace.step(i, 100 * US * i, 100 * US * (i + 1))
    verdict = verdict_of(trace)

    assert str(verdict["headline"]).startswith(
        "Nothing is known in each 100 µs step: no kernel, no operation of the host and no annotation"
    )
    assert verdict["kind"] == "cannot_be_known"


def test_a_rank_without_a_kernel_is_told_what_its_host_does_meanwhile() -> None:
    # given steps of 100 us of which the host calls operations for 60, and a kernel behind them (a graph is captured)
    trace = Trace(0)
    for i in range(12):
        trace.step(i, 100 * US * i, 100 * US * (i + 1))
        trace.host_work("aten::mm", 100 * US * i + 10 * US, 100 * US * i + 70 * US)
    verdict = verdict_of(trace.kernel(1_300 * US, 1_310 * US))

    assert verdict["kind"] == "cannot_be_known"
    assert (
        "Nothing runs on a device in each 100 µs step; for 60 % of it the host calls operations" in verdict["headline"]
    )


def test_a_rank_of_which_no_kernel_is_recorded_is_not_told_to_wait_less() -> None:
    # given steps of 100 us of which the host waits for its device for 1, and nothing else is on record
    trace = Trace(0)
    for i in range(12):
        start = 100 * US * i
        trace.step(i, start, start + 100 * US)
        trace.host_work("cudaDeviceSynchronize", start + 10 * US, start + 11 * US, category="cuda_runtime")
    verdict = verdict_of(trace)

    assert str(verdict["headline"]).startswith("Nothing is known in each 100 µs step: no kernel")
    assert "Remove what makes the host wait" not in str(verdict["next_step"])


def test_a_loss_that_is_no_chance_but_small_is_not_hidden_behind_nothing() -> None:
    # given rank 1 that computes 1.8 % longer in each of 20 iterations
    verdict = verdict_of(*traces_of({(i, 1): 2 * US for i in range(20)}, iterations=20))

    assert verdict["kind"] == "nothing_significant"
    assert "There for certain, but small: Rank 1 computes longer" in str(verdict["explanation"])


def test_a_finding_of_low_confidence_is_no_verdict() -> None:
    # given rank 1 that loses a whole iteration's time, once
    verdict = verdict_of(*traces_of({(4, 1): 100 * US}, iterations=12))

    assert verdict["kind"] == "nothing_significant"


def test_what_costs_much_and_may_be_chance_is_told_as_such() -> None:
    # given rank 1 that loses more than an iteration's time, once: 13 % of all
    verdict = verdict_of(*traces_of({(4, 1): 190 * US}, iterations=12))

    # then it is no finding, and yet nobody is told that all is well
    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "low")
    assert str(verdict["headline"]).startswith(
        "Nothing stands out with certainty; the strongest hint may be chance: rank 1 computes"
    )
    assert str(verdict["next_step"]).startswith("Record more iterations than these")
    # then a hint does not hide what takes the step: 100 us of compute of 126 us on average
    assert "Where the time goes: Bound by its kernels: the device computes" in str(verdict["explanation"])


def test_most_of_a_delay_that_may_be_of_one_rank_is_not_said_to_be_spread() -> None:
    # given rank 1 that loses 40 of 110 in two of twelve iterations, 5.2 % of all
    verdict = verdict_of(*traces_of({(4, 1): 40 * US, (9, 1): 40 * US}, iterations=12))

    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "low")
    assert "the strongest hint may be chance: rank 1 computes longer" in str(verdict["headline"])


def test_a_verdict_of_nothing_says_how_many_ranks_it_saw() -> None:
    # given two of three ranks, in twelve iterations alike
    traces = data_parallel_job([[100 * US, 100 * US]] * 12, transfer_ns=10 * US)

    with told(*traces, world_size=3) as store:
        (verdict,) = store.query("FROM attribute.verdict").to_dicts()

    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "low")
    assert str(verdict["headline"]).startswith("Nothing significant on the 2 of 3 ranks recorded")


def test_what_is_likely_from_whole_files_is_not_from_files_that_are_cut_short() -> None:
    # given rank 1 that takes most of the only iteration, which is told with medium confidence
    traces = traces_of({(0, 1): 400 * US}, iterations=1)
    store = store_of(*traces)
    source = int(store.query("SELECT MIN(source_id) FROM meta.source").item())
    cut = issue_rows(0, source, "ingest", [Issue("kineto_truncated", "warning", 1, None, "cut")])
    store.append("meta.issue", cut)

    with built(store, "attribute") as store:
        (verdict,) = store.query("FROM attribute.verdict").to_dicts()

    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "low")
    assert str(verdict["headline"]).startswith("Nothing is certain, as files are cut short; from what is left: rank 1")


@pytest.mark.parametrize(
    ("connections", "notice", "said"),
    [
        (2, None, "They show no problem of configuration in 2 connections between ranks; see"),
        (0, None, "They show no connection between ranks, and no problem in what else they hold."),
        (
            2,
            "All links run over TCP sockets.",
            "What they show may be intended, or a problem: All links run over TCP sockets. See",
        ),
    ],
)
def test_of_logs_alone_it_is_told_what_was_looked_at_and_what_need_not_be_a_problem(
    connections: int, notice: str | None, said: str
) -> None:
    assert of_logs_alone({"problems": 0, "connections": connections, "first_notice": notice}).startswith(said)


def test_of_logs_alone_connections_are_counted_where_ranks_of_one_communicator_print_them() -> None:
    # given two ranks, which print that both ends of their ring use NVLink
    ranks = [Process(rank, device=rank).init().sends(1 - rank, "P2P/CUMEM") for rank in range(2)]

    with built(store_of_logs(ranks), "attribute") as store:
        (verdict,) = store.query("FROM attribute.verdict").to_dicts()

    assert "no problem of configuration in 2 connections between ranks" in verdict["explanation"]


@pytest.mark.parametrize(("heavy_ns", "which"), [(90, "another stage"), (81, "a stage")])
def test_of_one_replica_a_stage_that_is_named_is_not_said_to_be_hidden(heavy_ns: int, which: str) -> None:
    # given stages of 80 ns in the mean, of which one computes a tenth longer, or hardly
    sights = {"rank_sight_ns": None, "pause_sight_ns": 5, "host_sight_ns": None, "transfer_sight_ns": None}
    loads = [StageLoad(1, (1,), True, heavy_ns, 70, 80), StageLoad(0, (0,), False, 70, 70, 80)]
    stages = {"longer_stages": told_of(loads, {})}
    state = {"state": "nothing_significant", "duration_ns": 100, "is_one_replica": True, **sights, **stages}

    assert seen(state).endswith(f"; {which} that computes longer in all iterations does not show, as there is one "
                                "replica of each")  # fmt: skip


def test_a_rank_missing_between_numbered_files_may_be_the_late_one() -> None:
    # given ranks 0, 1 and 3, none of which says how many there are
    traces = data_parallel_job([[100 * MS] * 4] * 12, transfer_ns=10 * MS)

    verdict = verdict_of(*(trace for trace in traces if trace.rank != 2))

    assert str(verdict["headline"]).startswith("Nothing significant on the 3 of 4 ranks recorded")
    assert verdict["confidence"] == "low"
    assert "No file says how many ranks" not in str(verdict["explanation"])
