"""Real traces against numbers that were obtained without traceforge.

Skipped unless TRACEFORGE_CORPUS names a folder with `golden/golden.json` and the traces it speaks of.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.given import US, built, rows_of
from traceforge.api import InlineExecutor
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

# NCCL kernels that a call of the window launched, one a call in these jobs.
NCCL_SUMS = """
SELECT CAST(SUM(raw_end_ns - raw_arrival_ns) AS BIGINT) FROM align.call WHERE is_linked GROUP BY rank ORDER BY rank
"""
UNBALANCED = """
SELECT iteration, rank FROM timeline.rank_iteration JOIN (
  SELECT iteration, rank, SUM(duration_ns) AS total_ns FROM timeline.phase GROUP BY ALL
) USING (iteration, rank)
WHERE total_ns <> duration_ns
"""


def _golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(CORPUS or "", "golden", "golden.json").read_text(encoding="utf-8"))
    return found


def _analysed(folder: str, until: str, pattern: str = "*.json.gz") -> Store:
    store = Store(None)
    files = sorted(Path(CORPUS or "", folder).glob(pattern))
    ingest_files(store, files, {"kineto": SOURCE}, run_name=folder, executor=InlineExecutor(), options=ReadOptions())
    return built(store, until)


def _column(store: Store, sql: str) -> list[Any]:
    return [value for (value,) in rows_of(store, sql)]


@pytest.mark.parametrize("name", JOBS)
def test_collectives_of_real_jobs_are_matched_and_their_clocks_tied(name: str) -> None:
    expected = _golden()["collective_jobs"][name]

    store = _analysed(f"traces/kineto/{name}", "timeline")

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


def test_eight_ranks_of_megatron_meet_in_84_collectives() -> None:
    expected = _golden()["megatron_tp8_a100"]

    store = _analysed(MEGATRON_TP8, "align", "megatron_kineto_*.json.gz")

    matched = _column(store, "SELECT COUNT(*) FROM align.match GROUP BY rank ORDER BY rank")
    assert matched == [expected["collectives"]] * expected["ranks"]
    assert _column(store, NCCL_SUMS) == [US * total for total in expected["nccl_sum_us"]]


@pytest.mark.parametrize("name", GLOO_JOBS)
def test_gloo_calls_of_real_jobs_are_found_and_a_shared_clock_is_recognised(name: str) -> None:
    per_rank = _golden()["self_recorded_gloo"]["per_rank"]
    job = name.removeprefix("self_gloo4_")

    store = _analysed(f"traces/kineto/{name}", "align")

    calls = _column(store, "SELECT COUNT(*) FROM align.call GROUP BY rank ORDER BY rank")
    assert calls == [sum(per_rank[f"{job} rank{rank}"]["gloo_annotations"].values()) for rank in range(4)]
    assert _column(store, "SELECT status FROM align.clock ORDER BY rank") == ["reference", *["shared_clock"] * 3]


def test_the_rank_whose_input_stalled_arrives_last_in_just_those_iterations() -> None:
    # Rank 2 slept 30 ms in steps 6 and 7, and nothing else was injected.
    store = _analysed("traces/kineto/self_gloo4_ddp", "timeline")

    late = rows_of(
        store,
        "SELECT iteration, rank FROM timeline.arrival JOIN timeline.collective USING (collective_id, iteration)"
        " WHERE late_ns > 30000000 AND sequence = (SELECT MIN(sequence) FROM timeline.collective AS c"
        " WHERE c.iteration = timeline.arrival.iteration) ORDER BY ALL",
    )

    assert late == [(6, 2), (7, 2)]


@pytest.mark.parametrize("folder", [*(f"traces/kineto/{name}" for name in (*JOBS, *GLOO_JOBS)), MEGATRON_TP8])
def test_real_jobs_keep_the_invariants(folder: str) -> None:
    store = _analysed(folder, "graph", "*kineto*.json.gz" if folder == MEGATRON_TP8 else "*.json.gz")

    model = load_model(store, 0)

    assert rows_of(store, UNBALANCED) == []
    if model is not None:
        np.testing.assert_array_equal(replay(model, measured(model)).end_ns, model.end_ns)
