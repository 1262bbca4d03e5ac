"""Redacted exports: whatever is written, no byte of it tells whose job it was; and it still tells the same."""

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT
from tests.export.decoding import messages, node
from traceforge import api
from traceforge.export.chakra import export_chakra
from traceforge.export.parquet import export_parquet
from traceforge.export.perfetto import MANIFEST, TRACKS, export_perfetto
from traceforge.redaction import Redaction
from traceforge.store.database import Store

SECRETS = ("mallory", "zebra", "secretjob", "trainbinary", "innerlabel", "worker-q7", "exp9", "10.0.0.", "oneoffnote")
_REPLACED = {
    "node0": "zebra0.corp.example",
    "node1": "zebra1.corp.example",
    '{"name": "python"}': '{"name": "trainbinary"}',
    '{"labels": "CPU"}': '{"labels": "innerlabel"}',
    "ProfilerStep#7": "ProfilerStep#7 of worker-q7",
    "mesh_tp": "mesh_zebra0_tp",
    "aten::linear": "/home/mallory/exp9/train.py(12): forward",
}
_FURTHER_THREAD = (
    '"traceEvents": [\n{"ph": "M", "name": "thread_name", "pid": 4242, "tid": 4243, "args": {"name": "thread 4243'
    ' (worker-q7)"}},\n{"ph": "X", "cat": "cpu_op", "name": "zebra0 aten::add", "ts": 1.001, "dur": 2.002,'
    ' "pid": 4242, "tid": 4243, "args": {"note": "oneoffnote"}},'
)
_FURTHER_LINES = """
[2025-01-01 00:00:02.000130] node0:1000:1000 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /home/mallory/exp9/t.xml
[2025-01-01 00:00:02.000130] node0:1000:1000 [0] NCCL INFO NCCL_HOSTID set by environment to zebra-rack-3
[2025-01-01 00:00:02.000130] node0:1000:1000 [0] NCCL WARN oneoffnote of mallory
[2025-01-01 00:00:02.000130] node0:1000:1000 [0] NCCL INFO nobody knows this oneoffnote
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A job of two hosts with timelines, execution traces and NCCL logs, and a secret in each of them."""
    folder = tmp_path_factory.mktemp("mallory") / "secretjob"
    folder.mkdir()
    for file in sorted((ROOT / "sample_traces" / "far_nic").glob("*.gz")):
        text = gzip.decompress(file.read_bytes()).decode()
        text = text + _FURTHER_LINES if ".log" in file.name else text.replace('"traceEvents": [', _FURTHER_THREAD, 1)
        for name, secret in _REPLACED.items():
            text = text.replace(name, secret)
        place = folder / file.name.replace("node", "zebra").removesuffix(".gz")
        place.write_text(text)
    with Store(folder.parent / "job.duckdb") as store:
        api.ingest([folder], store, jobs=1, keep_all_args=True)
        yield store


def told(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret.lower() in text.lower()]


def all_bytes(folder: Path) -> str:
    """Names and contents of all files, tables decoded."""
    pieces = []
    for path in sorted(folder.rglob("*")):
        pieces.append(str(path.relative_to(folder)))
        if path.suffix == ".parquet":
            pieces.append(pl.read_parquet(path, hive_partitioning=False).write_ndjson())
        if path.is_file():
            pieces.append(path.read_bytes().decode("latin-1"))
    return "\n".join(pieces)


def test_the_secrets_are_there_without_redaction(store: Store, tmp_path: Path) -> None:
    export_parquet(store, tmp_path / "out", with_facts=True)

    assert told(all_bytes(tmp_path / "out")) == list(SECRETS)


def test_parquet_tells_no_name_and_keeps_every_row(store: Store, tmp_path: Path) -> None:
    tables = export_parquet(store, tmp_path / "out", with_facts=True, redaction=Redaction.of(store))

    assert told(all_bytes(tmp_path / "out")) == []
    for table in tables:
        counted = store.query(f"SELECT COUNT(*) FROM {table.name}").item()
        rows = [pl.read_parquet(tmp_path / "out" / file, hive_partitioning=False).height for file in table.files]
        assert sum(rows) == counted == table.row_count


def test_the_same_host_has_the_same_name_in_every_table(store: Store, tmp_path: Path) -> None:
    export_parquet(store, tmp_path / "out", with_facts=True, redaction=Redaction.of(store))

    def hosts(table: str, column: str) -> set[str]:
        files = (tmp_path / "out" / table).rglob("*.parquet")
        return {host for file in files for host in pl.read_parquet(file, hive_partitioning=False)[column]}

    assert hosts("align.clock", "host") == hosts("meta.source", "host") - {None}
    assert hosts("raw.nccl_process", "host") == hosts("align.clock", "host")
    assert len(hosts("align.clock", "host")) == 2
    assert hosts("raw.argument", "args") == {None}


def test_chakra_traces_tell_no_name_and_keep_their_nodes(store: Store, tmp_path: Path) -> None:
    plain = list(export_chakra(store, 0, tmp_path / "plain", "job"))
    redacted = list(export_chakra(store, 0, tmp_path / "out", "job", Redaction.of(store)))

    assert told(all_bytes(tmp_path / "plain")) != []
    assert told(all_bytes(tmp_path / "out")) == []
    for before, after in zip(plain, redacted, strict=True):
        names = {"name": "", "inputs": ""}
        kept = [[{**node(m), **names} for m in messages(file.path.read_bytes())[1:]] for file in (before, after)]
        assert kept[0] == kept[1]


def test_the_archive_tells_no_name_although_traces_are_in_it(store: Store, tmp_path: Path) -> None:
    made = export_perfetto(store, 0, [], tmp_path / "out" / "job.tar", Redaction.of(store))

    assert told(all_bytes(tmp_path / "out")) == []
    assert (made.ranks, made.missing) == (list(range(8)), [])
    with tarfile.open(made.path) as archive:
        members = {member.name: json.loads(archive.extractfile(member).read()) for member in archive}  # type: ignore[union-attr]
    assert sorted(members) == sorted([MANIFEST, TRACKS, *(f"rank{rank:05d}.pt.trace.json" for rank in range(8))])
    assert members[MANIFEST]["perfetto_manifest"]["attributes"]["traceforge.run"] == "job-1"


def test_times_and_tracks_of_a_redacted_trace_are_those_of_the_file(store: Store, tmp_path: Path) -> None:
    # given the archive with untouched traces, and the redacted one
    folder = store.path.parent / "secretjob"  # type: ignore[union-attr]
    plain = export_perfetto(store, 0, [folder], tmp_path / "plain.tar")
    redacted = export_perfetto(store, 0, [], tmp_path / "redacted.tar", Redaction.of(store))

    def slices(path: Path) -> list[tuple[object, ...]]:
        with tarfile.open(path) as archive:
            found = json.load(archive.extractfile("rank00003.pt.trace.json"))  # type: ignore[arg-type]
        kinds = [e for e in found["traceEvents"] if e["ph"] not in "MC"]
        return [(e["ph"], e.get("ts"), e.get("dur"), e["pid"], e["tid"], e.get("cat"), e.get("id")) for e in kinds]

    # then the same events are in both, to the ns
    assert slices(redacted.path) == slices(plain.path)
    assert len(slices(plain.path)) > 1_000
