"""Real traces against numbers that were obtained without traceforge.

Skipped unless TRACEFORGE_CORPUS names a folder with `golden/golden.json` and the traces it speaks of.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from tests.given import MS, US, built, rows_of
from traceforge.records import ReadOptions
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import load_model
from traceforge.sources.kineto import SOURCE
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files

CORPUS = os.environ.get("TRACEFORGE_CORPUS")
pytestmark = pytest.mark.skipif(CORPUS is None, reason="TRACEFORGE_CORPUS names no folder of real traces")

JOBS = (
    "torchrec_resnet18_t16981079",
    "torchrec_sst_long_a2a_optimizer_2_t16989553",
    "torchrec_sst_long_a2a_optimizer_2_t16989556",
    "torchrec_sst_long_a2a_optimizer_3_t16989558",
    "torchrec_sst_long_a2a_optimizer_4_t16989576",
    "torchrec_sst_long_a2a_optimizer_5_qcomm_t16989587",
    "torchrec_sst_long_a2a_optimizer_5_qcomm_t16989589",
    "torchrec_sst_long_a2a_optimizer_t16989550",
    "megatron_tp2",
)
GLOO_JOBS = ("self_gloo4_ddp", "self_gloo4_tp2dp2")
MEGATRON_TP8 = "traces/chakra/megatron_tp8_a100"

SHIFTED = {
    MEGATRON_TP8: "megatron_kineto_*.json.gz",
    "traces/kineto/torchrec_sst_long_a2a_optimizer_2_t16989553": "*.json.gz",
    "traces/kineto/torchrec_sst_long_a2a_optimizer_t16989550": "*.json.gz",
    "traces/kineto/megatron_tp2": "*.json.gz",
}

# NCCL kernels that a call of the window launched, one a call in these jobs.
NCCL_SUMS = """
SELECT CAST(SUM(raw_end_ns - raw_arrival_ns) AS BIGINT) FROM align.call WHERE is_linked GROUP BY rank ORDER BY rank
"""
ALIGNED = "SELECT rank, call_id, end_ns FROM timeline.arrival ORDER BY rank, call_id"
UNBALANCED = """
SELECT iteration, rank FROM timeline.rank_iteration JOIN (
  SELECT iteration, rank, SUM(duration_ns) AS total_ns FROM timeline.phase GROUP BY ALL
) USING (iteration, rank)
WHERE total_ns <> duration_ns
"""


def _golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(CORPUS or "", "golden", "golden.json").read_text(encoding="utf-8"))
    return found


def _analysed(folder: str, *stages: str, pattern: str = "*.json.gz") -> Store:
    store = Store(None, is_kept=False)
    files = sorted(Path(CORPUS or "", folder).glob(pattern))
    ingest_files(store, files, {"kineto": SOURCE}, run_name=folder, executor=None, options=ReadOptions())
    return built(store, *stages)


class Recorded(NamedTuple):
    """A real job whose stages are built, once for all modules that ask; not to be changed."""

    name: str
    store: Store


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest, corpus_database: Callable[[str], Path]) -> Iterator[Recorded]:
    with Store(corpus_database(f"kineto/{request.param}"), read_only=True, threads=1) as store:
        yield Recorded(request.param, store)


@pytest.fixture(scope="module")
def megatron() -> Iterator[Store]:
    with _analysed(MEGATRON_TP8, "timeline", "graph", pattern=SHIFTED[MEGATRON_TP8]) as store:
        yield store


def _column(store: Store, sql: str) -> list[Any]:
    return [value for (value,) in rows_of(store, sql)]


@pytest.mark.parametrize("recorded", JOBS, indirect=True)
def test_collectives_of_real_jobs_are_matched_and_their_clocks_tied(recorded: Recorded) -> None:
    name, store = recorded
    expected = _golden()["collective_jobs"][name]

    matched = _column(store, "SELECT COUNT(*) FROM align.match GROUP BY rank ORDER BY rank")
    offsets = _column(store, "SELECT offset_ns FROM align.clock ORDER BY rank")
    last = dict(rows_of(store, "SELECT last_rank, COUNT(*) FROM timeline.collective GROUP BY ALL"))
    skew_ns = store.query("SELECT MEDIAN(skew_ns), MAX(skew_ns) FROM timeline.collective").row(0)
    assert matched == expected["matched_per_rank"]
    assert offsets == pytest.approx([US * offset for offset in expected["offset_us"]], abs=US)
    assert _column(store, NCCL_SUMS) == pytest.approx([US * total for total in expected["nccl_sum_us"]], abs=US)
    assert [last.get(rank, 0) for rank in range(expected["ranks"])] == expected["last_arriver_aligned"]
    median_us, _, worst_us = expected["arrival_spread_aligned_us"]
    assert skew_ns == pytest.approx((US * median_us, US * worst_us), abs=2 * US)


def test_eight_ranks_of_megatron_meet_in_84_collectives(megatron: Store) -> None:
    expected = _golden()["megatron_tp8_a100"]

    matched = _column(megatron, "SELECT COUNT(*) FROM align.match GROUP BY rank ORDER BY rank")
    assert matched == [expected["collectives"]] * expected["ranks"]
    assert _column(megatron, NCCL_SUMS) == [US * total for total in expected["nccl_sum_us"]]


def test_the_ranks_of_megatron_wait_far_longer_than_they_transfer(megatron: Store) -> None:
    # One host, one clock: the facts are those of the times as written.
    expected = _golden()["megatron_tp8_a100"]
    store = megatron
    by_collective = """
    SELECT MAX(raw_end_ns) - MIN(raw_end_ns) AS end_spread_ns, MAX(raw_arrival_ns) - MIN(raw_arrival_ns) AS skew_ns,
      ARG_MAX(rank, (raw_arrival_ns, -rank)) AS last_rank, MIN(raw_end_ns - raw_arrival_ns) AS shortest_ns
    FROM align.match JOIN align.call USING (run_id, rank, call_id)
    GROUP BY collective_id
    """

    ends, starts = (
        store.query(f"SELECT MEDIAN({name}), MAX({name}) FROM ({by_collective})").row(0)
        for name in ("end_spread_ns", "skew_ns")
    )
    last = dict(rows_of(store, f"SELECT last_rank, COUNT(*) FROM ({by_collective}) GROUP BY ALL"))
    assert ends == tuple(US * spread for spread in expected["end_spread_us"])
    assert starts == tuple(US * spread for spread in expected["start_spread_us"])
    assert [last.get(rank, 0) for rank in range(8)] == expected["last_arriver"]
    minima_ns = store.query(f"SELECT SUM(shortest_ns) FROM ({by_collective})").item()
    assert minima_ns == US * expected["sum_of_minima_us"]
    busy = _column(store, "SELECT busy_duration_ns FROM timeline.device_time ORDER BY rank")
    assert busy == [US * total for total in expected["device_busy_us"]]
    # The clocks' offsets are small against that: the same three ranks come last most often.
    aligned = dict(rows_of(store, "SELECT last_rank, COUNT(*) FROM timeline.collective GROUP BY ALL"))
    assert set(sorted(aligned, key=lambda rank: -aligned[rank])[:3]) == {0, 6, 3}


LAST = "SELECT collective_id, last_rank FROM timeline.collective WHERE skew_ns > 300000 ORDER BY collective_id"


@pytest.mark.parametrize("folder", SHIFTED)
def test_clocks_that_are_set_wrong_and_drift_move_no_conclusion(folder: str) -> None:
    # given a real job, and the same whose ranks' clocks are up to 10 ms off and drift by up to 50 ppm
    store = _analysed(folder, "timeline", pattern=SHIFTED[folder])
    truth = store.query(ALIGNED)
    conclusions = rows_of(store, LAST)
    before = store.query("SELECT rank, residual_ns FROM align.clock ORDER BY rank")
    rng = np.random.default_rng(7)
    for rank, source_id, first_ns in rows_of(store, "SELECT rank, source_id, raw_first_ns FROM align.rank ORDER BY 1"):
        if rank:
            offset_ns, drift_ppb = int(rng.integers(-10 * MS, 10 * MS)), int(rng.integers(-50_000, 50_000))
            store.execute(
                "UPDATE raw.occurrence"
                " SET raw_start_ns = raw_start_ns + ? + (raw_start_ns - ?) * ? // 1000000000,"
                " duration_ns = duration_ns + duration_ns * ? // 1000000000 WHERE source_id = ?",
                [offset_ns, first_ns, drift_ppb, drift_ppb, source_id],
            )

    # when it is analysed again
    built(store, "timeline")

    # then the clocks are found again, and the same ranks come last
    apart = (
        store.query(ALIGNED)
        .join(truth, on=["rank", "call_id"], suffix="_before")
        .group_by("rank")
        .agg(rms_ns=((pl.col("end_ns") - pl.col("end_ns_before")).cast(pl.Float64) ** 2).mean().sqrt())
        .join(before, on="rank")
    )
    assert apart.filter(pl.col("rms_ns") > 10 * US + pl.col("residual_ns")).is_empty(), apart
    assert rows_of(store, LAST) == conclusions


@pytest.mark.parametrize("recorded", GLOO_JOBS, indirect=True)
def test_gloo_calls_of_real_jobs_are_found_and_a_shared_clock_is_recognised(recorded: Recorded) -> None:
    name, store = recorded
    per_rank = _golden()["self_recorded_gloo"]["per_rank"]
    job = name.removeprefix("self_gloo4_")

    calls = _column(store, "SELECT COUNT(*) FROM align.call GROUP BY rank ORDER BY rank")
    assert calls == [sum(per_rank[f"{job} rank{rank}"]["gloo_annotations"].values()) for rank in range(4)]
    assert _column(store, "SELECT status FROM align.clock ORDER BY rank") == ["reference", *["shared_clock"] * 3]


@pytest.mark.parametrize("recorded", ["self_gloo4_ddp"], indirect=True)
def test_the_rank_whose_input_stalled_arrives_last_in_just_those_iterations(recorded: Recorded) -> None:
    # Rank 2 slept 30 ms in steps 6 and 7, and nothing else was injected.
    late = rows_of(
        recorded.store,
        "SELECT iteration, rank FROM timeline.arrival JOIN timeline.collective USING (collective_id, iteration)"
        " WHERE late_ns > 30000000 AND sequence = (SELECT MIN(sequence) FROM timeline.collective AS c"
        " WHERE c.iteration = timeline.arrival.iteration) ORDER BY ALL",
    )

    assert late == [(6, 2), (7, 2)]


@pytest.mark.parametrize("recorded", [*JOBS, *GLOO_JOBS], indirect=True)
def test_real_jobs_keep_the_invariants(recorded: Recorded) -> None:
    assert_invariants(recorded.store)


def test_megatron_keeps_the_invariants(megatron: Store) -> None:
    assert_invariants(megatron)


def assert_invariants(store: Store) -> None:
    (run_id,) = store.run_ids()
    model = load_model(store, run_id)

    assert rows_of(store, UNBALANCED) == []
    if model is not None:
        np.testing.assert_array_equal(replay(model, measured(model)).end_ns, model.end_ns)
