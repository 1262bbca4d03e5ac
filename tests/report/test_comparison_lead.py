"""The head of a report with a baseline: what all ranks do alike is slower, which the run alone cannot show."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.given import MS, Trace, add_run, data_parallel_job
from traceforge import api
from traceforge.compare import Comparison, FindingChange
from traceforge.report import Report
from traceforge.report.comparison_lead import against_baseline
from traceforge.store.database import Store

RANKS = 4
ITERATIONS = 12


def reducing_from(begin_ms: int) -> list[Trace]:
    """Ranks that compute 50 ms in each iteration, and reduce for 5 ms from a moment on.

    from 45   |compute··········|      from 50   |compute··········|reduce|
                         |reduce|
    """
    traces = [Trace(rank) for rank in range(RANKS)]
    for trace in traces:
        for number in range(ITERATIONS):
            start = number * 60 * MS
            reduced = start + begin_ms * MS, start + (begin_ms + 5) * MS
            trace.step(number, start, max(start + 50 * MS, reduced[1])).kernel(start, start + 50 * MS)
            trace.collective(*reduced, issue_ns=start + MS)
    return traces


@pytest.fixture(scope="module")
def runs() -> Iterator[Store]:
    """Runs of one job; ms of each of 12 iterations.

    run       compute  reduce
    usual     50       5
    slower    60       5
    network   50       15
    late      50       5, rank 1 computes 62
    """
    with Store(None, threads=1, is_kept=False) as store:
        for name, compute_ms, transfer_ms in (
            ("usual", 50, 5),
            ("slower", 60, 5),
            ("network", 50, 15),
            ("late", 50, 5),
        ):
            late_ns = [12 * MS if name == "late" and rank == 1 else 0 for rank in range(RANKS)]
            jitter_ns = [
                [(rank * 3 + n) % 5 * 1000 + late_ns[rank] for rank in range(RANKS)] for n in range(ITERATIONS)
            ]
            lengths = [[compute_ms * MS + extra_ns for extra_ns in row] for row in jitter_ns]
            traces = data_parallel_job(lengths, transfer_ns=transfer_ms * MS)
            add_run(store, *traces, run_name=name, world_size=RANKS)
        for name, begin_ms in (("overlapped", 45), ("after", 50)):
            add_run(store, *reducing_from(begin_ms), run_name=name, world_size=RANKS)
        api.analyze(store)
        yield store


def compared(runs: Store, run: str) -> Comparison:
    return api.compare(runs, runs, run_before="usual", run_after=run)


def reported(runs: Store, run: str, baseline: Comparison | None) -> Report:
    return api.report(runs, run=run, baseline=baseline)


def test_a_run_slower_for_all_ranks_alike_is_not_headed_nothing_significant(runs: Store) -> None:
    # given a run in which no rank stands out, but which takes 65 ms where the baseline took 55
    made = reported(runs, "slower", compared(runs, "slower"))

    # then page, Markdown and terminal say so at once, and where the time went
    assert "**Slower than the baseline**" in made.markdown
    assert "Slower than the baseline" in made.html
    told = " ".join(" ".join(made.verdict_lines[:8]).split())
    assert "Against the baseline usual: slower, 55.0 ms → 65.0 ms an iteration" in told
    assert "What changed most: compute +10.0 ms" in told


def test_a_slower_network_is_told_by_phase_and_collective(runs: Store) -> None:
    told = " ".join(against_baseline(compared(runs, "network")).split())
    assert told.endswith("What changed most: transfer +10.0 ms (in all_reduce of 2.05 kB to 4.10 kB, 4 ranks).")


def test_transfers_that_take_as_long_but_are_no_longer_hidden_are_told_from_slow_ones(runs: Store) -> None:
    found = api.compare(runs, runs, run_before="overlapped", run_after="after")
    told = " ".join(against_baseline(found).split())
    assert "transfer +5.00 ms (transfers take 5.00 ms → 5.00 ms, less of it hidden behind other work)" in told


def test_a_finding_that_the_verdict_names_is_not_told_twice(runs: Store) -> None:
    found = compared(runs, "late")
    made = " ".join(" ".join(reported(runs, "late", found).verdict_lines).split())
    assert made.count("Rank 1 computes longer") == 1
    assert "This finding is new. What changed most: wait" in made
    assert "New: Rank 1 computes longer" in against_baseline(found)


def test_hosts_that_findings_of_the_baseline_name_are_redacted(runs: Store) -> None:
    # given a finding of the baseline about a host on which this run has no rank
    named = "secret-node7"
    gone = FindingChange("gone", "slow_compute", "host", named, "", f"All ranks of {named} compute longer.", MS, None)
    found = replace(compared(runs, "slower"), findings=[gone])

    made = api.report(runs, run="slower", baseline=found, redact=True)
    told = " ".join([made.html, made.markdown, *made.verdict_lines, str(made.summary["comparison"])])
    assert named not in told
    assert "Gone: All ranks of host-" in " ".join(" ".join(made.verdict_lines).split())


def test_where_nothing_changed_nothing_is_named(runs: Store) -> None:
    found = api.compare(runs, runs, run_before="usual", run_after="usual")
    assert against_baseline(found).startswith("Against the baseline usual: no significant change, ")
    assert "What changed" not in against_baseline(found)


def test_without_a_baseline_the_head_says_nothing_of_one(runs: Store) -> None:
    made = reported(runs, "slower", None)
    assert "baseline" not in " ".join(made.verdict_lines)
    assert "**Nothing significant**" in made.markdown
