"""The named queries on the health of ranks and hosts, which read what each rank's own rows say."""

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from tests.cli.running import run
from tests.given import rows_of
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
