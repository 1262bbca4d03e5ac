"""The slowest rank at more ranks, from one run: drawn, fitted, or refused."""

import numpy as np
import pytest

from traceforge.forecast.outlook import outlook


def test_each_number_of_ranks_says_how_it_is_known() -> None:
    # given 64 ranks whose times differ by 1 ms for good and by 1 ms from iteration to iteration
    rng = np.random.default_rng(0)
    own_ns = 1e8 + 1e6 * rng.standard_normal((1, 64)) + 1e6 * rng.standard_normal((60, 64))

    rows = outlook(own_ns, rng)

    assert [(row.ranks, row.method) for row in rows] == [
        (64, "measured"), (128, "rank_blocks"), (256, "rank_blocks"), (1024, "tail"), (4096, "tail"),
    ]  # fmt: skip
    slowest = [row.slowest_ns for row in rows]
    assert slowest == sorted(slowest)  # type: ignore[type-var]
    # the largest of 1,024 normal draws lies 3.2 standard deviations out
    assert slowest[3] == pytest.approx(3.2 * 2**0.5 * 1e6, rel=0.15)
    assert rows[0].persistent_share == pytest.approx(0.5, abs=0.15)
    assert [row.step_quantile for row in rows][3] == pytest.approx(0.99932, abs=1e-5)


def test_a_tail_without_a_variance_is_refused_with_its_shape() -> None:
    own_ns = 1e6 * np.random.default_rng(1).pareto(1.2, size=(60, 64))

    rows = outlook(own_ns, np.random.default_rng(1))

    beyond = [row for row in rows if row.method == "tail"]
    assert all(row.slowest_ns is None for row in beyond)
    assert all("from 0.5 on there is none" in str(row.refusal) for row in beyond)
