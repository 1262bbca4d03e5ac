"""A slow rank's finding says what telemetry shows of its device, or why it cannot tell."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import add_facts, built, rows_of
from tests.stories import Run
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario
from traceforge.synth.telemetry_settings import Telemetry

MS = 1_000_000
CAPPED = Scenario(
    "capped",
    iterations=12,
    cluster=Cluster(nodes=2, devices=2),
    faults=(Injection("power_cap", place=2),),
    telemetry=Telemetry("nvidia_smi", interval_ns=20 * MS),
)


PAUSED = replace(
    CAPPED,
    iterations=40,
    cluster=Cluster(nodes=1, devices=4),
    faults=(
        Injection("power_cap", place=2),
        Injection("job_checkpoint", severity=12, first=14, last=14),
        Injection("job_checkpoint", severity=9, first=25, last=25),
    ),
)
TOOLS = ("nvidia_smi", "dcgmi", "prometheus")
ZONE_NS = 7_200_000 * MS
JOBS = {
    **{tool: replace(CAPPED, telemetry=replace(CAPPED.telemetry, tool=tool)) for tool in TOOLS},
    "slow by its work": replace(CAPPED, faults=(Injection("compute_straggler", place=2),)),
    "healthy": replace(CAPPED, faults=()),
    "read every 15 s": replace(
        CAPPED, telemetry=Telemetry("prometheus", interval_ns=15_000 * MS, around_ns=30_000 * MS)
    ),
    "40 minutes late": replace(CAPPED, telemetry=replace(CAPPED.telemetry, lag_ns=2_400_000 * MS)),
    "2 hours late": replace(CAPPED, telemetry=replace(CAPPED.telemetry, lag_ns=ZONE_NS)),
    "330 ms late": replace(PAUSED, telemetry=Telemetry("nvidia_smi", interval_ns=50 * MS, lag_ns=330 * MS)),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """All jobs, each a run of one database, whose stages are built once."""
    folder = tmp_path_factory.mktemp("telemetry")
    with Store(None, is_kept=False) as store:
        for name, scenario in JOBS.items():
            write_scenario(scenario, folder / name)
            add_facts(store, folder / name, run_name=name)
        built(store, "fabric.telemetry", "attribute.evidence", "attribute.finding", "attribute.finding_device")
        yield {name: Run(store, number) for name, number in store.rows("SELECT run_name, run_id FROM meta.run")}


def said(store: Run | Store) -> list[tuple[str, str]]:
    return rows_of(store, "SELECT direction, statement FROM attribute.evidence WHERE statement LIKE 'Telemetry%'")


def step(store: Run) -> str:
    ((found,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE confidence = 'high'")
    return str(found)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_lower_clock_is_evidence_with_its_reason(jobs: dict[str, Run], tool: str) -> None:
    # given a rank whose power is capped: at 20 % of an iteration more compute, its clock falls from 1,755 MHz
    ((status, clock, peers, reason, share),) = rows_of(
        jobs[tool], "SELECT status, sm_clock_mhz, peer_sm_clock_mhz, held_by, held_share FROM attribute.finding_device"
    )
    ((direction, statement),) = said(jobs[tool])
    advised = step(jobs[tool])

    # then
    assert (status, clock, peers, reason, share) == ("slower_clock", 1425, 1755, "power cap", 1)
    assert direction == "for"
    assert statement.startswith(
        "Telemetry: device clock 1,425 against 1,755 MHz of the median peer, power cap in 100 %"
    )
    # 1755 / 1425
    assert "accounts for 23 % longer compute" in statement
    assert ("prints no times" in statement) == (tool == "dcgmi")
    assert "clocks at 1,425 against 1,755 MHz (power cap): compare its power limit" in advised
    assert "batch, sequence lengths" not in advised


def test_a_clock_like_the_peers_speaks_against_the_device(jobs: dict[str, Run]) -> None:
    # given a rank that is slow by its work and not by its clock
    job = jobs["slow by its work"]

    ((direction, statement),) = said(job)
    advised = step(job)

    assert direction == "against"
    assert "clocks of its device" not in advised
    assert "1,755 MHz, the median peer's 1,755" in statement


def test_a_healthy_job_gets_no_finding_from_its_telemetry(jobs: dict[str, Run]) -> None:
    assert rows_of(jobs["healthy"], "SELECT COUNT(*) FROM fabric.telemetry WHERE rank IS NOT NULL") > [(100,)]
    assert rows_of(jobs["healthy"], "SELECT COUNT(*) FROM attribute.finding WHERE confidence <> 'low'") == [(0,)]


def test_readings_seconds_apart_are_too_coarse_to_tell(jobs: dict[str, Run]) -> None:
    job = jobs["read every 15 s"]

    ((direction, statement),) = said(job)
    assert "Telemetry is too coarse to tell whether its device was slowed down: read it every 100 ms" in step(job)
    assert direction == "against"
    assert statement.startswith("Telemetry too coarse to tell whether its device was slowed down: ")
    assert statement.endswith(", one every 15.0 s.")


def test_readings_of_another_time_tell_nothing(jobs: dict[str, Run]) -> None:
    # given a lag of 40 minutes, which is no zone
    ((direction, statement),) = said(jobs["40 minutes late"])

    assert (direction, "at another time" in statement) == ("against", True)


def test_local_times_are_placed_by_their_zone(jobs: dict[str, Run]) -> None:
    # given a host two hours ahead of UTC, whose tool writes local times
    job = jobs["2 hours late"]

    assert rows_of(job, "SELECT DISTINCT zone_ns, zones FROM fabric.telemetry_lag") == [(ZONE_NS, 1)]
    assert said(job)[0][0] == "for"


def test_the_lag_is_found_to_its_step_and_taken_off(jobs: dict[str, Run]) -> None:
    # given pauses of different lengths, so that the load has edges, and a tool that dates 330 ms too late
    ((status, lag_ns, step_ns),) = rows_of(
        jobs["330 ms late"], "SELECT status, lag_ns, step_ns FROM fabric.telemetry_lag"
    )

    assert status == "measured"
    assert abs(lag_ns - 330 * MS) <= step_ns


def test_a_device_that_no_rank_can_be_told_to_use_is_an_issue(tmp_path: Path) -> None:
    # given two hosts, and a file that names neither
    write_scenario(CAPPED, tmp_path)
    named = tmp_path / "nvidia-smi.node1.csv.gz"
    text = gzip.decompress(named.read_bytes())
    named.unlink()
    (tmp_path / "smi.csv").write_bytes(text)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "fabric", "attribute.evidence")

        assert said(store) == []
        assert ("telemetry_of_no_rank",) in rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'fabric'")
