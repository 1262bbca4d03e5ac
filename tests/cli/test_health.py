"""The named queries on the health of ranks, hosts and racks, which read what each rank's own rows say."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from tests.cli.running import run
from tests.given import rows_of
from tests.store.folders import write_trace
from traceforge.align.stated_racks import StatedRacks, stated_racks
from traceforge.store.database import Store

OWN = ("compute", "copy", "input", "runtime", "idle")


def asked(database: Path, name: str) -> list[dict[str, str]]:
    result = run("sql", database, "--name", name, "--format", "csv")
    return list(csv.DictReader(result.stdout.splitlines()))


@pytest.fixture
def straggling(sample_database: Callable[..., Path]) -> Path:
    """Four hosts with a rank each; rank 2 computes for longer."""
    return sample_database("compute_straggler")


def test_the_slow_rank_comes_first_by_its_own_time_above_the_median_rank(straggling: Path) -> None:
    # given the time of each rank outside communication, mean over the judged iterations
    with Store(straggling, read_only=True) as store:
        phases = rows_of(
            store,
            "SELECT rank, phase, SUM(duration_ns) FROM timeline.phase SEMI JOIN operation.judged_iteration"
            " USING (run_id, iteration) GROUP BY ALL",
        )
        iterations = store.value("SELECT COUNT(*) FROM operation.judged_iteration")
    own_ms = {
        rank: sum(float(ns) for other, phase, ns in phases if other == rank and phase in OWN) / iterations / 1e6
        for rank in range(4)
    }

    first = asked(straggling, "rank_health")[0]

    assert (first["rank"], first["host"]) == ("2", "node2")
    assert float(first["own_ms"]) == pytest.approx(own_ms[2])
    assert float(first["above_median_ms"]) == pytest.approx(own_ms[2] - median(own_ms.values()))
    assert float(first["above_median_share"]) == pytest.approx(own_ms[2] / median(own_ms.values()) - 1)


def test_the_host_of_the_slow_rank_comes_first(straggling: Path) -> None:
    (worst, *_), (first, *others) = asked(straggling, "rank_health"), asked(straggling, "host_health")

    assert (first["host"], first["ranks"], first["slowest_rank"]) == ("node2", "1", "2")
    assert first["above_median_ms"] == first["least_ms"] == first["most_ms"] == worst["above_median_ms"]
    assert len(others) == 3


def test_ranks_of_a_slow_stage_are_not_held_against_those_of_others(sample_database: Callable[..., Path]) -> None:
    # given a pipeline whose stage 2 works for 6 ms longer than the others
    ranks = asked(sample_database("slow_stage"), "rank_health")
    slow = [float(row["own_ms"]) for row in ranks if row["stage"] == "2"]
    rest = [float(row["own_ms"]) for row in ranks if row["stage"] != "2"]
    assert min(slow) > max(rest) + 5

    # then each of its ranks is near the median of its own stage
    assert all(abs(float(row["above_median_ms"])) < 1 for row in ranks)


def test_the_rack_of_the_slow_host_comes_first_beside_its_other_host(straggling: Path, tmp_path: Path) -> None:
    # given two hosts in each of two racks
    database = Path(shutil.copyfile(straggling, tmp_path / "run.duckdb"))
    with Store(database) as store:
        store.execute("INSERT INTO align.rack SELECT 0, 'node' || i, IF(i < 2, 'a', 'b') FROM RANGE(4) AS t(i)")
    above = {row["host"]: float(row["above_median_ms"]) for row in asked(database, "host_health")}

    first, last = asked(database, "rack_health")

    assert (first["rack"], first["hosts"], first["ranks"], first["slowest_host"]) == ("b", "2", "2", "node2")
    assert float(first["above_median_ms"]) == pytest.approx((above["node2"] + above["node3"]) / 2)
    assert float(first["least_host_ms"]) == pytest.approx(above["node3"])
    assert float(last["above_median_ms"]) == pytest.approx((above["node0"] + above["node1"]) / 2)


def test_racks_that_are_stated_stay_with_the_database(tmp_path: Path) -> None:
    write_trace(tmp_path / "traces" / "rank0.json", 0)
    (tmp_path / "racks.csv").write_text("node0,r1\n")
    stated = ("--racks", tmp_path / "racks.csv", "--rack-pattern", "^(r.)")

    run("ingest", tmp_path / "traces", "--db", tmp_path / "run.duckdb", *stated)

    with Store(tmp_path / "run.duckdb", read_only=True) as store:
        assert stated_racks(store) == StatedRacks({"node0": "r1"}, "^(r.)")
