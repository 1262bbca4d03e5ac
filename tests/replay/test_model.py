"""The dense model of a run, read from tables: what each rank did, by iteration, place and rank."""

import numpy as np

from tests.given import OF_MODEL, Trace, built, data_parallel_job, store_of
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import StepModel, load_model


def model_of(*traces: Trace) -> StepModel | None:
    with built(store_of(*traces), *OF_MODEL) as store:
        return load_model(store, 0)


def known(model: StepModel | None) -> StepModel:
    assert model is not None
    return model


def assert_rebuilt(model: StepModel) -> None:
    np.testing.assert_array_equal(replay(model, measured(model)).end_ns, model.end_ns)


def test_two_ranks_and_two_iterations_become_arrays() -> None:
    #   step 7:  rank 0 |100··········|10|   step 8:  |80····|w 10|10|
    #            rank 1 |60····|w 40··|10|            |90·········|10|
    model = known(model_of(*data_parallel_job([[100, 60], [80, 90]], transfer_ns=10, first_step=7)))

    assert model.iterations.tolist() == [7, 8]
    assert model.ranks.tolist() == [0, 1]
    assert model.start_ns.tolist() == [[0, 0], [110, 110]]
    assert model.end_ns.tolist() == [[110, 110], [210, 210]]
    assert model.calls.tolist() == [1, 1]
    assert model.transfer_ns.tolist() == [[[10, 10]], [[10, 10]]]
    assert model.awaited.tolist() == [[[0, 0]], [[0, 0]]]
    assert model.kinds == (("compute", None),)
    # compute before the all-reduce, and nothing between its end and the iteration's
    assert model.before_arrival_ns[..., 0].tolist() == [[[100, 60], [0, 0]], [[80, 90], [0, 0]]]
    assert not model.before_wait_ns.any()


def test_ranks_that_meet_share_a_group_number() -> None:
    # given two pairs, each with an all-reduce of its own, and then one of all four ranks
    #   ranks 0, 1   |compute 50, 30|10|all 20··|
    #   ranks 2, 3   |compute 20, 40|10|w|all 20··|
    pairs = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}
    compute, met = {0: 50, 1: 30, 2: 20, 3: 40}, {0: 60, 1: 60, 2: 50, 3: 50}
    traces = []
    for rank, pair in pairs.items():
        trace = Trace(rank).step(0, 0, 80).kernel(0, compute[rank])
        trace.collective(compute[rank], met[rank], group="tp", ranks=pair)
        traces.append(trace.collective(met[rank], 80, group="world", ranks=range(4)))

    # when the model is loaded
    model = known(model_of(*traces))

    # then each pair has a number, and so have all together
    first, second, third, fourth = model.group[0, 0].tolist()
    assert first == second != third == fourth
    assert len(set(model.group[0, 1].tolist())) == 1
    assert_rebuilt(model)


def test_an_iteration_with_fewer_collectives_is_padded() -> None:
    # given a first iteration with two all-reduces and a second with one
    #   |50|10|50|10|   |50|10|
    traces = []
    for rank in range(2):
        trace = Trace(rank).step(0, 0, 120).kernel(0, 50).collective(50, 60).kernel(60, 110).collective(110, 120)
        traces.append(trace.step(1, 120, 180).kernel(120, 170).collective(170, 180))

    # when the model is loaded
    model = known(model_of(*traces))

    # then the second place of the second iteration is empty
    assert model.calls.tolist() == [2, 1]
    assert model.group[1, 1].tolist() == [-1, -1]
    assert_rebuilt(model)


def test_compute_that_hides_a_transfer_precedes_the_wait_for_it() -> None:
    # given an all-reduce from 100 to 150, under which 30 more are computed
    #   device   |compute 100··|compute 30|
    #   network  .             |transfer 50···|
    traces = [Trace(rank).step(0, 0, 150).kernel(0, 100).collective(100, 150) for rank in range(2)]
    for trace in traces:
        trace.kernel(100, 130, launch_ns=102)

    # when the model is loaded
    model = known(model_of(*traces))

    # then 30 lie between arrival and wait
    assert model.before_arrival_ns.sum(axis=3)[0, 0].tolist() == [100, 100]
    assert model.before_wait_ns.sum(axis=3)[0, 0].tolist() == [30, 30]
    assert_rebuilt(model)


def test_an_iteration_that_one_rank_did_not_record_is_left_out() -> None:
    # given three iterations, the second of which rank 1 does not mark
    traces = data_parallel_job([[100, 60]] * 3)
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#1"]

    # then the model holds the others, and rebuilds them with the time between as a pause
    model = known(model_of(*traces))
    assert model.iterations.tolist() == [0, 2]
    assert_rebuilt(model)


def test_there_is_no_model_where_no_iteration_is_common_to_all_ranks() -> None:
    # given a rank that recorded steps 0 and 1, and another that recorded steps 5 and 6
    first, later = data_parallel_job([[100, 60]] * 2), data_parallel_job([[100, 60]] * 2, first_step=5)

    assert model_of(first[0], later[1]) is None


def test_a_run_without_collectives_has_a_model_without_meetings() -> None:
    # given two ranks that only compute
    model = known(model_of(*(Trace(rank).step(0, 0, 100).kernel(0, 100) for rank in range(2))))

    assert model.calls.tolist() == [0]
    assert_rebuilt(model)
