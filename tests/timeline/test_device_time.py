"""How a device spent its time, against hand-worked stories and against other tools' numbers for real traces.

The real traces are skipped unless TRACEFORGE_CORPUS names a folder that holds them.
"""

import json
import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from tests.given import Trace, built, rows_of
from tests.stories import told
from traceforge.records import ReadOptions
from traceforge.sources.kineto import SOURCE
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.timeline.device_time import device_time

CORPUS = os.environ.get("TRACEFORGE_CORPUS")
RANKS = (
    "control_r3of8", "tdtest_r1of2", "dfindex_r1of2", "negqueue_r0of16", "nccl_data_r0of2", "nsres_r0of1",
    "sampled_r0of128", "sampled_r1of128",
)  # fmt: skip
FIELDS = (
    "gpu_events",
    "span_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "non_compute_ns",
    "communication_ns",
    "overlap_ns",
)

# Device events that a call in the window launched before the last ProfilerStep began.
LAUNCHED_BEFORE_LAST_STEP = """
WITH event AS (
  SELECT e.*, c.class, c.canonical_category AS kind
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X'
),
launched AS (
  SELECT DISTINCT correlation
  FROM event
  WHERE kind IN ('cuda_runtime', 'cuda_driver')
    AND raw_start_ns < (SELECT MAX(raw_start_ns) FROM event WHERE class = 'iteration')
)
SELECT class, raw_start_ns AS start_ns, raw_start_ns + duration_ns AS end_ns
FROM event SEMI JOIN launched USING (correlation)
WHERE class IN ('compute', 'communication', 'copy')
"""


def test_each_instant_of_all_streams_counts_once() -> None:
    # compute         |10–30|   |60––80|
    # communication       |20––50|
    # copy                     |45–55|
    trace = Trace().kernel(10, 30).kernel(60, 80).collective(20, 50).copy(45, 55)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT * EXCLUDE (run_id, rank) FROM timeline.device_time") == [
        (4, 70, 65, 5, 40, 25, 30, 10)
    ]


def test_a_rank_without_a_device_has_no_device_time() -> None:
    store = told(Trace().host_work("aten::mm", 10, 40), stage="timeline")

    assert rows_of(store, "SELECT * FROM timeline.device_time") == []


@pytest.fixture(scope="module", params=RANKS)
def recorded(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Store]:
    """Numbers of a real rank that other tools agree on, and its file in a store."""
    if CORPUS is None:
        pytest.skip("TRACEFORGE_CORPUS names no folder of real traces")
    golden = json.loads(Path(CORPUS, "golden", "golden.json").read_text(encoding="utf-8"))["device_time"][request.param]
    store = Store(None, is_kept=False)
    file = Path(CORPUS, "traces", golden["file"])
    ingest_files(store, [file], {"kineto": SOURCE}, run_name="rank", executor=None, options=ReadOptions())
    return golden, built(store, "align.name_class", "timeline.device_time", "timeline.gap", "timeline.phase")


def _tolerance_ns(golden: dict[str, Any]) -> int:
    """Files whose times are whole µs are exact; one with fractions was written through a float."""
    return 0 if all(value % 1_000 == 0 for value in (golden["all"][name] for name in FIELDS[1:])) else 10


def test_a_real_rank_spends_its_time_as_other_tools_say(recorded: tuple[dict[str, Any], Store]) -> None:
    golden, store = recorded

    (found,) = rows_of(store, "SELECT * EXCLUDE (run_id, rank) FROM timeline.device_time")

    assert found == pytest.approx([golden["all"][name] for name in FIELDS], abs=_tolerance_ns(golden))


def test_so_it_does_up_to_the_last_step(recorded: tuple[dict[str, Any], Store]) -> None:
    golden, store = recorded
    expected = golden["launched_before_last_step"]

    found = device_time(store.query(LAUNCHED_BEFORE_LAST_STEP))

    assert astuple(found) == pytest.approx([expected[name] for name in FIELDS], abs=_tolerance_ns(golden))
    assert round(100 * found.idle_ns / found.span_ns, 2) == expected["idle_pct"]
    assert round(100 * found.compute_ns / found.span_ns, 2) == expected["compute_pct"]


def test_real_gaps_have_one_cause_each_and_add_up(recorded: tuple[dict[str, Any], Store]) -> None:
    _, store = recorded

    unequal = """
    SELECT * FROM (SELECT rank, iteration, SUM(duration_ns) AS gap_ns FROM timeline.gap GROUP BY ALL)
    FULL JOIN (
      SELECT rank, iteration, SUM(duration_ns) AS phase_ns FROM timeline.phase
      WHERE phase IN ('input', 'runtime', 'idle') GROUP BY ALL
    ) USING (rank, iteration)
    WHERE gap_ns IS DISTINCT FROM phase_ns
    """
    assert rows_of(store, unequal) == []
