"""Iterations that grow longer: by how much, and not of what only changes its level or is long once."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.given import MS, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.attribute.drift import drift_of, of_drift

NUMBERS = np.arange(20.0)
# 100 and 102 in turns, so that neighbours differ and nothing else does
UNEVEN = np.array([100.0, 102.0] * 10)


def test_a_steady_rise_is_a_drift_of_its_slope() -> None:
    # given iterations that take 2 more each: 38 from the first to the last, of 120 on average
    found = drift_of(NUMBERS, UNEVEN + 2 * NUMBERS)

    assert found is not None
    assert found.rise_ns.value == pytest.approx(2.0, abs=0.1)
    assert found.rise_ns.low < 2.1 < found.rise_ns.high + 0.1
    assert found.total_ns == pytest.approx(38, abs=1)
    assert found.share == pytest.approx(38 / 120, abs=0.01)


def at(places: Sequence[int], more: float) -> np.ndarray:
    durations = UNEVEN.copy()
    durations[list(places)] += more
    return durations


@pytest.mark.parametrize(
    "durations",
    [
        UNEVEN,
        UNEVEN + 0.3 * NUMBERS,
        UNEVEN - 2 * NUMBERS,
        at(range(12, 20), 40),
        at([19], 300),
        at([3, 9, 14, 18], 60),
    ],
    ids=["steady", "by 6 %", "shorter", "a new level", "one long one at the end", "pauses"],
)
def test_anything_else_is_none(durations: np.ndarray) -> None:
    assert drift_of(NUMBERS, durations) is None


def test_of_few_iterations_it_is_not_said() -> None:
    assert drift_of(NUMBERS[:9], (UNEVEN + 5 * NUMBERS)[:9]) is None
    assert drift_of(NUMBERS[:10], (UNEVEN + 5 * NUMBERS)[:10]) is not None


def verdict(rise_ms: int, late_ms: int = 0) -> tuple[object, ...]:
    """The verdict on 20 iterations of three ranks that take so much longer each, and rank 1 a part more."""
    compute = [[(100 + rise_ms * n + (late_ms if rank == 1 else 0)) * MS for rank in range(3)] for n in range(20)]
    with told(*data_parallel_job(compute)) as store:
        (row,) = rows_of(store, "SELECT kind, confidence, headline, explanation, next_step FROM attribute.verdict")
    return row


def test_a_job_whose_iterations_grow_longer_is_not_called_healthy() -> None:
    kind, confidence, headline, explanation, next_step = verdict(rise_ms=2)

    assert (kind, confidence) == ("nothing_significant", "low")
    assert str(headline).startswith("Iterations grow longer, by 38.0 ms (32 %) from the first judged to the last. ")
    assert str(explanation).startswith("Iterations grow longer by 2.00 ms from one to the next (")
    assert str(next_step).startswith("See what grows with the iterations: memory")


def replica(first: int, late_ms: int) -> list[Trace]:
    """Two ranks that meet in each of 20 steps of 10 ms, all of them longer by what their second rank is late."""
    ranks, every = (first, first + 1), (10 + late_ms) * MS
    traces = [Trace(rank, groups=[(f"tp{first}", "tp", ranks)]) for rank in ranks]
    for number in range(20):
        start = number * every
        for trace, late in zip(traces, (0, late_ms), strict=True):
            trace.step(number, start, start + every).kernel(start, start + (7 + late) * MS)
            trace.collective(start + (7 + late) * MS, start + every, group=f"tp{first}", ranks=ranks)
    return traces


def test_replicas_that_never_meet_drift_apart_while_no_iteration_grows_longer() -> None:
    # rank 0, 1   |step 0|step 1|step 2|            each takes 10 ms
    # rank 2, 3   |step 0  |step 1  |step 2  |      each takes 13, as rank 3 computes longer
    with told(*replica(0, 0), *replica(2, 3)) as store:
        (row,) = rows_of(store, "SELECT kind, headline, explanation FROM attribute.verdict")

    assert row[0] == "finding"
    assert "Rank 3" in str(row[1])
    assert "grow longer" not in str(row[2])


def test_what_was_certain_before_is_not_certain_beside_a_drift() -> None:
    row = {
        "kind": "nothing_significant",
        "headline": "Nothing.",
        "explanation": "",
        "next_step": "",
        "confidence": "high",
    }
    drift = drift_of(NUMBERS, UNEVEN + 2 * NUMBERS)

    assert of_drift(row, drift)["confidence"] == "low"
    assert of_drift(row, None) == of_drift({**row, "kind": "cannot_be_known"}, drift) == {}


def test_beside_a_culprit_it_is_part_of_the_explanation() -> None:
    kind, _, headline, explanation, _ = verdict(rise_ms=2, late_ms=40)

    assert kind == "finding"
    assert str(headline).startswith("Rank 1 ")
    assert str(explanation).startswith("Iterations grow longer by 2.00 ms from one to the next (")


def test_a_steady_job_says_nothing_of_it() -> None:
    assert all("grow longer" not in str(part) for part in verdict(rise_ms=0))
