"""Edits: what each changes, worked by hand, and what it refuses."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from tests.replay.edits.jobs import MEGABYTE, ends_of, job_of
from tests.replay.models import COMPUTE, THREE_KINDS, lockstep_model, lockstep_plan, model_of, scene_of
from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData, edits, parse_edit
from traceforge.replay.settings import format_settings
from traceforge.replay.what_if import try_edits

every_edit = pytest.mark.parametrize("edit", edits().values(), ids=list(edits()))


def edited(job: EditedJob, text: str) -> EditedJob:
    edit, settings = parse_edit(text)
    return edit.apply(job, settings)


@every_edit
def test_an_edit_leaves_the_run_it_was_given_as_it_was(edit: Edit) -> None:
    job = job_of(hosts=["a", "b"], spanned=2)
    before = ends_of(job), job.model.transfer_ns.copy(), job.model.before_arrival_ns.copy()

    for settings in edit.usual(job):
        try:
            edit.apply(job, settings)
        except InsufficientData:
            continue

    assert ends_of(job) == before[0]
    np.testing.assert_array_equal(job.model.transfer_ns, before[1])
    np.testing.assert_array_equal(job.model.before_arrival_ns, before[2])


@every_edit
def test_usual_settings_are_written_as_they_are_read(edit: Edit) -> None:
    for settings in edit.usual(job_of(hosts=["a", "b"], spanned=2)):
        assert parse_edit(f"{edit.name}:{format_settings(settings)}") == (edit, dict(settings))


def test_fixing_the_straggler_leaves_the_next_one() -> None:
    # given three ranks that work 100, 60 and 50, and transfers of 20: the median is 60
    job = job_of(lockstep_model([[[100, 60, 50]]] * 2, transfer_ns=20))

    assert ends_of(edited(job, "fix_rank:rank=0")) == [80, 160]
    assert ends_of(edited(job, "fix_rank:rank=2")) == [120, 240]


def test_the_ranks_to_fix_first_are_those_that_arrive_last() -> None:
    job = job_of(lockstep_model([[[100, 60, 50]], [[10, 60, 50]], [[100, 60, 50]]]))

    assert [settings["rank"] for settings in edits()["fix_rank"].usual(job)] == [0, 1]


def test_a_kind_of_work_is_cut_down_to_its_median() -> None:
    # given compute of 100 on three ranks, and input of 40 on one of them
    model = lockstep_model([[[[100, 0, 0], [100, 0, 0], [100, 40, 0]]]], kinds=THREE_KINDS)

    assert ends_of(edited(job_of(model), "remove_excess:kind=input")) == [110]
    assert ends_of(edited(job_of(model), "remove_excess:kind=compute")) == [150]
    assert ends_of(edited(job_of(model), "remove_excess:kind=input,rank=0")) == [150]
    with pytest.raises(UsageError, match="no work of kind `copy`"):
        edited(job_of(model), "remove_excess:kind=copy")


def test_a_faster_device_shortens_its_own_work_only() -> None:
    model = lockstep_model([[[[100, 0, 7], [60, 0, 7]]]], kinds=THREE_KINDS, transfer_ns=20)

    assert ends_of(edited(job_of(model), "scale_compute:factor=0.5")) == [77]
    assert ends_of(edited(job_of(model), "scale_compute:factor=0.5,rank=0")) == [87]


def test_another_bandwidth_scales_the_chosen_transfers() -> None:
    model = lockstep_model([[[100, 60], [10, 10]]], transfer_ns=[[20, 40]])
    job = job_of(model, spanned=[1, 2])

    assert ends_of(edited(job, "scale_transfer:factor=0.5")) == [140]
    assert ends_of(edited(job, "scale_transfer:factor=0.5,path=between_hosts")) == [150]
    assert ends_of(edited(job, "scale_transfer:factor=0.5,path=within_host")) == [160]
    assert ends_of(edited(job, "scale_transfer:factor=2,communicator=0")) == [230]
    with pytest.raises(InsufficientData):
        edited(job, "scale_transfer:communicator=3")
    with pytest.raises(UsageError, match="no path `moon`"):
        edited(job, "scale_transfer:path=moon")


@pytest.mark.parametrize("name", ["scale_transfer", "scale_compute"])
def test_a_factor_below_zero_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="`factor=-1` must not be negative"):
        edited(job_of(), f"{name}:factor=-1")


def test_without_a_slow_host_iterations_are_shorter_and_hold_less() -> None:
    # given three hosts, of which one takes 100 and the others 60 and 50; transfers of 2 x 2/3 of the payload take 40
    job = job_of(lockstep_model([[[100, 60, 50]]] * 2, transfer_ns=40), hosts=["slow", "b", "c"], spanned=3)

    without = edited(job, "drop_host:host=slow,step_us=0")

    # then two ranks move 2 x 1/2 of it
    assert ends_of(without) == [90, 180]
    assert without.samples_share == pytest.approx(2 / 3)
    assert edits()["drop_host"].usual(job) == [{"host": "slow", "within_speed": 0, "step_us": -1}]


def test_ranks_that_stay_keep_the_iterations_of_their_usual_pace() -> None:
    model = lockstep_model([[[100, 60, 50]]] * 2, transfer_ns=40)
    model = replace(model, usual=np.array([[True, False, True], [True, True, False]]))

    without = edited(job_of(model, hosts=["slow", "b", "c"], spanned=3), "drop_host:host=slow,step_us=0")

    assert without.model.usual is not None
    assert without.model.usual.tolist() == [[False, True], [True, False]]


def test_a_group_that_is_left_on_one_host_becomes_as_fast_as_links_within_it() -> None:
    # given 4 ranks on 2 hosts that move 2 x 3/4 of the payload in 150; on one host 2 x 1/2 of it, 10 times as fast
    job = job_of(lockstep_model([[[100] * 4]], transfer_ns=150), hosts=["a", "a", "b", "b"], spanned=2)

    assert ends_of(edited(job, "drop_host:host=b,step_us=0,within_speed=10")) == [110]


def test_a_rank_that_is_left_alone_exchanges_nothing() -> None:
    job = job_of(lockstep_model([[[100, 60]]], transfer_ns=150), hosts=["a", "b"], spanned=2)

    assert ends_of(edited(job, "drop_host:host=b")) == [100]


def test_what_a_run_does_not_tell_is_in_the_interval() -> None:
    # given that the speed within a host is not known: the transfer of 400 us on one host may take 20 to 267 us
    ns = 1000
    model = lockstep_model([[[100 * ns] * 4]] * 12, transfer_ns=400 * ns)
    job = job_of(model, hosts=["a", "a", "b", "b"], spanned=2)

    found = try_edits(scene_of(model), job, [parse_edit("drop_host:host=b,step_us=0")])

    assert found.throughput_ratio_low == pytest.approx(0.5 * 500 / (100 + 400 * 2 / 3), rel=0.02)
    assert found.throughput_ratio_high == pytest.approx(0.5 * 500 / (100 + 400 * 2 / 3 / 20), rel=0.02)


def test_a_host_that_is_not_there_or_all_there_is_cannot_be_dropped() -> None:
    with pytest.raises(InsufficientData):
        edited(job_of(), "drop_host:host=a")
    with pytest.raises(UsageError, match="no host `z`"):
        edited(job_of(hosts=["a", "b"]), "drop_host:host=z")


def test_local_sgd_lets_ranks_run_on_between_exchanges() -> None:
    # given ranks that take turns in being slow: 100 and 60, then 60 and 100; with an exchange each time 120 + 120
    job = job_of(lockstep_model([[[100, 60]], [[60, 100]]] * 2, transfer_ns=20))
    assert ends_of(job) == [120, 240, 360, 480]

    # when gradients are exchanged in every second iteration, both have worked 160 by then
    assert ends_of(edited(job, "local_sgd:every=2")) == [100, 180, 280, 360]


def two_axes(named: tuple[str, str]) -> EditedJob:
    """Four ranks that meet in pairs along one axis, then another; work of 100 before each, transfers of 20."""
    model = lockstep_model([[[100] * 4, [100] * 4]] * 2, transfer_ns=20, groups=[[0, 0, 1, 1], [2, 3, 2, 3]])
    job = job_of(model, members=2)
    communicator = np.broadcast_to(np.array([[0, 0, 1, 1], [2, 3, 2, 3]]), model.group.shape)
    axes = {number: frozenset({named[number // 2]}) for number in range(4)}
    return replace(job, places=replace(job.places, communicator=communicator, axes=axes))


def test_only_what_goes_along_the_data_parallel_axis_is_left_out() -> None:
    assert ends_of(two_axes(("tp", "dp"))) == [240, 480]
    assert ends_of(edited(two_axes(("tp", "dp")), "local_sgd:every=2")) == [220, 460]


@pytest.mark.parametrize(("axes", "reason"), [(("tp", "ep"), "name communicator"), (("tp", "fsdp"), "sharded")])
def test_where_the_layout_names_no_replicas_local_sgd_is_refused(axes: tuple[str, str], reason: str) -> None:
    with pytest.raises(InsufficientData, match=reason):
        edited(two_axes(axes), "local_sgd:every=2")


def test_what_is_no_exchange_of_gradients_stays() -> None:
    with pytest.raises(InsufficientData):
        edited(job_of(op="all_to_all"), "local_sgd:every=2")


def test_a_hierarchy_moves_less_between_hosts() -> None:
    # given 4 ranks on 2 hosts: flat 2 x 3/4 = 1.5 of the payload; within 2 x 1/2 / 10 = 0.1, between 2 x 1/2 / 2 = 0.5
    model = lockstep_model([[[100] * 4]], transfer_ns=150)
    job = job_of(model, hosts=["a", "a", "b", "b"], spanned=2)

    assert ends_of(edited(job, "hierarchical:within_speed=10,step_us=0")) == [160]
    with pytest.raises(InsufficientData, match="within_speed"):
        edited(job, "hierarchical")


def test_the_speed_within_hosts_is_taken_from_the_run_where_it_shows() -> None:
    # given an all-reduce of 2 ranks within a host: payload x 1 in 10; one of 4 ranks over two: payload x 1.5 in 150
    model = lockstep_model([[[100] * 4, [0] * 4]], transfer_ns=[[10, 150]], groups=[[0, 0, 1, 1], [0, 0, 0, 0]])
    job = job_of(model, hosts=["a", "a", "b", "b"], spanned=[1, 2], members=[2, 4])

    # then within is 10 times as fast, and the second takes 60
    assert ends_of(edited(job, "hierarchical:step_us=0")) == [170]


def test_a_tree_takes_fewer_steps_and_carries_a_little_more() -> None:
    # given 8 ranks on 4 hosts: 14 steps of 10 us and 2 x 7/8 of the payload in 175 us
    us = 1000
    model = lockstep_model([[[100 * us] * 8]], transfer_ns=315 * us)
    job = job_of(model, hosts=["a", "a", "b", "b", "c", "c", "d", "d"], spanned=4)

    # then 2 log2 4 = 4 steps between hosts, 2 of a quarter within them, and twice the payload: 40 + 5 + 200
    assert ends_of(edited(job, "tree:step_us=10")) == [345 * us]
    with pytest.raises(InsufficientData, match="several hosts"):
        edited(job_of(model), "tree")


def two_buckets() -> EditedJob:
    """Two all-reduces of 1 and 3 MB in a row, of which only the second is awaited; 30 + 20 and 30 + 60."""
    plan = lockstep_plan([[[100, 100], [50, 50]]] * 2, transfer_ns=[[50, 90]] * 2, kinds=COMPUTE)
    plan.awaited[:, 0] = -1
    return job_of(model_of(plan), size_bytes=[MEGABYTE, 3 * MEGABYTE])


def test_larger_buckets_save_a_latency_and_start_later() -> None:
    #   100 |bucket 1: 50|            recorded: second starts at 150, ends at 240
    #       |50| |bucket 2: 90 ....|  joined:   starts at 150, takes 30 + 80 = 110, ends at 260
    assert ends_of(two_buckets())[0] == 240
    assert ends_of(edited(two_buckets(), "bucket_size:megabytes=25"))[0] == 260


def test_smaller_buckets_cost_a_latency_each() -> None:
    # the second bucket of 3 MB becomes three: two further latencies of 30
    assert ends_of(edited(two_buckets(), "bucket_size:megabytes=1"))[0] == 300


def test_buckets_of_one_size_do_not_tell_latency_from_bandwidth() -> None:
    with pytest.raises(InsufficientData, match="two sizes"):
        edited(job_of(), "bucket_size:megabytes=25")


def test_an_edit_is_answered_with_its_gain_its_interval_and_what_it_takes_for_granted() -> None:
    model = lockstep_model([[[100, 60]]] * 12, transfer_ns=20)

    found = try_edits(scene_of(model), job_of(model), [parse_edit("fix_rank:rank=0")])

    assert (found.edit, found.parameters) == ("fix_rank", "rank=0")
    assert found.throughput_ratio == pytest.approx(120 / 80)
    assert (found.iteration_ns, found.saved_ns_per_iteration) == (80, 40)
    # its steps are all alike; the model may be off by 0.15 % of the time and 0.5 % of the change
    error = 1.5**0.005 * exp(0.0015)
    assert found.throughput_ratio_low == pytest.approx(1.5 / error)
    assert found.throughput_ratio_high == pytest.approx(1.5 * error)
    assert found.reason == edits()["fix_rank"].description


def test_with_a_straggler_goes_the_spread_it_made() -> None:
    from tests.replay.models import coupled_by

    # given transfers of 20, of which 0.5 x 20 are due to the mean wait
    model = lockstep_model([[[100, 60]]] * 12, transfer_ns=20)

    found = try_edits(scene_of(model, coupled_by(0.5)), job_of(model), [parse_edit("fix_rank:rank=0")])

    assert found.iteration_ns == 70


def test_edits_follow_one_another() -> None:
    model = lockstep_model([[[100, 60]]] * 12, transfer_ns=20)
    both = [parse_edit("fix_rank:rank=0"), parse_edit("scale_transfer:factor=0.5")]

    found = try_edits(scene_of(model), job_of(model), both)

    assert (found.edit, found.iteration_ns) == ("fix_rank+scale_transfer", 70)


def test_what_cannot_be_told_is_said_and_has_no_number() -> None:
    model = lockstep_model([[[100, 60]]] * 12)

    found = try_edits(scene_of(model), job_of(model), [parse_edit("bucket_size")])

    assert found.throughput_ratio is None
    assert "two sizes" in found.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hurry", "there is no edit `hurry`"),
        ("fix_rank:speed=1", "edit `fix_rank` has no parameter `speed`"),
        ("fix_rank:rank=first", "`rank=first` is not a number"),
        ("fix_rank:rank=nan", "`rank=nan` must be a finite number"),
    ],
)
def test_what_cannot_be_an_edit_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_edit(text)

    assert error.value.what == message


def test_a_word_for_a_number_is_answered_with_the_usual_number_of_its_parameter() -> None:
    with pytest.raises(UsageError) as error:
        parse_edit("fix_rank:rank=first")

    assert error.value.hint == "such as rank=0"


@pytest.mark.parametrize("rank", ["7", "0.5"])
def test_a_rank_that_is_not_there_is_answered_with_those_that_are(rank: str) -> None:
    with pytest.raises(UsageError, match=f"no rank {rank} ") as error:
        edited(job_of(), f"fix_rank:rank={rank}")

    # All of them are listed, so that none are left to be guessed.
    assert error.value.hint is not None
    assert not error.value.hint.endswith("…")
