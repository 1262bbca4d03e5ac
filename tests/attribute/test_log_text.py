"""What logs show beside iterations that show nothing."""

import polars as pl

from tests.given import built
from traceforge.attribute.log_text import lasting_problems, of_problems_beside, of_slow_paths_beside, slow_paths
from traceforge.store.database import Store

ROW = {"headline": "Nothing significant.", "next_step": "Send less.", "confidence": "high"}
PROBLEM = {"summary": "On host a, a NIC runs at 100.", "next_step": "Look at its cable."}


def test_a_problem_that_is_always_there_is_told_before_that_nothing_stands_out() -> None:
    told = of_problems_beside([PROBLEM], {"state": "nothing_significant"}, ROW)

    assert told == {
        "headline": "The logs show a problem that may slow all iterations alike: On host a, a NIC runs at 100. In the "
        "iterations: Nothing significant.",
        "next_step": "Look at its cable.",
        "confidence": "low",
    }


def test_of_several_problems_the_first_is_told() -> None:
    told = of_problems_beside([PROBLEM, {"summary": "b", "next_step": "c"}], {"state": "uncertain"}, ROW)

    assert str(told["headline"]).startswith("The logs show 2 problems, the first one that may slow")


def test_a_finding_speaks_for_itself_and_so_do_logs_without_a_problem() -> None:
    assert of_problems_beside([PROBLEM], {"state": "finding"}, ROW) == {}
    assert of_problems_beside([], {"state": "nothing_significant"}, ROW) == {}


def test_a_slow_path_is_told_of_a_job_that_communication_bounds() -> None:
    told = of_slow_paths_beside([{"summary": "All run over sockets.", "next_step": "b"}], {"state": "uncertain"}, ROW)

    assert told["headline"] == (
        "Communication bounds the job, and the logs show what may slow it: All run over sockets. In the iterations: "
        "Nothing significant."
    )


def test_of_a_job_that_computes_sockets_are_no_cause() -> None:
    # given the same notices of two runs, of which communication bounds the first
    store = built(Store(None, threads=1, is_kept=False), "attribute.bound", "fabric")
    notices = [
        {"run_id": run, "finding_id": 0, "code": "socket_fallback", "mode": "fabric_contention", "severity": "notice",
         "subject_kind": "job", "subject": "all", "ranks": [], "summary": "sockets", "next_step": "", "basis": "",
         "source_id": 0, "line": 1, "citation_count": 1}
        for run in (3, 4)
    ]  # fmt: skip
    bounds = [
        {"run_id": run, "bound": bound, "share": 0.5, "sentence": "", "next_step": ""}
        for run, bound in ((3, "communication_bound"), (4, "compute_bound"))
    ]
    store.append("fabric.finding", pl.DataFrame(notices, schema_overrides={"ranks": pl.List(pl.Int32)}))
    store.append("attribute.bound", pl.DataFrame(bounds))

    assert list(slow_paths(store)) == [3]


def test_only_how_ranks_are_connected_lasts() -> None:
    # given a NIC that lasts, a notice, an error message of the network, and versions that differ
    store = built(Store(None, threads=1, is_kept=False), "fabric")
    kinds = [
        ("slow NIC", "fabric_contention", "problem", "configuration evidence"),
        ("sockets", "fabric_contention", "notice", "configuration evidence"),
        ("timeout", "fabric_contention", "problem", "error message"),
        ("versions", "runtime_control_plane", "problem", "configuration evidence"),
    ]
    rows = [
        {"run_id": 3, "finding_id": number, "code": said, "mode": mode, "severity": severity, "subject_kind": "job",
         "subject": "all", "ranks": [], "summary": said, "next_step": "", "basis": basis, "source_id": 0, "line": 1,
         "citation_count": 1}
        for number, (said, mode, severity, basis) in enumerate(kinds)
    ]  # fmt: skip
    store.append("fabric.finding", pl.DataFrame(rows, schema_overrides={"ranks": pl.List(pl.Int32)}))

    assert {run: [one["summary"] for one in found] for run, found in lasting_problems(store).items()} == {
        3: ["slow NIC"]
    }
