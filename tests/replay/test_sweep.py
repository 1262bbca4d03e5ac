"""Sweeps: which parameters are tried, and which of them nothing beats."""

from dataclasses import replace

from tests.given import data_parallel_job, rows_of
from tests.replay.models import coupled_by, lockstep_model, scene_of
from tests.stories import told
from traceforge.replay.outcome import Outcome, outcomes
from traceforge.replay.policy import parse_policy, policies
from traceforge.replay.sweep import combinations, front, sweep, table


def some_outcome() -> Outcome:
    return outcomes(scene_of(lockstep_model([[[100, 60]]] * 4)), [parse_policy("none")])[0]


def test_a_point_is_on_the_front_unless_another_is_faster_and_steadier() -> None:
    # given points of (throughput, variation)
    points = [(1.0, 0.3), (1.1, 0.2), (1.05, 0.1), (1.0, 0.1), (1.1, 0.2)]
    some = some_outcome()

    found = front([replace(some, throughput_ratio=ratio, cv=cv) for ratio, cv in points])

    # then the first is beaten by the second, the fourth by the third; of equal points only the first counts
    assert found == [False, True, True, False, False]


def test_all_combinations_of_a_grid_are_tried_and_what_was_given_too() -> None:
    policy, given = parse_policy("bounded_delay:window=5,threshold=0.3")

    tried = combinations(policy, given)

    assert tried[0] == given
    assert len(tried) == 1 + 3 * 3 * 2
    assert {one["threshold"] for one in tried} == {0.3}


def test_a_sweep_finds_the_gain_that_delays_enough_and_not_too_much() -> None:
    # given a straggler, a coupling, and thirty iterations
    run = scene_of(lockstep_model([[[100, 60]]] * 30, transfer_ns=30), coupled_by(0.5))

    found = table(sweep(run, [parse_policy("bounded_delay:threshold=0.01")]))

    # then the best is on the front and supported
    best = found.row(0, named=True)
    assert best["is_on_front"]
    assert best["verdict"] == "supported"
    assert best["throughput_ratio"] > 1.02


def test_without_a_measured_coupling_the_table_is_empty() -> None:
    with told(*data_parallel_job([[100, 60]] * 5), stage="replay") as store:
        assert rows_of(store, "FROM replay.sweep") == []
        assert {edit for (edit,) in rows_of(store, "SELECT edit FROM replay.what_if")} >= {"fix_rank", "scale_transfer"}


def test_policies_without_parameters_are_tried_once() -> None:
    assert combinations(policies()["none"], {}) == [{}]
