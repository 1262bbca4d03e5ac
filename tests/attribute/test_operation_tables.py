"""Jobs of which only their own timers tell: who is slow, by which stage, and by how much.

Two published jobs of ByteDance (StragglerAnalysis, OSDI 2025) have a known truth: in AR one worker is slow (rank 0), in
ST the last stage has more to do. Their authors published by how much a step shortens without that.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.sources.operation_tables import parquet, pipeline
from traceforge import api
from traceforge.store.database import Store

CORPUS = os.environ.get("TRACEFORGE_CORPUS")
MS = 1_000_000
S = 1_000_000_000


@contextmanager
def analysed(folder: Path, data: bytes) -> Iterator[Store]:
    table = folder / "timers.parquet"
    table.write_bytes(data)
    with Store(folder / "job.duckdb") as store:
        api.ingest([table], store, jobs=1)
        yield store


def findings(store: Store) -> list[dict[str, Any]]:
    return store.query("SELECT * FROM attribute.finding ORDER BY finding_id").to_dicts()


def saved_ns(store: Store, finding: dict[str, Any]) -> float:
    """By how much a step shortens without what was found, of the gain in throughput that is told."""
    mean_ns = float(store.value("SELECT AVG(duration_ns) FROM timeline.iteration WHERE NOT is_partial"))
    return mean_ns * (1 - 1 / (1 + float(finding["gain_if_fixed"])))


def test_the_slow_rank_of_a_pipeline_is_named_and_costs_what_it_is_longer(tmp_path: Path) -> None:
    # both passes of replica 1's first stage take 6 ms more
    with analysed(tmp_path, parquet(pipeline(12, slow_ms=6, slow=(1, 0)))) as store:
        first = findings(store)[0]
        assert (first["subject_kind"], first["ranks"], first["cause"]) == ("rank", [1], "slow_compute")
        assert saved_ns(store, first) == pytest.approx(12 * MS, rel=0.02)
        assert store.rows("SELECT DISTINCT status FROM align.clock ORDER BY 1") == [("reference",), ("shared_clock",)]


def test_a_pipeline_in_which_nobody_is_slow_has_no_finding(tmp_path: Path) -> None:
    with analysed(tmp_path, parquet(pipeline(12))) as store:
        assert findings(store) == []


@contextmanager
def published(folder: Path, job: str, without: str, steps: int) -> Iterator[tuple[Store, dict[str, float]]]:
    """The first steps of a published job, and its authors' replays of it with something set right, s.

    Args:
        without: what is set right: `mw` the slow workers, `ms` the last stage.
    """
    if CORPUS is None:
        pytest.skip("TRACEFORGE_CORPUS is not set")
    place = Path(CORPUS) / "traces/ops_timeline" / f"straggler_{job}"
    frame = pl.read_parquet(place / f"trace-{job}.parquet")
    chosen = frame["step"].unique().sort().head(steps)
    frame.filter(pl.col("step").is_in(chosen.implode())).write_parquet(folder / "some.parquet")
    told = json.loads((place / f"{without}-{job}.json").read_text())
    with analysed(folder, (folder / "some.parquet").read_bytes()) as store:
        yield store, told


def test_the_published_job_with_a_slow_worker(tmp_path: Path) -> None:
    with published(tmp_path, "AR", "mw", steps=8) as (store, told):
        first = findings(store)[0]
        saved = saved_ns(store, first)

    # Of 64 ranks 16 have timers; the others meet nobody but their own worker.
    assert (first["ranks"], first["cause"], first["confidence"]) == ([0], "slow_compute", "high")
    # their replay leaves out delays of launches, and holds transfers to medians
    assert saved == pytest.approx((told["tori"] - told["trem"]) * S, rel=0.04)


def test_the_published_job_with_a_long_last_stage(tmp_path: Path) -> None:
    with published(tmp_path, "ST", "ms", steps=32) as (store, told):
        headline = store.value("SELECT headline FROM attribute.verdict")
        stage, longer_ns = store.rows(
            "SELECT stage, compute_ns_per_iteration - mean_stage_ns_per_iteration FROM timeline.stage_load "
            "ORDER BY excess_share DESC"
        )[0]

    assert stage == 3
    assert headline.startswith("Stage 3 (ranks 6, 7) computes 39 % longer than the mean stage")
    assert longer_ns == pytest.approx((told["tori"] - told["trem"]) * S, rel=0.03)
