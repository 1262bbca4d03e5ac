"""Slow-downs by what goes on beside work: found where they are, and not where they are not."""

import numpy as np
import pytest

from traceforge.replay.calibration.contention import WorkPieces, slow_downs


def job(eta: float, seed: int, *, iterations: int = 40, noise: float = 0.05, always: bool = False) -> WorkPieces:
    """Four ranks run ten kernels of 1000 ns an iteration; a wait covers some of the last five, by how early they are.

    A rank that is fast in an iteration is early: without care that looks like kernels that are faster while waiting.
    """
    rng = np.random.default_rng(seed)
    pace = np.exp(noise * rng.standard_normal((iterations, 4)))
    rows = []
    for i, rank in np.ndindex(iterations, 4):
        wait_begins = 5_000 + (20_000 if pace[i, rank] > np.median(pace[i]) else 3_000 * rng.random())
        now = 0.0
        for k in range(10):
            alone = 1_000 * pace[i, rank] * (1 + 0.01 * rng.standard_normal())
            if always:
                wait_begins = now if k == 5 else wait_begins
            free = max(0.0, min(alone, wait_begins - now))
            took = free + (alone - free) * (1 + eta)
            rows.append((i, rank, 0, k, took, took - free, max(0.0, min(1_000.0, now + 1_000 - wait_begins))))
            now += took
    columns = np.array(rows).T
    return WorkPieces(
        *(column.astype(np.int64) for column in columns[:4]), columns[4], columns[5][:, None], columns[6][:, None]
    )


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.5])
def test_intervals_cover_the_slow_down(eta: float) -> None:
    found = [slow_downs(job(eta, seed), ("a wait",))[0] for seed in range(60)]
    covered = [one.low <= eta <= one.high for one in found if one.low is not None and one.high is not None]

    assert len(covered) == 60
    assert np.mean(covered) >= 0.88
    assert np.mean([one.coefficient for one in found]) == pytest.approx(eta, abs=0.01)


def test_work_that_always_runs_beside_a_wait_tells_nothing() -> None:
    [found] = slow_downs(job(0.5, 0, always=True), ("a wait",))

    assert found.coefficient is None
    assert "now with and now without a wait" in found.refusal


def test_below_twenty_iterations_no_slow_down_is_measured() -> None:
    [found] = slow_downs(job(0.5, 0, iterations=19), ("a wait",))

    assert ": 19, and 20 are needed" in found.refusal
