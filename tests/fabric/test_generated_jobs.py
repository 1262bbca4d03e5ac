"""Generated jobs with traces and logs of all ranks: what the timeline measures and what the logs show of the
configuration come together in one finding."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.given import add_facts, rows_of
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario

JOBS = {
    "healthy 2.21.5": (NcclLogs("2.21.5"), ()),
    "healthy 2.27.5": (NcclLogs("2.27.5"), ()),
    "healthy 2.27.5 stamped, by host": (NcclLogs("2.27.5", stamped=True, by_host=True), ()),
    "far_nic 2.21.5": (NcclLogs("2.21.5"), (Injection("far_nic", 1, 0.3),)),
    "far_nic 2.27.5": (NcclLogs("2.27.5"), (Injection("far_nic", 1, 0.3),)),
    "p2p_lost": (NcclLogs("2.27.5"), (Injection("p2p_lost", 1, 0.3),)),
    "slow_nic": (NcclLogs("2.27.5"), (Injection("slow_nic", 1, 0.3),)),
}


class GeneratedJob(NamedTuple):
    """A run of the database that holds all jobs."""

    store: Store
    name: str

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Rows of a query about this run, whose number is `$run` in it."""
        return rows_of(self.store, sql.replace("$run", str(api.run_id(self.store, self.name))))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Each job on two hosts of four devices, tensor-parallel in pairs: four pairs, and two groups across hosts."""
    with Store(None, is_kept=False) as store:
        for name, (logs, faults) in JOBS.items():
            folder = tmp_path_factory.mktemp("job")
            write_scenario(Scenario("job", 3, 8, cluster=Cluster(2, 4, 2), nccl=logs, faults=faults), folder)
            add_facts(store, folder, run_name=name)
        api.analyze(store)
        yield store


@pytest.fixture(params=[name for name in JOBS if name.startswith("healthy")])
def healthy(request: pytest.FixtureRequest, database: Store) -> GeneratedJob:
    return GeneratedJob(database, request.param)


@pytest.fixture(params=[name for name in JOBS if name.startswith("far_nic")])
def far_nic(request: pytest.FixtureRequest, database: Store) -> GeneratedJob:
    return GeneratedJob(database, request.param)


def test_every_process_group_finds_its_communicator(healthy: GeneratedJob) -> None:
    rows = healthy.rows(
        "SELECT t.ranks, k.ranks, m.score, m.method, m.is_ambiguous FROM timeline.communicator AS t"
        " JOIN fabric.communicator_match AS m ON m.run_id = t.run_id AND m.timeline_communicator_id = t.communicator_id"
        " JOIN fabric.communicator AS k ON k.run_id = m.run_id AND k.communicator_id = m.communicator_id"
        " WHERE t.run_id = $run",
    )

    assert len(rows) == 6
    assert all(timed == logged for timed, logged, *_ in rows)
    assert {row[2:] for row in rows} == {(1.0, "sequence", False)}


def test_every_collective_learns_how_it_travels(healthy: GeneratedJob) -> None:
    rows = healthy.rows(
        "SELECT algorithm, protocol, path_class, channel_count, nics, COUNT(*) FROM fabric.collective"
        " WHERE run_id = $run GROUP BY ALL ORDER BY ALL",
    )

    # 8 iterations x 8 all-reduces x 4 pairs, and x 2 buckets x 2 groups; each group across hosts uses its rail's NICs
    assert [row[:3] for row in rows] == [
        ("ring", "simple", "network_gdr"),
        ("ring", "simple", "network_gdr"),
        ("ring", "simple", "p2p"),
    ]
    assert [row[4:] for row in rows] == [(["mlx5_0", "mlx5_2"], 16), (["mlx5_1", "mlx5_3"], 16), ([], 256)]


def test_all_rings_are_whole_and_all_connections_have_an_owner(healthy: GeneratedJob) -> None:
    assert healthy.rows("SELECT 1 FROM fabric.ring WHERE run_id = $run AND NOT is_complete") == []
    assert (
        healthy.rows(
            "SELECT 1 FROM raw.nccl_link JOIN meta.source USING (source_id)"
            " ANTI JOIN fabric.link USING (source_id, record_id) WHERE run_id = $run"
        )
        == []
    )


def test_every_record_is_understood(healthy: GeneratedJob) -> None:
    assert healthy.rows(
        "SELECT COUNT(*) FROM raw.nccl_unparsed JOIN meta.source USING (source_id) WHERE run_id = $run"
    ) == [(0,)]


def test_a_healthy_job_shows_no_problem(healthy: GeneratedJob) -> None:
    assert healthy.rows("SELECT code FROM fabric.finding WHERE run_id = $run AND severity = 'problem'") == []
    assert healthy.rows("SELECT kind FROM attribute.verdict WHERE run_id = $run") == [("nothing_significant",)]


def test_a_far_nic_and_the_slow_group_it_causes_are_one_finding(far_nic: GeneratedJob) -> None:
    # given rank 1 on a far NIC: group (1, 3, 5, 7) is measured to be slow
    rows = far_nic.rows(
        "SELECT f.cause, t.ranks, g.code, g.subject FROM attribute.finding AS f"
        " JOIN timeline.communicator AS t"
        " ON t.run_id = f.run_id AND CAST(t.communicator_id AS VARCHAR) = f.subject"
        " JOIN attribute.configuration AS c ON c.run_id = f.run_id AND c.finding_id = f.finding_id"
        " JOIN fabric.finding AS g ON g.run_id = c.run_id AND g.finding_id = c.fabric_finding_id"
        " WHERE f.run_id = $run AND f.finding_id = 0 ORDER BY c.place",
    )

    # then what explains it best comes first, and the finding's evidence tells it with file and line
    assert rows[0] == ("slow_path", [1, 3, 5, 7], "far_nic", "1")
    evidence = far_nic.rows(
        "SELECT statement FROM attribute.evidence WHERE run_id = $run AND finding_id = 0 ORDER BY place"
    )
    (statement,) = (str(text) for (text,) in evidence if "Rank 1 uses NIC 3, at distance SYS" in str(text))
    assert "not a measured delay" in statement
    assert "nccl.node0.1001.log" in statement
    assert "line" in statement


def test_lost_peer_access_explains_the_slow_pairs_of_its_host(database: Store) -> None:
    rows = GeneratedJob(database, "p2p_lost").rows(
        "SELECT f.subject_kind, f.subject, f.ranks, g.code FROM attribute.finding AS f"
        " JOIN attribute.configuration AS c ON c.run_id = f.run_id AND c.finding_id = f.finding_id"
        " JOIN fabric.finding AS g ON g.run_id = c.run_id AND g.finding_id = c.fabric_finding_id"
        " WHERE f.run_id = $run AND f.confidence IN ('high', 'medium') ORDER BY ALL",
    )

    # both pairs of node1 are slow and those of node0 are not: one finding, of the host
    assert rows == [("host", "node1", [4, 5, 6, 7], "p2p_disabled")]


def test_the_next_step_names_what_the_logs_show_and_does_not_ask_for_them(far_nic: GeneratedJob) -> None:
    ((step,),) = far_nic.rows("SELECT next_step FROM attribute.verdict WHERE run_id = $run")

    assert str(step).startswith("The job's logs show what may cause it. Rank 1 uses NIC ")
    assert ", line " in str(step)
    assert "NCCL_DEBUG" not in str(step)


def test_the_report_names_the_measured_delay_beside_the_configuration(database: Store) -> None:
    html = api.report(database, run="p2p_lost").html

    assert "Matching measured delay" in html


def test_a_slow_link_is_named_by_its_rate(database: Store) -> None:
    rows = GeneratedJob(database, "slow_nic").rows(
        "SELECT subject, ranks, summary FROM fabric.finding WHERE run_id = $run AND code = 'nic_below_speed'"
    )

    assert [row[:2] for row in rows] == [("node1", [4, 5, 6, 7])]
    assert "4 NICs of 100 Gbit/s in use" in str(rows[0][2])
    assert "run at 400" in str(rows[0][2])
