"""Execution traces are read whole: every node is a row or counted, whatever the format."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT
from traceforge.files import find_files, read_head
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.chakra import SOURCE as CHAKRA
from traceforge.sources.pytorch_et import SOURCE as PYTORCH_ET

SAMPLES = sorted((ROOT / "sample_traces").glob("*/rank*.et.json.gz"))


def read(source: object, path: Path) -> tuple[SourceSummary, int]:
    """What a source says of a file, and the number of node rows it hands over."""
    nodes: list[int] = []

    def keep(batch: Batch) -> None:
        if batch.table == "raw.chakra_node":
            nodes.append(batch.rows.height)

    return source.read(path, keep, ReadOptions()), sum(nodes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", SAMPLES[::5], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_node_of_a_recorded_execution_trace_is_a_row(path: Path) -> None:
    nodes = json.loads(gzip.decompress(path.read_bytes()))["nodes"]

    summary, rows = read(PYTORCH_ET, path)

    assert (summary.event_count, summary.stored_count, rows) == (len(nodes), len(nodes), len(nodes))


def test_a_timeline_is_no_execution_trace() -> None:
    head = read_head(ROOT / "sample_traces" / "healthy" / "rank0.pt.trace.json.gz")

    assert not PYTORCH_ET.recognises(head)
    assert not CHAKRA.recognises(head)


def test_every_execution_trace_of_the_corpus_is_read_and_counted(corpus: Path) -> None:
    read_files = 0
    for path in find_files([corpus / "traces" / "chakra", corpus / "traces" / "kineto" / "megatron_tp2"]):
        head = read_head(path)
        for source in (CHAKRA, PYTORCH_ET):
            if source.recognises(head):
                summary, rows = read(source, path)
                lost = sum(issue.lost_events for issue in summary.issues)
                assert summary.event_count == summary.stored_count + lost, path
                assert rows == summary.stored_count, path
                read_files += 1
    assert read_files > 80


def facts_of(path: Path, source: object) -> dict[str, int]:
    """Counts that were also obtained without traceforge."""
    tables: dict[str, list[pl.DataFrame]] = {}
    source.read(path, lambda batch: tables.setdefault(batch.table, []).append(batch.rows), ReadOptions())  # type: ignore[attr-defined]
    node, edge = (pl.concat(tables[f"raw.chakra_{name}"]) for name in ("node", "edge"))
    calls = pl.concat(tables["raw.chakra_communication"]) if "raw.chakra_communication" in tables else None
    known = node["node_id"].implode()
    control = edge.filter(pl.col("kind") == "control")
    return {
        "nodes": node.height,
        "collectives": int((node["node_type"] == "COMM_COLL").sum() or 0),
        "data": edge.filter(pl.col("kind") == "data").height,
        "control": control.height,
        "dangling_control": control.filter(~pl.col("from_node_id").is_in(known))["from_node_id"].n_unique(),
        "with_duration": node.height - node["duration_ns"].null_count(),
        "with_start": node.height - node["raw_start_ns"].null_count(),
        "calls": 0 if calls is None else calls.filter(~pl.col("is_wait")).height,
        "waits": 0 if calls is None else calls.filter("is_wait").height,
    }


@pytest.mark.parametrize(
    ("file", "known"),
    [
        (
            "chakra/feeder_tests_et/chakra.0.et.gz",
            {
                "nodes": 3664,
                "collectives": 21,
                "data": 181_878,
                "control": 3664,
                "dangling_control": 210,
                "with_duration": 3507,
                "with_start": 0,
            },
        ),
        (
            "chakra/resnet_dp_text/ranks_0_to_7/Resnet50_DataParallel.0.et",
            {"nodes": 215, "collectives": 54, "data": 214, "control": 0, "with_duration": 161, "with_start": 0},
        ),
        (
            "kineto/megatron_tp2/companion/final.0.et",
            {"nodes": 2128, "collectives": 39, "data": 3290, "control": 2128, "dangling_control": 1},
        ),
    ],
)
def test_a_chakra_file_of_the_corpus_holds_what_others_count(file: str, known: dict[str, int], corpus: Path) -> None:
    assert facts_of(corpus / "traces" / file, CHAKRA).items() >= known.items()


@pytest.mark.parametrize("rank", range(8))
def test_megatron_records_85_calls_and_85_waits(rank: int, corpus: Path) -> None:
    facts = facts_of(corpus / f"traces/chakra/megatron_tp8_a100/megatron_et_{rank}.json.gz", PYTORCH_ET)

    assert (facts["nodes"], facts["calls"], facts["waits"]) == (5424, 85, 85)


@pytest.mark.parametrize(
    ("file", "nodes", "calls"),
    [
        ("chakra/linear_2023/linear_et.json.gz", 931, 0),
        ("chakra/et_1.0.2_sample/1.0.2-chakra.0.0.4.tgz/1.0.2-chakra.0.0.4.json", 263, 20),
        ("kineto/megatron_tp2/companion/pytorch_et_0.json.gz", 1884, 26),
        ("kineto/self_gloo4_ddp/companion_pytorch_et/rank0_et.json.gz", 4115, None),
    ],
)
def test_a_pytorch_trace_of_the_corpus_holds_what_others_count(
    file: str, nodes: int, calls: int | None, corpus: Path
) -> None:
    facts = facts_of(corpus / "traces" / file, PYTORCH_ET)

    assert facts["nodes"] == nodes
    assert calls is None or facts["calls"] + facts["waits"] == calls


def test_the_feeders_list_holds_the_same_graph_as_the_binary_file(corpus: Path) -> None:
    listed = corpus / "traces/chakra/feeder_json/json_trace.tar.gz"
    large, small = (facts_of(path, CHAKRA) for path in find_files([listed]))

    assert (large["nodes"], large["collectives"], large["data"]) == (3664, 21, 181_878)
    assert (small["nodes"], small["collectives"], small["data"]) == (7, 3, 6)
