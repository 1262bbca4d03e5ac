"""Every sample from its files to its report. A new folder in sample_traces/ is a new test without code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.report.sentences import contradictions, sizes_of_the_first_finding
from traceforge import api
from traceforge.report import Report
from traceforge.store.database import Store

SCENARIOS = sorted(path.parent.name for path in (ROOT / "sample_traces").glob("*/truth.json"))

# What the truth calls a fault, and the cause under which the ledger must book it.
CAUSES = {
    "compute_straggler": "slow_compute",
    "input_stall": "input_stall",
    "uplink_congestion": "slow_transfer",
    "slow_nic": "slow_transfer",
    "far_nic": "slow_path",
    "stage_slow_compute": "slow_compute",
    "slow_later": "slow_compute",
    "slow_host": "host_stall",
}


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest, sample_database: Callable[..., Path]) -> Iterator[tuple[str, Store]]:
    with Store(sample_database(request.param), read_only=True) as store:
        yield request.param, store


@pytest.fixture(scope="module")
def report(scenario: tuple[str, Store]) -> Report:
    """The report as the command makes it that is kept beside the samples."""
    name, store = scenario
    return api.report(store, command=f"traceforge report sample_traces/{name}")


def truth_of(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "sample_traces" / name / "truth.json").read_text(encoding="utf-8")
    faults: list[dict[str, Any]] = json.loads(text)["faults"]
    return faults


def test_the_verdict_names_what_was_injected_and_nobody_else(scenario: tuple[str, Store]) -> None:
    # given a recorded run of which we know what was done to it
    name, store = scenario
    faults = truth_of(name)

    # when it is judged
    named = store.query(
        "SELECT mode, cause, subject_kind, subject FROM attribute.finding WHERE confidence IN ('high', 'medium')"
    ).rows()

    # then exactly the injected faults are named, with the right culprit; the network has no rank as culprit
    expected = [(fault["mode"], CAUSES[str(fault["kind"])], *culprit(store, fault)) for fault in faults]
    assert named == expected


def culprit(store: Store, fault: dict[str, Any]) -> tuple[str, str]:
    """Whom a finding must name: a slow path is its communicator's, a slow fabric the job's."""
    if fault["mode"] == "fabric_contention":
        return "job", "all"
    if fault.get("befalls") == "stage":
        return "stage", str(fault["place"])
    if fault["mode"] != "gpu_locality":
        return "rank", str(fault["rank"])
    (ranks,) = fault["communicators"]
    number = store.query("SELECT communicator_id FROM timeline.communicator WHERE ranks = ?", [ranks]).item()
    return "communicator", str(number)


def test_what_the_logs_show_of_a_slow_path_is_told_beside_its_delay(scenario: tuple[str, Store]) -> None:
    # given a run with logs, in which the paths of one communicator were made slow
    name, store = scenario
    for fault in truth_of(name):
        if fault["mode"] == "gpu_locality":
            # then the configuration that did it is the first that is named beside the measured delay
            shown = store.query(
                "SELECT g.code, g.subject FROM attribute.configuration AS c JOIN fabric.finding AS g"
                " ON g.run_id = c.run_id AND g.finding_id = c.fabric_finding_id WHERE c.place = 0"
            ).row(0)
            assert shown == (fault["kind"], str(fault["place"]))


def test_a_finding_names_the_iterations_of_the_fault(scenario: tuple[str, Store]) -> None:
    name, store = scenario
    for fault in truth_of(name):
        iterations = list(map(int, fault["iterations"]))
        finding = store.query(
            "SELECT first_iteration, last_iteration, affected_iterations FROM attribute.finding WHERE finding_id = 0"
        ).row(0)
        assert finding == (iterations[0], iterations[-1], len(iterations))


def test_the_size_of_a_finding_is_near_what_the_fault_cost(scenario: tuple[str, Store]) -> None:
    # given faults whose cost in time the training program measured itself
    name, store = scenario
    for fault in truth_of(name):
        # Generated jobs state what the step would have gained without the fault.
        excess = fault.get("step_excess_ns") or fault.get("removed_ns")
        if not excess:
            continue
        # What iterations without the fault would not have gained does not belong to an affected one.
        struck = [one for one in excess if one]
        cost_ns = sum(struck) / len(struck)

        # then the size is within a quarter: the ledger refers to medians of places, the truth to those of steps
        affected_ns = store.query("SELECT affected_delay_ns FROM attribute.finding WHERE finding_id = 0").item()
        assert affected_ns == pytest.approx(cost_ns, rel=0.25)


def test_phases_sum_to_the_iteration_of_each_rank(scenario: tuple[str, Store]) -> None:
    _, store = scenario
    unequal = store.query(
        """
        SELECT r.iteration, r.rank, r.duration_ns, SUM(p.duration_ns)
        FROM timeline.rank_iteration AS r JOIN timeline.phase AS p USING (run_id, iteration, rank)
        GROUP BY r.run_id, r.iteration, r.rank, r.duration_ns
        HAVING SUM(p.duration_ns) <> r.duration_ns
        """
    )
    assert unequal.is_empty()


def test_the_ledger_sums_to_the_excess_of_each_iteration(scenario: tuple[str, Store]) -> None:
    _, store = scenario
    unequal = store.query(
        """
        SELECT e.iteration FROM attribute.excess AS e JOIN attribute.delay AS d USING (run_id, iteration)
        GROUP BY e.run_id, e.iteration, e.excess_ns
        HAVING SUM(d.delay_ns) <> e.excess_ns
        """
    )
    assert unequal.is_empty()


def test_every_event_is_stored_or_counted(scenario: tuple[str, Store]) -> None:
    _, store = scenario
    missing = store.query(
        """
        SELECT s.path FROM meta.source AS s LEFT JOIN meta.issue AS i USING (source_id)
        GROUP BY s.path, s.event_count, s.stored_count
        HAVING s.event_count <> s.stored_count + COALESCE(SUM(i.lost_events), 0)
        """
    )
    assert missing.is_empty()


def test_the_report_is_the_one_that_is_kept(scenario: tuple[str, Store], report: Report, update_golden: bool) -> None:
    # given the report kept beside the samples, and one made again
    name, _ = scenario
    folder = ROOT / "reports" / name

    # then its summary is the same, to the last digit that is shown (versions of libraries apart)
    summary = json.loads(json.dumps(report.summary))
    if update_golden:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.html").write_text(report.html, encoding="utf-8")
        text = json.dumps(summary, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        (folder / "summary.json").write_text(text, encoding="utf-8")
    kept = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert _without_versions(summary) == _without_versions(kept)


def test_no_sentence_contradicts_another(scenario: tuple[str, Store], report: Report) -> None:
    # given all that a report says in words
    _, store = scenario
    kind = store.query("SELECT kind FROM attribute.verdict").item()

    # then nothing denies the verdict, contradicts the header, is below what clocks resolve, or lacks a unit
    assert contradictions(report.html, kind) == []

    # and the fault has one size wherever it is told
    assert len(sizes_of_the_first_finding(report.html)) <= 1


def test_the_report_is_made_the_same_twice(scenario: tuple[str, Store], report: Report) -> None:
    name, store = scenario
    assert api.report(store, command=f"traceforge report sample_traces/{name}").html == report.html


def _without_versions(summary: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in summary.items() if key != "versions"}


def test_samples_are_known_to_the_tests(root: Path) -> None:
    assert SCENARIOS, "there is no sample with a truth.json"
    assert "healthy" in SCENARIOS
