"""README's list of inputs: one line a source, each true of a file that is made here, and the commands are doctor's."""

import re
import sqlite3
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.sources.chakra_wire import field
from tests.sources.operation_tables import parquet, pipeline
from traceforge import api
from traceforge.doctor import CHECKS
from traceforge.doctor.profilers import advice_for
from traceforge.files import find_files
from traceforge.store.spool import kind_of
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import TRACE_FORMATS, write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario
from traceforge.synth.telemetry_files import TOOLS
from traceforge.synth.telemetry_settings import Telemetry

_TABLE = re.compile(r"<!-- inputs[^>]*-->\n\| .*\n\|[-|]+\|\n((?:\| .*\n)+)")
_PLAIN = {
    "rocprof": b'{"rocprofiler-sdk-tool": []}',
    "xplane": field(1, field(2, "/device:GPU:0")),
    "nccl_topology": b'<system version="1">\n  <cpu numaid="0" affinity="ff" arch="x86_64"/>\n</system>',
    "flight_recorder": b'{"version": "2.9", "pg_config": {}, "pg_status": {}, "entries": []}',
    "operation_table": parquet(pipeline(1)),
    "chakra": b'{"schema": "0.0.4"}\n{"id": "1", "name": "a", "type": "COMP_NODE", "ctrlDeps": []}\n',
}


def lines() -> dict[str, tuple[str, ...]]:
    """By source: what is read, how it is recorded, what it cannot tell."""
    found = _TABLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in found[1].splitlines()]
    return {row[0].strip(" |`"): tuple(row[1:]) for row in rows}


def test_every_source_has_its_line_and_no_line_is_of_none() -> None:
    assert sorted(lines()) == sorted(api.sources())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of every source: generated where we can write it, else by hand."""
    folder = tmp_path_factory.mktemp("inputs")
    for number, (trace_format, tool) in enumerate(zip(TRACE_FORMATS, cycle(TOOLS))):
        job = Scenario(
            "inputs", iterations=2, cluster=Cluster(1, 2), nccl=NcclLogs("2.27.5", inspector=True),
            execution_traces=True, telemetry=Telemetry(tool),
        )  # fmt: skip
        write_scenario(job, folder / str(number), compressed=False, trace_format=trace_format)
    with closing(sqlite3.connect(folder / "rocpd.db")) as database:
        database.execute("CREATE TABLE rocpd_kernel_dispatch (id INTEGER, start BIGINT)")
    for name, data in _PLAIN.items():
        (folder / f"{name}.file").write_bytes(data)
    return folder


def test_a_file_of_each_line_is_recognised_by_its_source(folder: Path) -> None:
    sources = api.sources()
    kinds = {path.name: kind_of(path, sources) for path in find_files([folder])}

    # the recorder's own log is written by a training job
    assert set(kinds.values()) - {None} == set(lines()) - {"live_log"}
    assert {name: kinds[f"{name}.file"] for name in _PLAIN} == {name: name for name in _PLAIN}
    assert {name for name, kind in kinds.items() if kind is None} == {"scenario.toml", "truth.json"}


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("nsys", advice_for("all_ranks", "nsys")),
        ("rocprof", advice_for("all_ranks", "rocprof")),
        ("rocpd", advice_for("all_ranks", "rocpd")),
        ("xplane", advice_for("all_ranks", "xplane")),
        ("pftrace", advice_for("timeline", "pftrace")),
        ("telemetry", next((one.remedy, one.setting) for one in CHECKS if one.code == "telemetry")),
        ("nccl_log", next((one.remedy, one.setting) for one in CHECKS if one.code == "nccl_log")),
    ],
)
def test_the_command_of_a_line_is_that_of_doctor(kind: str, setting: tuple[str, str] | None) -> None:
    (command,) = re.findall(r"`([^`]+)`", lines()[kind][1])[:1]

    assert setting is not None
    # the line may leave out where files go, but nothing of what is recorded
    assert all(word in setting[1] for word in command.replace("…", " ").split())
