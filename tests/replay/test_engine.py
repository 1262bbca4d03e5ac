"""The replay rebuilds a run from its durations; in it nothing that comes later can make anything end earlier."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.examples import examples
from tests.given import built, data_parallel_job, store_of_runs
from tests.replay.models import Plan, lockstep_model, lockstep_plan, model_of, plans
from traceforge.replay.engine import Durations, measured, replay
from traceforge.replay.model import load_model
from traceforge.replay.policy import Past

quickly = examples(200)


@quickly
@given(plans())
def test_with_measured_durations_the_replay_is_the_run_to_the_nanosecond(plan: Plan) -> None:
    # given any run: sub-groups, waits for earlier collectives, iterations of different lengths
    model = model_of(plan)

    # when it is replayed as it was
    again = replay(model, measured(model))

    # then every iteration starts and ends on every rank when it did
    np.testing.assert_array_equal(again.start_ns, model.start_ns)
    np.testing.assert_array_equal(again.end_ns, model.end_ns)


RUNS = st.tuples(arrays(np.int64, (3, 3), elements=st.integers(20, 1_000)), st.integers(20, 500))


@examples(1)
@given(st.lists(RUNS, min_size=5, max_size=5))
def test_runs_read_from_a_database_are_rebuilt_to_the_nanosecond(runs: list[tuple[np.ndarray, int]]) -> None:
    # given the traces of plain jobs whose clocks are off
    traces = [
        data_parallel_job(compute_ns.tolist(), transfer_ns=transfer_ns, clock_ns=[0, 700, 40])
        for compute_ns, transfer_ns in runs
    ]
    with built(store_of_runs(*traces), "timeline", "graph") as store:
        for run_id in range(len(runs)):
            # when each is loaded and replayed
            model = load_model(store, run_id)
            assert model is not None
            again = replay(model, measured(model))

            # then every iteration ends when it did
            np.testing.assert_array_equal(again.end_ns, model.end_ns)


@quickly
@given(plans(), st.data())
def test_no_delay_can_make_any_iteration_end_earlier(plan: Plan, data: st.DataObject) -> None:
    # given any run, and any delays before each iteration of each rank
    model = model_of(plan)
    shape = model.start_ns.shape
    delays = data.draw(arrays(np.int64, shape, elements=st.integers(0, 200)))

    # when the ranks are delayed
    paced = replay(model, measured(model), lambda past: delays[len(past.wait_ns)])

    # then no iteration ends earlier on any rank: barriers are maxima, and maxima of later times are later
    assert (paced.end_ns >= model.end_ns).all()


@quickly
@given(plans(), st.data())
def test_taking_work_or_transfer_away_never_makes_anything_end_later(plan: Plan, data: st.DataObject) -> None:
    # given any run, and the same run with less to do here and there
    model = model_of(plan)
    full = measured(model)

    def less_than(times_ns: np.ndarray) -> np.ndarray:
        return np.minimum(times_ns, data.draw(arrays(np.int64, times_ns.shape, elements=st.integers(0, 60))))

    less = Durations(less_than(full.before_arrival_ns), less_than(full.before_wait_ns), less_than(full.transfer_ns))

    # when it is replayed
    faster = replay(model, less)

    # then nothing ends later
    assert (faster.end_ns <= model.end_ns).all()


def test_the_mean_wait_counts_from_a_ranks_arrival_to_the_last_one() -> None:
    #   rank 0   |100·················|tt|20··|wait 30··|tt|
    #   rank 1   |60······|wait 40····|tt|50············|tt|
    model = lockstep_model([[[100, 60], [20, 50]]], transfer_ns=10)

    # when the iteration is replayed
    outcome = replay(model, measured(model))

    # then rank 0 waited 0 and 30, rank 1 waited 40 and 0
    assert outcome.wait_ns.tolist() == [[15, 20]]
    assert outcome.end_ns.tolist() == [[170, 170]]


def test_work_under_a_running_transfer_costs_nothing() -> None:
    #   rank 0   |100·······|transfer 50······|
    #            .          |work 30··|wait 20|
    plan = lockstep_plan([[[100, 100]]], transfer_ns=50)
    plan.before_wait_ns[0, 0, :, 0] = 30

    # then the iteration ends with the transfer
    assert model_of(plan).end_ns.tolist() == [[150, 150]]
    assert replay(model_of(plan), measured(model_of(plan))).end_ns.tolist() == [[150, 150]]


def test_ranks_of_different_groups_do_not_wait_for_each_other() -> None:
    #   group 0: ranks 0, 1 work 100 and 60;  group 1: ranks 2, 3 work 30 and 10
    model = lockstep_model([[[100, 60, 30, 10]]], transfer_ns=5, groups=[[0, 0, 1, 1]])

    # then each pair ends a transfer after its own last arrival
    assert replay(model, measured(model)).end_ns.tolist() == [[105, 105, 35, 35]]


def test_ranks_pause_between_iterations_as_long_as_they_did() -> None:
    # given two iterations, between which rank 1 paused for 40
    #   rank 0   |100|t|....|100·······|t|
    #   rank 1   |100|t|·40·|80···|w 20|t|   starts 40 later, and so arrives 20 after rank 0
    plan = lockstep_plan([[[100, 100]], [[100, 80]]], transfer_ns=10)
    model = model_of(replace(plan, pause_ns=np.array([[0, 40]])))

    # when rank 0 has 50 less to do in the first iteration, which rank 1 sets the pace of
    faster = measured(model)
    faster.before_arrival_ns[0, 0, 0] = 50
    again = replay(model, faster)

    # then the second one starts when it did: 0 + 100 + 10, and 40 later on rank 1
    assert again.start_ns.tolist() == [[0, 0], [110, 150]]
    assert again.end_ns.tolist() == [[110, 110], [240, 240]]


def test_a_policy_sees_the_past_only_and_one_row_more_each_time() -> None:
    # given three iterations of two ranks
    model = lockstep_model([[[100, 60]]] * 3, transfer_ns=10)
    seen: list[Past] = []

    def delay(past: Past) -> np.ndarray:
        seen.append(past)
        return np.array([0, 5 * len(past.wait_ns)])

    # when a policy delays rank 1 by 0, 5 and 10
    replay(model, measured(model), delay)

    # then before the third iteration it has seen two: waits of 40 and 35, delays of 0 and 5
    assert [len(past.wait_ns) for past in seen] == [0, 1, 2]
    assert seen[2].wait_ns.tolist() == [[0, 40], [0, 35]]
    assert seen[2].delay_ns.tolist() == [[0, 0], [0, 5]]
    assert seen[2].duration_ns.tolist() == [[110, 110], [110, 110]]
