"""What NCCL's Inspector measured: transfer, skew and who came last, without timeline or clock."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fabric.logs import fabric_of_folder
from tests.given import rows_of
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.cluster import LINKS, Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario


def line(rank: int, taken_us: float, *, number: int = 0, bandwidth: float = 10.0, op: str = "AllReduce") -> str:
    """A line of the Inspector: one rank of two."""
    whole = {
        "header": {"id": "0xfeed", "rank": rank, "n_ranks": 2, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": "a", "pid": rank},
        "coll_perf": {
            "coll": op, "coll_sn": number, "coll_msg_size_bytes": 1_000_000, "coll_exec_time_us": taken_us,
            "coll_timing_source": "kernel_gpu", "coll_busbw_gbs": bandwidth,
        },
    }  # fmt: skip
    return json.dumps(whole)


def store_of(folder: Path, *files: list[str]) -> Store:
    for number, lines in enumerate(files):
        (folder / f"inspector{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return fabric_of_folder(folder, asked="fabric.measured")


def test_the_shortest_time_is_the_transfer_and_the_rest_is_waiting(tmp_path: Path) -> None:
    # given  rank 0  |=== waits ===|= 100 us =|   300 us
    #        rank 1                |= 100 us =|   arrives last
    with store_of(tmp_path, [line(0, 300, bandwidth=3.3)], [line(1, 100, bandwidth=10)]) as store:
        rows = rows_of(
            store,
            "SELECT op, transfer_ns, longest_ns, skew_ns, last_rank, bus_bandwidth_bytes_per_s, communicator_id"
            " FROM fabric.measured",
        )

    assert rows == [("all_reduce", 100_000, 300_000, 200_000, 1, 10_000_000_000, None)]


def test_numbers_count_within_an_operation_and_a_rank_counts_once(tmp_path: Path) -> None:
    both = [line(0, 100), line(0, 100), line(0, 50, op="AllGather")]
    with store_of(tmp_path, both, [line(1, 120), line(1, 60, op="AllGather")]) as store:
        rows = rows_of(store, "SELECT op, sequence, member_count, transfer_ns FROM fabric.measured ORDER BY op")

    assert rows == [("all_gather", 0, 2, 50_000), ("all_reduce", 0, 2, 100_000)]


def test_where_a_rank_is_missing_nobody_is_called_last(tmp_path: Path) -> None:
    with store_of(tmp_path, [line(0, 300)]) as store:
        rows = rows_of(store, "SELECT member_count, transfer_ns, skew_ns, last_rank FROM fabric.measured")

    assert rows == [(1, 300_000, None, None)]


@pytest.fixture(scope="module", params=["", "2.27.5"])
def straggling(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """Rank 2 of four on two hosts computes slowly; there are the Inspector's files, with logs or alone."""
    folder = tmp_path_factory.mktemp("job")
    logs = NcclLogs(request.param, inspector=True)
    slow = Injection("compute_straggler", 2, 0.3)
    write_scenario(Scenario("job", 3, 8, cluster=Cluster(2, 2), nccl=logs, faults=(slow,)), folder)
    for path in folder.glob("rank*"):
        path.unlink()
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, run="job", jobs=1)
        yield request.param, store


def test_a_straggler_and_the_links_speed_are_seen_without_a_timeline(straggling: tuple[str, Store]) -> None:
    version, store = straggling
    (row,) = rows_of(
        store,
        "SELECT COUNT(*), LIST(DISTINCT last_rank), LIST(DISTINCT last_global_rank), LIST(DISTINCT communicator_id),"
        " MEDIAN(bus_bandwidth_bytes_per_s) FROM fabric.measured",
    )

    # 8 iterations of two buckets; the global rank is known where a log tells it
    assert row[:4] == (16, [2], [2 if version else None], [0 if version else None])
    # what is measured is the speed of the generated link, but for its latency, its noise and how evenly ranks leave
    assert float(str(row[4])) / 1e9 == pytest.approx(LINKS["rack"].bytes_per_ns, rel=0.03)


def test_the_report_shows_it_also_without_any_log(straggling: tuple[str, Store]) -> None:
    html = api.report(straggling[1]).html

    assert "Collectives as measured by NCCL" in html
    assert "rank 2, in 16 of 16" in html or "rank in the group 2, in 16 of 16" in html
