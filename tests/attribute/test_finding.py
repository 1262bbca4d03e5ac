"""Findings of whole runs: who is named, with what numbers, and in which words."""

import re
from collections.abc import Mapping

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost
from tests.attribute.jobs import one_always_late_and_one_now_and_then, sleeping_job, traces_of
from tests.given import MS, US, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.attribute.cause import causes
from traceforge.attribute.finding import confidence_of, precedence
from traceforge.attribute.findings.finding_cost import CostEstimate, FindingCost

STRAGGLER = {(i, 1): 40 * US for i in range(12)}
FORMER_NAMES = {
    "booked_ns_per_iteration": "ledger_ns_per_iteration",
    "harm_alone_ns": "isolated_cost_ns",
    "harm_alone_low_ns": "isolated_cost_low_ns",
    "harm_alone_high_ns": "isolated_cost_high_ns",
    "chance": "p_value",
}
STALL_ITERATIONS = (3, 9, 14, 20, 27)


def findings_of(*traces: Trace) -> list[dict[str, object]]:
    with told(*traces) as store:
        return store.query("FROM attribute.finding ORDER BY finding_id").to_dicts()


def only(findings: list[dict[str, object]], **expected: object) -> dict[str, object]:
    """The single finding, after a look at some of its columns."""
    (finding,) = findings
    assert {name: finding[name] for name in expected} == expected
    return finding


def test_a_persistent_straggler_is_named_with_what_it_costs() -> None:
    # given twelve iterations of 150 us, of which rank 1 causes 40
    #   rank 0   |compute 100·|w 40······|t 10|
    #   rank 1   |+40······|compute 100··|t 10|
    #   rank 2   |compute 100·|w 40······|t 10|
    finding = only(
        findings_of(*traces_of(STRAGGLER, iterations=12)),
        mode="synchronization_amplification",
        cause="slow_compute",
        subject_kind="rank",
        subject="1",
        confidence="high",
        pattern="persistent",
        delay_ns_per_iteration=40 * US,
        # No iteration departs from another; what is left is what a replay may miss, 2 % either way.
        delay_low_ns=39_216,
        delay_high_ns=40_784,
        iterations=12,
        affected_iterations=12,
    )

    assert finding["share"] == pytest.approx(40 / 150)
    for former, name in FORMER_NAMES.items():
        assert finding[former] == finding[name]
    assert finding["gain_if_fixed"] == pytest.approx(150 / 110 - 1)
    assert finding["summary"] == (
        "Rank 1 computes longer than its peers before they communicate, in 12 of 12 iterations. "
        "It costs the job 40.0 µs an iteration (27 %)."
    )


def test_an_input_stall_now_and_then_is_found_with_its_iterations() -> None:
    # given rank 2 that waits 80 us for input in 5 of 30 iterations
    stalls = {(i, 2): 80 * US for i in STALL_ITERATIONS}

    finding = only(
        findings_of(*traces_of(stalls, by="input_stall", iterations=30)),
        mode="runtime_control_plane",
        cause="input_stall",
        subject="2",
        confidence="high",
        pattern="transient",
        first_iteration=3,
        last_iteration=27,
        affected_iterations=5,
        affected_delay_ns=80 * US,
    )

    assert "waits for its next batch of input, 80.0 µs in each of 5 of 30 iterations" in str(finding["summary"])
    assert "rank 2's data loader" in str(finding["next_step"])


def test_a_job_that_gets_slower_for_good_is_told_since_when_and_one_that_gets_faster_is_not_accused() -> None:
    # given 16 iterations of 110 us, of which all ranks lose 40 from the seventh on, so that most lose it
    slower = {(i, rank): 40 * US for i in range(7, 16) for rank in range(3)}
    finding = only(
        findings_of(*traces_of(slower, iterations=16)),
        subject_kind="job",
        pattern="episode",
        first_iteration=7,
        last_iteration=15,
        delay_ns_per_iteration=40 * US * 9 // 16,
    )
    assert (
        "Every rank computes longer than in other iterations, 40.0 µs in each of 9 of 16 iterations, since iteration 7."
        in str(finding)
    )

    # given the same lost at first
    faster = {(i, rank): 40 * US for i in range(9) for rank in range(3)}
    assert findings_of(*traces_of(faster, iterations=16)) == []

    # given fewer such iterations
    brief = {(i, rank): 40 * US for i in range(4) for rank in range(3)}
    finding = only(findings_of(*traces_of(brief, iterations=16)), subject_kind="job", confidence="low")
    assert "40.0 µs in each of the first 4 of 16 iterations, as a job that warms up" in str(finding["summary"])


@pytest.mark.parametrize(("first", "last"), [(10, 19), (5, 24), (6, 29)], ids=["a third", "two thirds", "four fifths"])
def test_a_congested_stretch_is_the_fabrics(first: int, last: int) -> None:
    # given transfers of 10 us that take 60 for a stretch of 30 iterations
    transfers = [60 * US if first <= i <= last else 10 * US for i in range(30)]

    finding = only(
        findings_of(*traces_of({}, iterations=30, transfer_ns=transfers)),
        mode="fabric_contention",
        cause="slow_transfer",
        subject_kind="job",
        subject="all",
        confidence="high",
        pattern="episode",
        first_iteration=first,
        last_iteration=last,
        affected_delay_ns=50 * US,
    )

    slow = last - first + 1
    assert finding["share"] == pytest.approx(50 * slow / (110 * 30 + 50 * slow), rel=1e-5)  # of a pace in whole ns
    assert finding["gain_if_fixed"] == pytest.approx(50 * slow / (110 * 30), rel=1e-5)


@pytest.mark.parametrize(
    ("hosts", "confidence"), [(("a", "b", "c"), "high"), (("a", "a", "a"), "low")], ids=["own hosts", "one host"]
)
def test_ranks_without_devices_that_share_cores_accuse_the_fabric_of_nothing_small(
    hosts: tuple[str, ...], confidence: str
) -> None:
    # given a job of hosts alone: 100 us of work and transfers of 10 us, of 40 us in the middle third of 30 iterations
    traces, now = [Trace(rank, host=host) for rank, host in enumerate(hosts)], 0
    for i in range(30):
        met, end = now + 100 * US, now + (140 if 10 <= i < 20 else 110) * US
        for trace in traces:
            trace.step(i, now, end).host_work("aten::mm", now, met - 10).gloo(met, end, issue_ns=met - 10)
        now = end

    # then a network may be slow; on one host whatever else took the cores looks the same
    finding = only(findings_of(*traces), cause="slow_transfer", confidence=confidence, affected_iterations=10)
    assert ("switch" in finding["next_step"]) == (confidence == "high")
    assert ("the cores and the memory of one host" in finding["next_step"]) == (confidence == "low")


@pytest.mark.parametrize("cause", ["slow_copy", "checkpoint_pause", "late_launch"])
def test_a_straggler_of_any_cause_is_named_first(cause: str) -> None:
    findings = findings_of(*traces_of(STRAGGLER, by=cause, iterations=12))

    assert (findings[0]["cause"], findings[0]["subject"], findings[0]["confidence"]) == (cause, "1", "high")


def test_who_is_late_may_be_known_where_why_is_not_but_never_for_certain() -> None:
    # given a straggler whose host does nothing that has a name
    only(
        findings_of(*traces_of(STRAGGLER, by="unexplained", iterations=12)),
        mode="unexplained", cause="unexplained", subject_kind="rank", subject="1", confidence="medium",
    )  # fmt: skip


def varied_steps(slower: Mapping[int, float]) -> list[Trace]:
    """Forty steps of four ranks whose sequences are longer or shorter for all alike, by 15 % either way."""
    rng, traces, at = np.random.default_rng(3), [Trace(rank) for rank in range(4)], 0
    for step in range(40):
        length = float(1_000 * US * np.exp(0.15 * rng.standard_normal()))
        own = [round(length * slower.get(rank, 1.0)) + int(rng.integers(0, 5 * US)) for rank in range(4)]
        end = at + max(own) + 200 * US
        for trace, work in zip(traces, own, strict=True):
            trace.step(step, at, end).kernel(at, at + work).collective(at + work, end, issue_ns=at + 1)
        at = end + US
    return traces


def test_steps_that_vary_alike_on_all_ranks_accuse_nobody() -> None:
    assert [one["summary"] for one in findings_of(*varied_steps({})) if one["confidence"] != "low"] == []


def test_a_slow_rank_costs_no_more_where_steps_vary_alike() -> None:
    # given that rank 1 takes a tenth longer than the others of the same step: 100 us of 1,300 on average
    (finding,) = (one for one in findings_of(*varied_steps({1: 1.1})) if one["confidence"] != "low")

    assert (finding["cause"], finding["subject"], finding["pattern"]) == ("slow_compute", "1", "persistent")
    assert finding["delay_ns_per_iteration"] == pytest.approx(100 * US, rel=0.15)


def test_steps_that_gather_gradients_do_not_hide_who_is_slow() -> None:
    # given 32 steps of four ranks that exchange gradients in every fourth; rank 2 takes 110 us where others take 100
    traces, at = [Trace(rank) for rank in range(4)], [0] * 4
    for step in range(32):
        begin = list(at)
        at = [start + (110 if rank == 2 else 100) * US for rank, start in enumerate(begin)]
        end = max(at) + 40 * US
        for rank, trace in enumerate(traces):
            trace.kernel(begin[rank], at[rank], launch_ns=begin[rank])
            if step % 4 == 3:
                trace.collective(at[rank], end, issue_ns=begin[rank] + 2)
                at[rank] = end
            trace.step(step, begin[rank], at[rank])

    finding = only(findings_of(*traces), cause="slow_compute", subject="2", confidence="high", pattern="persistent")
    assert finding["delay_ns_per_iteration"] == pytest.approx(10 * US, rel=0.05)


def test_a_pause_of_all_ranks_is_found_where_nothing_says_why() -> None:
    # given forty steps of four ranks, before one of which all devices stand still for 4 ms and no host says anything
    traces, at = [Trace(rank) for rank in range(4)], 0
    for step in range(40):
        begin = at + (4_000 * US if step == 17 else 0)
        for rank, trace in enumerate(traces):
            work = 1_000 * US + (7 * rank + 3 * step) % 5 * US
            trace.step(step, at, begin + 1_200 * US).kernel(begin, begin + work, launch_ns=begin)
            trace.collective(begin + work, begin + 1_200 * US, issue_ns=begin + 1)
        at = begin + 1_201 * US

    finding = only(
        findings_of(*traces), cause="unexplained", subject_kind="job", pattern="one_off", confidence="medium"
    )
    assert str(finding["summary"]).startswith(
        "Every rank stands still for a reason the trace does not show, 4.00 ms in 1 of 40"
    )


def test_one_iteration_is_never_certain() -> None:
    finding = only(findings_of(*traces_of({(0, 1): 40 * US}, iterations=1)), subject="1", pattern="transient")

    assert finding["confidence"] != "high"
    assert ", in the one iteration judged. It costs the job 40.0 µs an iteration (27 %)." in str(finding["summary"])


def test_a_single_hit_is_told_in_the_singular() -> None:
    # given rank 1 that loses 80 us once in ten iterations
    finding = only(findings_of(*traces_of({(4, 1): 80 * US}, iterations=10)), confidence="low", affected_iterations=1)

    assert ", 80.0 µs in 1 of 10 iterations. It costs" in str(finding["summary"])


def test_a_rank_that_was_recorded_alone_has_no_peers() -> None:
    # given rank 3 alone, which computes 600 us longer in one of forty iterations
    trace = Trace(3)
    for i, start in enumerate(range(0, 40_000 * US, 1_000 * US)):
        late = 600 * US if i == 5 else 0
        trace.step(i, start, start + 1_000 * US).kernel(start, start + 150 * US + late, launch_ns=start)
        trace.collective(start + 150 * US + late, start + 200 * US + late)

    finding = only(findings_of(trace), confidence="low", affected_iterations=1)

    assert str(finding["summary"]).startswith(
        "Rank 3 computes longer than in other iterations, 600 µs in 1 of 40 iterations"
    )


def test_the_first_iteration_does_not_count_while_it_warms_up() -> None:
    # given a first iteration in which rank 1 takes ten times as long
    assert findings_of(*traces_of({(0, 1): 900 * US}, iterations=10)) == []


def test_a_healthy_run_has_no_findings() -> None:
    # given ranks that differ by one per cent, each in its turn
    work = [[100 * MS + (i + rank) % 4 * MS // 4 for rank in range(4)] for i in range(12)]

    assert findings_of(*data_parallel_job(work, transfer_ns=10 * MS)) == []


def test_findings_are_numbered_by_confidence_then_by_cost() -> None:
    # given rank 0 that is 60 us late in every iteration, and rank 2 that loses 70 once
    late = {(i, 0): 60 * US for i in range(12)}
    findings = findings_of(*traces_of({**late, (5, 2): 130 * US}, iterations=12))

    assert [(one["finding_id"], one["subject"], one["confidence"]) for one in findings[:1]] == [(0, "0", "high")]
    assert all(one["confidence"] == "low" for one in findings[1:])


JOBS: Mapping[str, list[Trace]] = {
    "straggler": traces_of(STRAGGLER, iterations=12),
    "straggler in one iteration": traces_of({(0, 1): 40 * US}, iterations=1),
    "straggler in two iterations": traces_of({(i, 1): 40 * US for i in range(2)}, iterations=2),
    "stall now and then": traces_of({(i, 2): 80 * US for i in STALL_ITERATIONS}, by="input_stall", iterations=30),
    "stall once": traces_of({(4, 1): 80 * US}, iterations=10),
    "unexplained": traces_of(STRAGGLER, by="unexplained", iterations=12),
    "two stragglers": traces_of({(i, rank): 40 * US for i in range(9) for rank in (0, 1)}, iterations=9, ranks=6),
    "congestion": traces_of({}, iterations=12, transfer_ns=[60 * US if 4 <= i <= 8 else 10 * US for i in range(12)]),
    "slow transfers here and there": traces_of(
        {}, iterations=12, transfer_ns=[60 * US if i % 4 == 0 else 10 * US for i in range(12)]
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_every_finding_has_evidence_and_a_next_step(job: str) -> None:
    rows = rows_of(
        told(*JOBS[job]),
        "SELECT f.next_step, (SELECT COUNT(*) FROM attribute.evidence AS e"
        " WHERE e.finding_id = f.finding_id AND e.direction = 'for') FROM attribute.finding AS f",
    )

    assert rows
    assert all(next_step and count for next_step, count in rows)


# Wrong number, what a template left behind, and quantities that say nothing.
BROKEN = re.compile(r"\b1 (iterations|ranks)|\(s\)|[{}]|  | ,|\b(NULL|None|nan)\b|-\d|\b0\.0 ms\b")


@pytest.mark.parametrize("job", JOBS)
def test_what_is_said_reads_as_a_sentence(job: str) -> None:
    said = rows_of(
        told(*JOBS[job]),
        "SELECT summary FROM attribute.finding UNION ALL SELECT next_step FROM attribute.finding"
        " UNION ALL SELECT statement FROM attribute.evidence"
        " UNION ALL SELECT headline FROM attribute.verdict UNION ALL SELECT explanation FROM attribute.verdict"
        " UNION ALL SELECT next_step FROM attribute.verdict",
    )

    for (text,) in said:
        sentence = str(text)
        assert sentence[0].isupper() or sentence[0].isdigit(), sentence
        assert sentence.endswith("."), sentence
        assert not BROKEN.search(sentence), sentence
        assert not any(cause in sentence for cause in causes() if "_" in cause), sentence


def test_what_is_likely_and_costs_far_more_comes_before_what_is_sure() -> None:
    # costs an iteration of findings that are sure, likely and doubtful
    rows = [("high", 5), ("medium", 20), ("medium", 12), ("low", 90)]

    ordered = sorted(({"confidence": grade, "delay_ns_per_iteration": cost} for grade, cost in rows), key=precedence)

    # then 20 comes before a sure 5, which counts threefold, 12 after it, and what may be chance comes last
    assert [one["delay_ns_per_iteration"] for one in ordered] == [20, 5, 12, 90]


def test_a_job_without_devices_is_told_of_none() -> None:
    store = told(*sleeping_job())

    ((cause, summary),) = rows_of(store, "SELECT cause, summary FROM attribute.finding WHERE confidence = 'high'")
    assert cause == "host_stall"
    assert str(summary).startswith("Rank 2 pauses in code that no recorded operation explains, in 12 of 12 iterations")


def test_work_that_evening_out_would_hardly_shorten_is_no_finding() -> None:
    # given four ranks of which one works as usual, the others 4, 8 and 12 us longer, in turns: iterations of 122 us
    late = {(i, rank): 4 * ((i + rank) % 4) * US for i in range(12) for rank in range(4)}

    # then the last rank is 8 us behind the usual one, 6.6 %, but an even division would save 6 us, 4.9 %
    finding = only(findings_of(*traces_of(late, iterations=12, ranks=4)), pattern="rotating", confidence="low")
    assert finding["ledger_ns_per_iteration"] == 8 * US
    assert finding["delay_ns_per_iteration"] == 6 * US


@pytest.mark.parametrize(("cost_ns", "low_ns", "grade"), [(2.1, 1.0, "low"), (2.6, 1.0, "high"), (2.6, 0.0, "medium")])
def test_what_costs_little_is_a_hint_though_the_ledger_gives_it_more(cost_ns: float, low_ns: float, grade: str) -> None:
    # given rank 1 to which the ledger gives 6 of each 100, while without it the job would save less
    delays = np.zeros((24, 4))
    delays[:, 1] = 6
    run = judged_run(24, 4)
    (found,) = found_in(run, lost({"slow_compute": delays}))
    told_cost = CostEstimate(cost_ns, low_ns, 4.0)
    cost = FindingCost(told_cost, 6.0, 6.0, told_cost, told_cost, waited_ns=0, caused_ns=6, left_ns=0)

    # then its cost of less than 2.5 % decides, and what may cost nothing is not certain
    assert (found.confidence, confidence_of(found, cost, run, is_matched=True)) == ("high", grade)


def test_a_small_delay_beside_one_that_is_fifty_times_as_large_does_not_make_it_two() -> None:
    # given rank 1 that loses 9 ms in one iteration of 150 us, and 40 us in another
    finding = only(findings_of(*traces_of({(4, 1): 9_000 * US, (7, 1): 40 * US}, iterations=10)), affected_iterations=1)

    assert ", 9.00 ms in 1 of 10 iterations. It costs" in str(finding["summary"])


def test_a_rank_that_is_late_now_and_then_is_not_named_with_one_that_always_is() -> None:
    found = findings_of(*one_always_late_and_one_now_and_then(20 * US))

    assert [(one["subject"], one["affected_iterations"]) for one in found] == [("2", 20), ("0", 4)]
