"""Why hosts are late, by what they do longer: worked by hand, ns.

device   |idle: launches 60|idle: input 40|meets the others|        of rank 1; the others' wait for nothing
host     |launches 160     |input 40      |                         the others' launch for 100, and fetch for 40
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.given import MS, built, data_parallel_job, store_of
from tests.replay.models import Kinds, lockstep_model
from traceforge.attribute.ledger.host_causes import by_what_takes_longer, load_host_times, longer_ns
from traceforge.attribute.ledger.ledger_input import load_ledger_input
from traceforge.replay.model import StepModel

HOST_KINDS: Kinds = (("late_launch", None), ("input_stall", None), ("host_stall", None))
LAUNCH, INPUT, STALL = range(3)


def job(shown: dict[int, list[int]], iterations: int = 4, ranks: int = 3) -> StepModel:
    """Devices of these ranks wait for so long, by kind, before the one collective of each iteration."""
    work = np.zeros((iterations, 1, ranks, len(HOST_KINDS)), dtype=np.int64)
    for rank, times in shown.items():
        work[:, 0, rank] = times
    return lockstep_model(work, kinds=HOST_KINDS)


def spent(usual: list[float], iterations: int = 4, ranks: int = 3, **own: list[float]) -> np.ndarray:
    """What hosts spend in each iteration: the usual, and what `rank1=` says; of stalls nothing is known."""
    result = np.full((iterations, ranks, len(HOST_KINDS)), np.nan)
    result[..., :2] = usual
    for name, times in own.items():
        result[:, int(name.removeprefix("rank")), :2] = times
    return result


def shown_by(model: StepModel, rank: int) -> list[int]:
    return model.before_arrival_ns[0, 0, rank].tolist()


def test_what_a_host_that_is_behind_does_no_longer_than_others_is_no_cause() -> None:
    # given a host that launches for 60 longer, whose device therefore waits for its input, too
    model = by_what_takes_longer(job({1: [60, 40, 7]}), spent([100, 40], rank1=[160, 40]))

    # then all is late launching; of stalls nothing is known, and nothing is moved
    assert shown_by(model, 1) == [100, 0, 7]
    assert shown_by(model, 0) == [0, 0, 0]


def test_a_host_that_is_late_by_both_is_late_by_each_as_much_as_it_takes_longer() -> None:
    # given 30 longer to launch and 90 longer to fetch, of which the device shows 60 and 60
    model = by_what_takes_longer(job({1: [60, 60, 0]}), spent([100, 40], rank1=[130, 130]))

    # then a quarter and three quarters of the 120
    assert shown_by(model, 1) == [30, 90, 0]


@pytest.mark.parametrize(("longer", "shown"), [(20, [0, 100, 0]), (19, [81, 19, 0])])
def test_a_host_that_takes_little_longer_is_late_by_what_nothing_is_recorded_of(longer: int, shown: list[int]) -> None:
    # given a device that waits for 60 and 40, and a host that fetches for a fifth of that longer, or for less
    model = by_what_takes_longer(job({1: [60, 40, 0]}), spent([100, 40], rank1=[100, 40 + longer]))

    # then it is late by that; or by Python between its launches, of which its device shows most
    assert shown_by(model, 1) == shown


def test_a_host_that_mostly_stalls_and_takes_little_longer_for_the_rest_is_late_by_its_stalls() -> None:
    model = by_what_takes_longer(job({1: [60, 40, 400]}), spent([100, 40], rank1=[130, 40]))

    assert shown_by(model, 1) == [30, 0, 470]


def test_where_devices_wait_only_for_what_takes_no_longer_nothing_is_moved() -> None:
    # given a device that waits for 40 of input, and for hardly anything else
    before = job({1: [9, 40, 0]})

    assert by_what_takes_longer(before, spent([100, 40])) is before


def test_what_is_moved_is_the_same_in_sum_to_the_nanosecond() -> None:
    before = job({0: [11, 7, 3], 1: [37, 41, 2]}, iterations=5)
    after = by_what_takes_longer(before, spent([100, 40], iterations=5, rank0=[111, 41], rank1=[133, 47]))

    sums = [model.before_arrival_ns.sum(axis=-1).tolist() for model in (before, after)]
    assert sums[0] == sums[1]
    assert not np.array_equal(before.before_arrival_ns, after.before_arrival_ns)


def test_where_nothing_is_known_of_hosts_all_stays_as_it_is() -> None:
    model = job({1: [60, 40, 0]})

    assert by_what_takes_longer(model, spent([np.nan, np.nan])) is model


def test_a_host_is_held_against_the_usual_one_and_of_two_halves_against_the_faster() -> None:
    longer = longer_ns(job({}, ranks=4), spent([100, 40], ranks=4, rank2=[130, 40], rank3=[140, 40]))

    assert longer[0, :, LAUNCH].tolist() == [0, 0, 30, 40]
    assert np.isnan(longer[..., STALL]).all()


def test_no_role_pauses_by_design_and_each_may_launch_for_longer_than_others() -> None:
    # given three ranks that launch for 100 and fetch for 90, and one of another role that does both for 20
    model = replace(job({}, ranks=4), role=np.array([0, 0, 0, 1]), pauses=np.array([False, True, True]))
    longer = longer_ns(model, spent([100, 90], ranks=4, rank3=[20, 20]))
    assert longer[0, :, :STALL].tolist() == [[0, 0]] * 4

    # and now one rank of that role, and three of the other: most ranks fetch for 20
    model = replace(model, role=np.array([0, 1, 1, 1]))
    longer = longer_ns(model, spent([20, 20], ranks=4, rank0=[100, 90]))
    assert longer[0, :, :STALL].tolist() == [[0, 70], [0, 0], [0, 0], [0, 0]]


def test_where_a_host_was_not_looked_at_nothing_is_known_of_any() -> None:
    with store_of(*data_parallel_job([[50 * MS, 50 * MS, 80 * MS]] * 6)) as store:
        built(store, "attribute")
        run = load_ledger_input(store, 0)
        assert run is not None
        model = replace(run.model, kinds=(("late_launch", None),))
        assert load_host_times(store, 0, model) is not None

        store.execute("DELETE FROM attribute.host_time WHERE rank = 1")
        assert load_host_times(store, 0, model) is None
