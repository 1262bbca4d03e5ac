"""Each rule finds what it is for, cites the line, and stays silent on a healthy job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.fabric.dumps import recorders
from tests.fabric.finding_stories import (
    STORIES,
    failure_survived,
    shared_over_efa,
    told_and_gave_up,
    unknown_cores,
    warned_and_gave_up,
)
from tests.fabric.logs import Process, add_dumps, add_logs, fabric_of
from tests.fabric.other_stories import (
    braces,
    efa_without_gdr,
    error_and_setting,
    healthy,
    only_sockets,
    problem_and_notice,
)
from tests.given import built, rows_of
from traceforge.errors import PluginError
from traceforge.fabric import finding
from traceforge.fabric.finding_rule import finding_rules, parse_rule
from traceforge.store.database import Store
from traceforge.store.stage import stage_documents


def test_every_rule_has_its_story() -> None:
    assert {*STORIES, "hang_recorded"} == set(finding_rules())


@pytest.fixture(scope="module")
def stories() -> Iterator[Store]:
    """Every story as a run of one database, named after the finding it causes or after its function."""
    with Store(None, is_kept=False) as store:
        for code, (story, _, _) in STORIES.items():
            add_logs(store, story(), run_name=code)
        for story in (
            healthy,
            only_sockets,
            braces,
            problem_and_notice,
            error_and_setting,
            failure_survived,
            efa_without_gdr,
            shared_over_efa,
            told_and_gave_up,
            unknown_cores,
            warned_and_gave_up,
        ):
            add_logs(store, story(), run_name=story.__name__)
        ranks = [rank.got("0", 9, 8).calls("0", 9) for rank in recorders({"0": [0, 1, 2]})]
        ranks[2] = recorders({"0": [0, 1, 2]})[2].got("0", 7, 7)
        add_dumps(store, *(rank.dump() for rank in ranks), run_name="hang_recorded")
        yield built(store, "fabric")


def findings_of(store: Store, run_name: str) -> list[dict[str, Any]]:
    rows = store.query(
        "SELECT f.* FROM fabric.finding AS f JOIN meta.run USING (run_id) WHERE run_name = ? ORDER BY finding_id",
        [run_name],
    )
    return rows.to_dicts()


def test_flight_recorders_tell_who_is_behind(stories: Store) -> None:
    rows = findings_of(stories, "hang_recorded")

    assert [(row["code"], row["subject"], row["ranks"]) for row in rows] == [("hang_recorded", "2", [2])]
    assert "Rank 2 never made the call that 2 ranks wait in: all_reduce 9" in rows[0]["summary"]
    assert "Look at the stacks of rank 2" in rows[0]["next_step"]


@pytest.mark.parametrize("code", STORIES)
def test_a_rule_finds_what_it_is_for_and_cites_a_line(stories: Store, code: str) -> None:
    _, words, ranks = STORIES[code]

    found = {row["code"]: row for row in findings_of(stories, code)}

    assert code in found
    row = found[code]
    assert words in row["summary"]
    assert row["ranks"] == ranks
    assert row["line"] >= 1
    assert row["citation_count"] >= 1
    assert row["severity"] in ("problem", "notice")


def test_an_error_comes_before_a_setting_that_more_lines_show(stories: Store) -> None:
    found = findings_of(stories, "error_and_setting")

    assert [(row["code"], row["severity"], row["citation_count"]) for row in found[:2]] == [
        ("completion_error", "problem", 1),
        ("cpu_affinity", "problem", 2),
    ]


def test_each_finding_cites_a_line_that_exists(stories: Store) -> None:
    # given that one story has one log a run, then source and line lie in that log
    rows = stories.query(
        "SELECT f.code FROM fabric.finding AS f ANTI JOIN ("
        "SELECT s.run_id, r.source_id, r.line FROM raw.nccl_record AS r JOIN meta.source AS s USING (source_id)"
        ") USING (run_id, source_id, line) WHERE f.basis <> 'flight recorder'"
    )

    assert rows.rows() == []


def test_a_further_file_is_a_further_finding(stories: Store, tmp_path: Path) -> None:
    # given a file that quotes counts, shares and ranks, and text behind its last statement
    (tmp_path / "socket_edges.sql").write_text(
        """-- Connections over sockets.
-- Mode: fabric_contention
-- Severity: notice
-- Summary: {edges:count connection} ({share:share}) over sockets
--   on {hosts}{of_ranks}.
-- Next step: Look at the network.
SELECT run_id, 'job' AS subject_kind, 'all' AS subject, COUNT(*) AS edges, 0.25 AS share,
  LIST(DISTINCT source_host ORDER BY source_host) AS hosts, LIST(source_rank) AS ranks,
  MIN((source_id, line)) AS first, COUNT(*) AS citation_count
FROM fabric.edge
WHERE path_class = 'socket'
GROUP BY run_id -- as every finding
""",
        encoding="utf-8",
    )

    run_id = stories.query("SELECT run_id FROM meta.run WHERE run_name = 'socket_fallback'").item()
    found = finding.rows(stories, tmp_path).filter(pl.col("run_id") == run_id)

    assert found.select("code", "mode", "severity", "ranks", "summary", "next_step", "basis").rows() == [
        ("socket_edges", "fabric_contention", "notice", [0, 1],
         "2 connections (25 %) over sockets on a, b (ranks 0\N{EN DASH}1).",
         "Look at the network.", "configuration evidence")
    ]  # fmt: skip


RULE = "-- Mode: gpu_locality\n-- Severity: problem\n-- Summary: One.\n-- Next step: Two.\nSELECT 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RULE.replace("-- Mode: gpu_locality\n", ""), "lacks `-- Mode: ...`"),
        (RULE.replace("Two.", ""), "lacks `-- Next step: ...`"),
        (RULE.replace("problem", "disaster"), "severity is not one of problem, notice"),
    ],
)
def test_a_file_of_another_form_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(PluginError, match=rf"^odd\.sql: .*{message}"):
        parse_rule(text, "odd.sql")


def test_findings_are_made_after_all_that_their_queries_may_read() -> None:
    documents = {document.name: document for document in stage_documents("traceforge.fabric")}

    assert documents["fabric.finding"].reads >= documents.keys() - {"fabric.finding"}


def test_a_healthy_job_has_no_finding(stories: Store) -> None:
    assert findings_of(stories, "healthy") == []


def test_problems_come_before_notices(stories: Store) -> None:
    rows = findings_of(stories, "problem_and_notice")

    assert [(row["finding_id"], row["code"], row["citation_count"]) for row in rows] == [
        (0, "environment_differs", 1),
        (1, "odd_algorithm", 2),
    ]


def test_a_single_rank_is_named_in_the_singular(stories: Store) -> None:
    (row,) = findings_of(stories, "completion_error")

    assert row["summary"].endswith("towards 10.0.0.2 (rank 0).")


def test_what_a_plug_in_sets_is_no_choice_and_why_it_copies_is_told(stories: Store) -> None:
    found = findings_of(stories, "efa_without_gdr")

    assert [row["code"] for row in found] == ["gdr_off"]
    assert "they copy through host memory; NCCL says: Could not disable CUDA API usage for HMEM" in found[0]["summary"]
    assert found[0]["next_step"].startswith("Over EFA it takes a type of instance that has it")


def test_a_nic_that_a_plug_in_lists_under_another_name_is_the_one_in_use(stories: Store) -> None:
    names = stories.query(
        "SELECT DISTINCT network, edge_count FROM fabric.nic_load JOIN meta.run USING (run_id) WHERE run_name = ?",
        ["efa_without_gdr"],
    )

    # Of each host one NIC of InfiniBand, which nobody uses, one that both ways of the ring use, and none of OFI.
    assert sorted(names.rows()) == [("IB", 0), ("Libfabric", 2)]


def test_nics_that_a_plug_in_lists_under_another_name_are_judged_as_others_are(stories: Store) -> None:
    found = {row["code"]: row["summary"] for row in findings_of(stories, "shared_over_efa")}

    assert sorted(found) == ["rail_mismatch", "shared_nic"]
    assert found["shared_nic"].startswith("On 2 hosts, such as a, 1 of 2 NICs carry all connections")


@pytest.mark.parametrize(
    ("story", "code"), [("warned_and_gave_up", "failed_operation"), ("told_and_gave_up", "failed_call")]
)
def test_an_exception_is_told_unless_nccl_says_more_of_it(stories: Store, story: str, code: str) -> None:
    assert [row["code"] for row in findings_of(stories, story)] == [code]


def test_a_failure_after_which_nccl_went_on_is_no_finding(stories: Store) -> None:
    assert findings_of(stories, "failure_survived") == []


def test_processes_that_may_use_all_cores_are_no_problem_where_none_is_known_to_be_near(stories: Store) -> None:
    assert findings_of(stories, "unknown_cores") == findings_of(stories, "healthy")


def test_sockets_are_no_problem_where_nothing_faster_is_known(stories: Store) -> None:
    rows = findings_of(stories, "only_sockets")

    assert [(row["code"], row["severity"]) for row in rows] == [("socket_fallback", "notice")]


def test_text_from_a_log_is_quoted_and_never_taken_for_a_format(stories: Store) -> None:
    (row,) = findings_of(stories, "braces")

    assert row["code"] == "environment_differs"
    assert "{subject}<b>" in row["summary"]


def test_an_init_whose_end_stands_in_the_next_file_of_a_rotated_log_was_ended() -> None:
    # given two ranks, of which rank 0's log was rotated between the begin of an init and its end
    start = "ncclCommInitRank comm 0xa0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 10000 commId 0xfeed - Init START"
    other = Process(1, host="b").says(start.replace("rank 0", "rank 1")).init()
    files = [Process(0).says(start)], [Process(0).init()], [other]

    with fabric_of(*files) as store:
        assert rows_of(store, "SELECT code FROM fabric.finding WHERE code = 'init_incomplete'") == []
    # and where the next file has nothing of it, it was not; nor where one file ended an earlier one at that address
    with fabric_of([Process(0).init().says(start)], files[2]) as store:
        assert rows_of(store, "SELECT ranks FROM fabric.finding WHERE code = 'init_incomplete'") == [([0],)]
    with fabric_of(files[0], files[2]) as store:
        assert rows_of(store, "SELECT ranks FROM fabric.finding WHERE code = 'init_incomplete'") == [([0],)]


def test_an_init_is_not_called_open_where_ray_left_out_lines_of_ranks() -> None:
    # given two ranks that begin an init; of the two lines that end it Ray keeps one
    start = "ncclCommInitRank comm 0xa0 rank {} nranks 2 cudaDev 0 nvmlDev 0 busId 10000 commId 0xfeed - Init START"
    first, second = (Process(rank, host="ab"[rank]).says(start.format(rank)) for rank in range(2))
    first.init()

    with fabric_of([first, second]) as store:
        assert rows_of(store, "SELECT code FROM fabric.finding") == [("init_incomplete",)]
    first.lines[-1] += " [repeated 2x across cluster]"
    with fabric_of([first, second]) as store:
        assert rows_of(store, "SELECT code FROM fabric.finding") == []
