"""Recorded jobs of the corpus: links, graphs and replay of real traces."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.given import built, rows_of
from traceforge.api import InlineExecutor, sources
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files


def store_of_folder(folder: Path) -> Store:
    """All files of a folder as one run, built up to the graph."""
    store = Store(None, threads=1)
    files = find_files([folder])
    ingest_files(store, files, sources(), run_name="job", executor=InlineExecutor(), options=ReadOptions())
    return built(store)


@pytest.fixture(scope="module")
def megatron(corpus: Path) -> Iterator[Store]:
    store = store_of_folder(corpus / "traces" / "chakra" / "megatron_tp8_a100")
    yield store
    store.close()


def test_megatron_links_on_all_eight_ranks_where_no_handles_are_repeated(megatron: Store) -> None:
    links = rows_of(
        megatron,
        "SELECT rank, method, id_offset, matched_count, operation_count, name_agreement FROM graph.link"
        " WHERE is_accepted ORDER BY rank",
    )

    assert links == [(rank, "external_id", 2, 5422, 5422, 1.0) for rank in range(8)]


def test_a_trace_of_one_iteration_is_placed_in_a_timeline_of_39(corpus: Path) -> None:
    store = store_of_folder(corpus / "traces" / "chakra" / "linear_2023")

    assert rows_of(store, "SELECT method, matched_count, occurrences FROM graph.link WHERE is_accepted") == [
        ("sequence", 928, 39)
    ]


@pytest.mark.parametrize("job", ["megatron_tp2", "self_gloo4_ddp", "self_gloo4_tp2dp2"])
def test_traces_with_handles_link_by_them(job: str, corpus: Path) -> None:
    store = store_of_folder(corpus / "traces" / "kineto" / job)

    links = rows_of(store, "SELECT method, matched_share >= 0.999, name_agreement FROM graph.link")
    assert set(links) == {("rf_id", True, 1.0)}
