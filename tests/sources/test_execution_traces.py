"""Execution traces are read whole: every node is a row or counted, whatever the format."""

import gzip
import json
from pathlib import Path

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
