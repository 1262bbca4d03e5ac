"""Why stages idle: as simulated, as the closed forms say, and to the ns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.given import rows_of
from tests.synth.quiet_jobs import BARE
from tests.timeline.pipelines import Simulated, simulated
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario
from traceforge.timeline.layers import union
from traceforge.timeline.pipeline_times import RankStory, times_of

# Two replicas of two stages, with gradients to reduce.
REAL = Scenario(
    iterations=5,
    cluster=Cluster(2, 2, pipeline_parallel=2),
    workload=Workload(layers=2),
    pipeline=Pipeline(microbatches=4),
)


def _bubbles(found: Simulated) -> dict[str, NDArray[np.float64]]:
    """By kind and rank, the mean of all iterations but the first and the last, ns."""
    middle = found.truth["iterations"][1:-1]
    told = found.store.query(
        "SELECT kind, rank, SUM(duration_ns) / ? AS ns FROM timeline.bubble WHERE iteration IN (SELECT UNNEST(?)) "
        "GROUP BY kind, rank ORDER BY kind, rank",
        [len(middle), middle],
    )
    return {str(key): own["ns"].to_numpy().astype(float) for (key,), own in told.group_by("kind")}


@pytest.mark.parametrize(
    ("pipeline", "share"),
    [
        (Pipeline("gpipe", 8, message_bytes=0), 3 / (8 + 3)),
        (Pipeline("1f1b", 8, message_bytes=0), 3 / (8 + 3)),
        (Pipeline("interleaved", 8, 2, message_bytes=0), 3 / (2 * 8 + 3)),
        # parts of one length: (p - 1) f of 3 m f + (p - 1) f
        (Pipeline("zero_bubble", 8, message_bytes=0), 3 / (3 * 8 + 3)),
    ],
)
def test_filling_and_draining_are_the_closed_form(pipeline: Pipeline, share: float, tmp_path: Path) -> None:
    found = simulated(replace(BARE, pipeline=pipeline), tmp_path)

    told = _bubbles(found)
    step_ns = found.truth["duration_ns"][1]
    for rank in range(4):
        assert (told["fill"][rank] + told["drain"][rank]) / step_ns == pytest.approx(share, rel=0.01)
        for kind in ("imbalance", "late_peer", "launch"):
            assert told[kind][rank] / step_ns == pytest.approx(0, abs=0.005)
    (ideal,) = {*rows_of(found.store, "SELECT ROUND(ideal_bubble_share, 2) FROM timeline.schedule")}
    assert ideal == (pytest.approx(share, abs=0.005),)


@pytest.mark.parametrize(
    "scenario",
    [
        # the link of the only replica is slow from the third iteration on
        replace(REAL, cluster=Cluster(2, 1, pipeline_parallel=2), faults=(Injection("slow_link", 0, 0.2, first=2),)),
        # stages learn the norm of all gradients, and so wait for the first one
        replace(REAL, pipeline=Pipeline("gpipe", 4, batched=False, clips_gradients=True)),
        # a head makes the last stage longer
        replace(REAL, pipeline=replace(REAL.pipeline, head_ns=1_000_000)),
        replace(REAL, faults=(Injection("compute_straggler", 1, 0.2),)),
    ],
    ids=["slow link", "norm of gradients", "head", "slow rank"],
)
def test_kinds_are_those_of_the_simulation(scenario: Scenario, tmp_path: Path) -> None:
    found = simulated(scenario, tmp_path)

    told, step_ns = _bubbles(found), np.mean(found.truth["duration_ns"][1:-1])
    for kind, times in found.truth["bubble_ns"].items():
        true = np.mean(times[1:-1], axis=0)
        assert told[kind] / step_ns == pytest.approx(true / step_ns, abs=0.012), kind


def test_a_host_that_is_always_late_makes_no_unequal_stage(tmp_path: Path) -> None:
    # given four stages that compute alike, of which the host of the second always launches work too slowly
    slow = Injection("launch_stall", 1, 1.0)
    found = simulated(replace(BARE, cluster=Cluster(4, 1, pipeline_parallel=4), faults=(slow,)), tmp_path)

    told, step_ns = _bubbles(found), found.truth["duration_ns"][1]
    others = [0, 2, 3]
    for kind, times in found.truth["bubble_ns"].items():
        assert told[kind][others] / step_ns == pytest.approx(np.array(times[1])[others] / step_ns, abs=0.002), kind
    assert told["late_peer"][others] / step_ns == pytest.approx(0.423, abs=0.002)
    assert told["imbalance"] / step_ns == pytest.approx(0, abs=0.002)


def test_kinds_sum_to_the_ns_to_what_neither_computes_nor_copies(tmp_path: Path) -> None:
    # given stages of one rank, so that no collective runs
    job = replace(REAL, iterations=3, cluster=Cluster(2, 1, pipeline_parallel=2))
    found = simulated(replace(job, faults=(Injection("gc_pause", 1, 0.3, first=1),)), tmp_path)

    wrong = """
    SELECT b.iteration, b.rank, b.duration_ns, w.duration_ns - p.duration_ns AS spare_ns
    FROM (SELECT iteration, rank, SUM(duration_ns) AS duration_ns FROM timeline.bubble GROUP BY ALL) AS b
    JOIN timeline.rank_iteration AS w USING (iteration, rank)
    JOIN (
      SELECT iteration, rank, SUM(duration_ns) AS duration_ns FROM timeline.phase WHERE phase IN ('compute', 'copy')
      GROUP BY ALL
    ) AS p USING (iteration, rank)
    WHERE b.duration_ns <> w.duration_ns - p.duration_ns
    """
    assert rows_of(found.store, wrong) == []
    assert rows_of(found.store, "SELECT COUNT(*) FROM timeline.bubble") == [(3 * 2 * 6,)]
    # the pause is the late host's own; the other stage waits for it as for a peer
    pause_ns = found.truth["excess_ns"][1]
    launch = rows_of(
        found.store,
        "SELECT rank, duration_ns FROM timeline.bubble WHERE kind = 'launch' AND iteration = 6 ORDER BY rank",
    )
    assert launch[1][1] == pytest.approx(pause_ns, rel=0.1)
    assert int(str(launch[0][1])) < pause_ns // 10


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), max_size=8),
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), max_size=8),
    st.lists(st.integers(0, 99), min_size=4, max_size=4),
    st.lists(st.integers(0, 99), min_size=2, max_size=2),
)
def test_busy_and_spare_time_fill_an_iteration(
    spare: list[tuple[int, int]], quiet: list[tuple[int, int]], edges: list[int], ready: list[int]
) -> None:
    intervals = [
        union(
            np.array([start for start, _ in own], dtype=np.int64), np.array([sum(one) for one in own], dtype=np.int64)
        )
        for own in (spare, quiet)
    ]
    a, b, c, d = sorted(edges)
    windows = np.array([[0, 100]])
    story = RankStory(
        windows, np.array([[a, c]]), np.array([[b, d]]), np.array([ready]), np.array([[100, 100]]), *intervals,
        {"wait": intervals[1]},
    )  # fmt: skip

    found = times_of(story)

    inside = sum(len([at for at in range(100) if at in covered(intervals[0])]) for _ in windows)
    assert found.spare.tolist() == [inside]
    busy = found.turns.sum() + found.before.sum() + found.behind.sum() + found.after.sum()
    assert busy == 100 - inside
    assert 0 <= found.launch[0] <= inside
    both = covered(intervals[0]) & covered(intervals[1])
    assert found.exchanging["wait"].tolist() == [len([at for at in both if at < 100])]


def covered(intervals: object) -> set[int]:
    """Instants inside."""
    starts, ends = intervals.starts_ns.tolist(), intervals.ends_ns.tolist()  # type: ignore[attr-defined]
    return {at for start, end in zip(starts, ends, strict=True) for at in range(start, end)}
