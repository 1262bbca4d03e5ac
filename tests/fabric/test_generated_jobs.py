"""Generated jobs with traces and logs of all ranks: what the timeline measures and what the logs show of the
configuration come together in one finding."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.given import rows_of
from traceforge import api
from traceforge.api import STAGES
from traceforge.store.database import Store
from traceforge.store.stage import build_stage
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario


def judged(folder: Path, logs: NcclLogs, *faults: Injection) -> Store:
    """Two hosts of four devices, tensor-parallel in pairs: four pairs, and two groups across hosts."""
    scenario = Scenario("job", 3, 8, cluster=Cluster(2, 4, 2), nccl=logs, faults=faults)
    write_scenario(scenario, folder)
    store = Store(None)
    api.ingest([folder], store, run="job", jobs=1)
    for stage in STAGES[: STAGES.index("attribute") + 1]:
        build_stage(store, f"traceforge.{stage}")
    return store


@pytest.fixture(scope="module", params=["2.21.5", "2.27.5", "2.27.5 stamped, by host"])
def healthy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    version, _, form = request.param.partition(" ")
    logs = NcclLogs(version, stamped=bool(form), by_host=bool(form))
    with judged(tmp_path_factory.mktemp("healthy"), logs) as store:
        yield store


@pytest.fixture(scope="module", params=["2.21.5", "2.27.5"])
def far_nic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with judged(tmp_path_factory.mktemp("far"), NcclLogs(request.param), Injection("far_nic", 1, 0.3)) as store:
        yield store


@pytest.fixture(scope="module")
def p2p_lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with judged(tmp_path_factory.mktemp("p2p"), NcclLogs("2.27.5"), Injection("p2p_lost", 1, 0.3)) as store:
        yield store


def test_every_process_group_finds_its_communicator(healthy: Store) -> None:
    rows = rows_of(
        healthy,
        "SELECT t.ranks, k.ranks, m.score, m.method, m.is_ambiguous FROM timeline.communicator AS t"
        " JOIN fabric.communicator_match AS m ON m.timeline_communicator_id = t.communicator_id"
        " JOIN fabric.communicator AS k ON k.communicator_id = m.communicator_id",
    )

    assert len(rows) == 6
    assert all(timed == logged for timed, logged, *_ in rows)
    assert {row[2:] for row in rows} == {(1.0, "sequence", False)}


def test_every_collective_learns_how_it_travels(healthy: Store) -> None:
    rows = rows_of(
        healthy,
        "SELECT algorithm, protocol, path_class, channel_count, nics, COUNT(*) FROM fabric.collective"
        " GROUP BY ALL ORDER BY ALL",
    )

    # 8 iterations x 8 all-reduces x 4 pairs, and x 2 buckets x 2 groups; each group across hosts uses its rail's NICs
    assert [row[:3] for row in rows] == [
        ("ring", "simple", "network_gdr"),
        ("ring", "simple", "network_gdr"),
        ("ring", "simple", "p2p"),
    ]
    assert [row[4:] for row in rows] == [(["mlx5_0", "mlx5_2"], 16), (["mlx5_1", "mlx5_3"], 16), ([], 256)]


def test_all_rings_are_whole_and_all_connections_have_an_owner(healthy: Store) -> None:
    assert rows_of(healthy, "SELECT COUNT(*) FROM fabric.ring WHERE NOT is_complete") == [(0,)]
    assert rows_of(
        healthy, "SELECT COUNT(*) FROM raw.nccl_link ANTI JOIN fabric.link USING (source_id, record_id)"
    ) == [(0,)]


def test_every_record_is_understood(healthy: Store) -> None:
    assert rows_of(healthy, "SELECT COUNT(*) FROM raw.nccl_unparsed") == [(0,)]


def test_a_healthy_job_shows_no_problem(healthy: Store) -> None:
    assert rows_of(healthy, "SELECT code FROM fabric.finding WHERE severity = 'problem'") == []
    assert rows_of(healthy, "SELECT kind FROM attribute.verdict") == [("nothing_significant",)]


def test_a_far_nic_and_the_slow_group_it_causes_are_one_finding(far_nic: Store) -> None:
    # given rank 1 on a far NIC: group (1, 3, 5, 7) is measured to be slow
    rows = rows_of(
        far_nic,
        "SELECT f.cause, t.ranks, g.code, g.subject FROM attribute.finding AS f"
        " JOIN timeline.communicator AS t ON CAST(t.communicator_id AS VARCHAR) = f.subject"
        " JOIN attribute.configuration AS c ON c.finding_id = f.finding_id"
        " JOIN fabric.finding AS g ON g.finding_id = c.fabric_finding_id"
        " WHERE f.finding_id = 0 ORDER BY c.place",
    )

    # then what explains it best comes first, and the finding's evidence tells it with file and line
    assert rows[0] == ("slow_path", [1, 3, 5, 7], "far_nic", "1")
    evidence = rows_of(far_nic, "SELECT statement FROM attribute.evidence WHERE finding_id = 0 ORDER BY place")
    (told,) = (text for (text,) in evidence if "Rank 1 uses NIC 3, SYS away" in text)
    assert "not a measured delay" in told
    assert "nccl.node0.1001.log" in told
    assert "line" in told


def test_lost_peer_access_explains_the_slow_pairs_of_its_host(p2p_lost: Store) -> None:
    rows = rows_of(
        p2p_lost,
        "SELECT t.ranks, g.code FROM attribute.finding AS f"
        " JOIN timeline.communicator AS t ON CAST(t.communicator_id AS VARCHAR) = f.subject"
        " JOIN attribute.configuration AS c ON c.finding_id = f.finding_id"
        " JOIN fabric.finding AS g ON g.finding_id = c.fabric_finding_id"
        " WHERE f.confidence IN ('high', 'medium') ORDER BY ALL",
    )

    assert rows == [([4, 5], "p2p_disabled"), ([6, 7], "p2p_disabled")]


def test_the_report_names_the_measured_delay_beside_the_configuration(p2p_lost: Store) -> None:
    html = api.report(p2p_lost).html

    assert "Measured delay that fits" in html


def test_a_slow_link_is_named_by_its_rate(tmp_path: Path) -> None:
    with judged(tmp_path, NcclLogs("2.27.5"), Injection("slow_nic", 1, 0.3)) as store:
        rows = rows_of(store, "SELECT subject, ranks, summary FROM fabric.finding WHERE code = 'nic_below_speed'")

    assert [row[:2] for row in rows] == [("node1", [4, 5, 6, 7])]
    assert "4 NICs of 100 Gbit/s in use" in rows[0][2]
    assert "run at 400" in rows[0][2]
