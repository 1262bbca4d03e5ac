"""Telemetry of a generated job: what is true of the devices is what the files show."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import add_facts, built, rows_of
from traceforge.errors import UsageError
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario
from traceforge.synth.telemetry_settings import Telemetry

JOB = Scenario(
    iterations=8,
    cluster=Cluster(nodes=2, devices=2),
    faults=(Injection("power_cap", place=1, severity=0.3, first=4),),
    telemetry=Telemetry("nvidia_smi", interval_ns=10_000_000),
)


def clocks(folder: Path, host: str) -> dict[str, list[str]]:
    """By device, what its clock was read to be while the job ran."""
    read: dict[str, list[str]] = {}
    for line in (folder / f"nvidia-smi.{host}.csv").read_text().splitlines()[1:]:
        _, device, _, _, _, clock, *_, reasons, _ = line.split(", ")
        if reasons != "0x0000000000000001":
            read.setdefault(device, []).append(clock)
    return read


def test_a_capped_device_slows_down_where_the_truth_says_so(tmp_path: Path) -> None:
    write_scenario(JOB, tmp_path, compressed=False)
    truth = json.loads((tmp_path / "truth.json").read_text())["telemetry"]

    assert truth["held_by"] == [[0] * 8, [0] * 4 + [4] * 4, [0] * 8, [0] * 8]
    (low,) = set(truth["clock_mhz"][1][4:])
    read = clocks(tmp_path, "node0")
    assert set(read["0"]) == {"1755 MHz"}
    assert read["1"][0] == "1755 MHz"
    assert abs(int(read["1"][-1].removesuffix(" MHz")) - low) <= 7  # steps of 15 MHz


def test_devices_have_the_addresses_that_logs_of_nccl_state(tmp_path: Path) -> None:
    job = replace(JOB, iterations=2, nccl=NcclLogs("2.27.5"))
    write_scenario(job, tmp_path, compressed=False)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "fabric.telemetry_series")
        found = rows_of(store, "SELECT DISTINCT rank, joined_by FROM fabric.telemetry_series ORDER BY rank")

    assert found == [(rank, "pci") for rank in range(4)]


def test_a_tool_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no telemetry of 'top'"):
        write_scenario(Scenario(iterations=2, telemetry=Telemetry("top")), tmp_path)
