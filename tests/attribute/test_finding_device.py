"""A slow rank's finding says what telemetry shows of its device, or why it cannot tell."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import rows_of
from traceforge import api
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


@contextmanager
def analysed(scenario: Scenario, folder: Path) -> Iterator[Store]:
    write_scenario(scenario, folder)
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        yield store


def said(store: Store) -> list[tuple[str, str]]:
    return rows_of(store, "SELECT direction, statement FROM attribute.evidence WHERE statement LIKE 'Telemetry%'")


def step(store: Store) -> str:
    ((found,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE confidence = 'high'")
    return str(found)


@pytest.mark.parametrize("tool", ["nvidia_smi", "dcgmi", "prometheus"])
def test_a_lower_clock_is_evidence_with_its_reason(tmp_path: Path, tool: str) -> None:
    # given a rank whose power is capped: at 20 % of an iteration more compute, its clock falls from 1,755 MHz
    with analysed(replace(CAPPED, telemetry=replace(CAPPED.telemetry, tool=tool)), tmp_path) as store:
        ((status, clock, peers, reason, share),) = rows_of(
            store, "SELECT status, sm_clock_mhz, peer_sm_clock_mhz, held_by, held_share FROM attribute.finding_device"
        )
        ((direction, statement),) = said(store)
        advised = step(store)

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


def test_a_clock_like_the_peers_speaks_against_the_device(tmp_path: Path) -> None:
    # given a rank that is slow by its work and not by its clock
    scenario = replace(CAPPED, faults=(Injection("compute_straggler", place=2),))

    with analysed(scenario, tmp_path) as store:
        ((direction, statement),) = said(store)
        advised = step(store)

    assert direction == "against"
    assert "clocks of its device" not in advised
    assert "1,755 MHz, the median peer's 1,755" in statement


def test_a_healthy_job_gets_no_finding_from_its_telemetry(tmp_path: Path) -> None:
    with analysed(replace(CAPPED, faults=()), tmp_path) as store:
        assert rows_of(store, "SELECT COUNT(*) FROM fabric.telemetry WHERE rank IS NOT NULL") > [(100,)]
        assert rows_of(store, "SELECT COUNT(*) FROM attribute.finding WHERE confidence <> 'low'") == [(0,)]


def test_readings_seconds_apart_are_too_coarse_to_tell(tmp_path: Path) -> None:
    telemetry = Telemetry("prometheus", interval_ns=15_000 * MS, around_ns=30_000 * MS)

    with analysed(replace(CAPPED, telemetry=telemetry), tmp_path) as store:
        ((direction, statement),) = said(store)
        assert "Telemetry is too coarse to tell whether its device was slowed down: read it every 100 ms" in step(store)

    assert direction == "against"
    assert statement.startswith("Telemetry too coarse to tell whether its device was slowed down: ")
    assert statement.endswith(", one every 15.0 s.")


def test_readings_of_another_time_tell_nothing(tmp_path: Path) -> None:
    # given a lag of 40 minutes, which is no zone
    with analysed(replace(CAPPED, telemetry=replace(CAPPED.telemetry, lag_ns=2_400_000 * MS)), tmp_path) as store:
        ((direction, statement),) = said(store)

    assert (direction, "at another time" in statement) == ("against", True)


def test_local_times_are_placed_by_their_zone(tmp_path: Path) -> None:
    # given a host two hours ahead of UTC, whose tool writes local times
    zone_ns = 7_200_000 * MS
    with analysed(replace(CAPPED, telemetry=replace(CAPPED.telemetry, lag_ns=zone_ns)), tmp_path) as store:
        assert rows_of(store, "SELECT DISTINCT zone_ns, zones FROM fabric.telemetry_lag") == [(zone_ns, 1)]
        assert said(store)[0][0] == "for"


def test_the_lag_is_found_to_its_step_and_taken_off(tmp_path: Path) -> None:
    # given pauses of different lengths, so that the load has edges, and a tool that dates 330 ms too late
    scenario = replace(
        CAPPED,
        iterations=40,
        cluster=Cluster(nodes=1, devices=4),
        faults=(
            Injection("power_cap", place=2),
            Injection("job_checkpoint", severity=12, first=14, last=14),
            Injection("job_checkpoint", severity=9, first=25, last=25),
        ),
        telemetry=Telemetry("nvidia_smi", interval_ns=50 * MS, lag_ns=330 * MS),
    )

    with analysed(scenario, tmp_path) as store:
        ((status, lag_ns, step_ns),) = rows_of(store, "SELECT status, lag_ns, step_ns FROM fabric.telemetry_lag")

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
        api.ingest([tmp_path], store, jobs=1)

        assert said(store) == []
        assert ("telemetry_of_no_rank",) in rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'fabric'")
