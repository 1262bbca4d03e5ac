"""The least that hosts let iterations take: worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.models import lockstep_model
from traceforge.attribute.findings.counterfactual import Counterfactual, blamed_work
from traceforge.attribute.ledger.host_floor import HostFloor
from traceforge.attribute.ledger.ledger_input import by_cause


def floor_of(
    host_ns: list[list[float]],
    role: list[int] | None = None,
    machine: list[int] | None = None,
    starved_ns: float = 150,
    left_ns: float = 0,
) -> HostFloor:
    """Hosts of ranks 0, 1, …; of all iterations but the first."""
    hosts = np.array(host_ns, dtype=np.float64)
    ranks = np.arange(hosts.shape[1])
    return HostFloor(
        places=np.arange(1, len(hosts) + 1),
        ranks=ranks,
        host_ns=hosts,
        possible_ns=hosts,
        input_ns=np.zeros_like(hosts),
        role=np.array(role or [0] * len(ranks)),
        machine=ranks if machine is None else np.array(machine),
        starved_ns=np.full(len(hosts), starved_ns),
        left_ns=np.full(len(hosts), left_ns),
    )


# Four iterations of 150: rank 2 computes 140, the others 100; a transfer of 10.
STRAGGLER = lockstep_model([[[100, 100, 140]]] * 4, transfer_ns=10)


def test_without_the_last_rank_a_job_goes_as_fast_as_the_next_host() -> None:
    # given hosts of the others that need 130 and 142 of the 150, one more than the other in sum
    hosts = floor_of([[130, 140, 149], [130, 144, 149], [130, 142, 149]])
    model = by_cause(STRAGGLER)

    without = Counterfactual(model, hosts=hosts).without_ns([blamed_work(model, "slow_compute", [2])])

    # then of the 40 that an iteration would be shorter only 8 are left
    assert without == pytest.approx([142.0] * 4)


def test_hosts_that_need_less_than_their_devices_are_in_nobodys_way() -> None:
    hosts = floor_of([[110, 60, 149]] * 3)
    model = by_cause(STRAGGLER)

    source = blamed_work(model, "slow_compute", [2])
    assert Counterfactual(model, hosts=hosts).without_ns([source]) == pytest.approx([110.0] * 4)
    assert Counterfactual(model, hosts=hosts).isolated_cost_ns(source) == pytest.approx([40.0] * 4)


def test_what_a_loss_alone_would_cost_hides_behind_hosts_as_well() -> None:
    hosts = floor_of([[145, 60, 149]] * 3)
    model = by_cause(STRAGGLER)

    cost = Counterfactual(model, hosts=hosts).isolated_cost_ns(blamed_work(model, "slow_compute", [2]))
    assert cost == pytest.approx([5.0] * 4)


def test_hosts_that_need_more_than_the_iterations_take_leave_no_saving_and_no_loss() -> None:
    hosts = floor_of([[160, 160, 160]] * 3)
    model = by_cause(STRAGGLER)

    without = Counterfactual(model, hosts=hosts).without_ns([blamed_work(model, "slow_compute", [2])])
    assert without == pytest.approx([150.0] * 4)
    assert hosts.part_of_loss(STRAGGLER, np.full(4, 40.0), np.zeros(4)) == 0


@pytest.mark.parametrize(("usual_ns", "part"), [(110, 1.0), (60, 1.0), (120, 0.75), (150, 0.0)])
def test_what_the_usual_host_needs_beyond_the_reference_is_no_loss(usual_ns: float, part: float) -> None:
    # given 150 an iteration, of which the ledger holds 40, and one host that needs far more in one iteration
    hosts = floor_of([[usual_ns, usual_ns, usual_ns], [usual_ns, 900, usual_ns], [usual_ns, usual_ns, usual_ns]])

    assert hosts.part_of_loss(STRAGGLER, np.full(4, 40.0), np.zeros(4)) == pytest.approx(part)


def test_hosts_are_in_the_way_for_no_longer_than_a_device_lacks_work() -> None:
    # given hosts that seem to need 142 of the 150, while no device lacks work for more than 10
    hosts = floor_of([[142, 60, 149]] * 3, starved_ns=10)
    model = by_cause(STRAGGLER)
    source = blamed_work(model, "slow_compute", [2])

    # then of the 40 that the straggler costs 10 may be theirs; if they do not wait for their devices, 32
    assert Counterfactual(model, hosts=hosts).without_ns([source]) == pytest.approx([120.0] * 4)
    assert Counterfactual(model, hosts=hosts.without_doubt()).without_ns([source]) == pytest.approx([142.0] * 4)
    assert hosts.part_of_loss(STRAGGLER, np.full(4, 40.0), np.zeros(4)) == pytest.approx(30 / 40)


# Four iterations of 150: rank 2's host launches for 140, the others' for 100; a transfer of 10.
SLOW_HOST = replace(STRAGGLER, kinds=(("runtime", "launch"),))


def test_what_devices_have_left_to_do_when_hosts_are_done_is_not_saved_with_a_slow_host() -> None:
    # given the other hosts, which need 110 and then wait for their devices; so does rank 2's, for 25
    hosts, model = floor_of([[110, 110, 125]] * 3, left_ns=25), by_cause(SLOW_HOST)
    source = blamed_work(model, "late_launch", [2])

    # then 110 and 25 are left of 150, which is 15 less
    assert Counterfactual(model, hosts=hosts).without_ns([source]) == pytest.approx([135.0] * 4)
    assert Counterfactual(model, hosts=hosts).isolated_cost_ns(source) == pytest.approx([15.0] * 4)
    assert hosts.part_of_loss(SLOW_HOST, np.full(4, 40.0), np.zeros(4)) == pytest.approx(15 / 40)


def test_what_a_slow_device_has_left_to_do_is_saved_with_it() -> None:
    # given the same, but for a rank 2 whose device is slow: 40 faster, it leaves nothing to wait for
    hosts, model = floor_of([[110, 110, 125]] * 3, left_ns=25), by_cause(STRAGGLER)
    source = blamed_work(model, "slow_compute", [2])

    assert Counterfactual(model, hosts=hosts).without_ns([source]) == pytest.approx([110.0] * 4)
    assert Counterfactual(model, hosts=hosts).isolated_cost_ns(source) == pytest.approx([40.0] * 4)
    assert hosts.part_of_loss(STRAGGLER, np.full(4, 40.0), np.full(4, 40.0)) == pytest.approx(1.0)


def test_hosts_of_the_same_machine_are_no_measure_where_there_are_others() -> None:
    model = by_cause(STRAGGLER)
    source = blamed_work(model, "slow_compute", [2])

    for machine, left_ns in (([0, 1, 1], 120.0), ([0, 0, 0], 140.0)):
        hosts = floor_of([[120, 140, 149]] * 3, machine=machine)
        assert Counterfactual(model, hosts=hosts).without_ns([source]) == pytest.approx([left_ns] * 4)


def test_a_machine_is_known_of_ranks_whose_hosts_are_not_looked_at() -> None:
    # given ranks 0 and 1, of four, that are looked at: rank 1 shares the machine of rank 2, which is slow
    hosts = HostFloor(
        places=np.arange(1, 4),
        ranks=np.array([0, 1]),
        host_ns=np.array([[60.0, 140.0]] * 3),
        possible_ns=np.array([[60.0, 140.0]] * 3),
        input_ns=np.zeros((3, 2)),
        role=np.array([0, 0]),
        machine=np.array([0, 1, 1, 0]),
        starved_ns=np.full(3, 150.0),
        left_ns=np.zeros(3),
    )

    assert (hosts.least_ns(frozenset({2})), hosts.least_ns(frozenset({3}))) == (180, 420)


def test_where_no_host_is_left_the_others_would_be_as_the_usual_one() -> None:
    hosts = floor_of([[100, 110, 140]] * 3)

    assert hosts.least_ns(frozenset({0, 1, 2})) == 3 * 110


def test_of_stages_the_one_whose_hosts_need_most_counts() -> None:
    hosts = floor_of([[10, 10, 10, 90]] * 3, role=[0, 0, 0, 1])

    assert hosts.usual_ns == 90


def test_where_nothing_is_lost_nothing_is_taken_out() -> None:
    assert floor_of([[160, 160, 160]] * 3).part_of_loss(STRAGGLER, np.zeros(4), np.zeros(4)) == 1


def test_of_two_halves_of_the_hosts_the_faster_one_is_the_usual() -> None:
    assert floor_of([[100, 101, 140, 141]] * 3).usual_ns == 101
