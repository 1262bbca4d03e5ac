"""Small programs whose timeline is worked out by hand."""

import numpy as np
import pytest

from traceforge.synth.cluster import LINKS, Cluster, Link
from traceforge.synth.events import SimulatedEvents
from traceforge.synth.load import Load, Stall
from traceforge.synth.program import ProgramOperation, Role, Workload
from traceforge.synth.simulate import simulate
from traceforge.synth.task import Coupling

US = 1_000

# Host 1 us, driver call 1 us, and 3 us from the call to the kernel's start: a first kernel starts at 5 us.
PROGRAM = (
    ProgramOperation("compute", "aten::linear", "gemm"),
    ProgramOperation("collective", "c10d::allreduce_", "ncclDevKernel", group="data_parallel", size_bytes=8),
    ProgramOperation("compute", "aten::linear", "gemm"),
    ProgramOperation("await", "c10d::wait_tensor", awaited=(1,)),
    ProgramOperation("compute", "aten::linear", "gemm"),
)


def run(
    device_us: list[list[float]], stalls: list[Stall] | None = None, coupling: Coupling | None = None
) -> SimulatedEvents:
    """One iteration of two ranks; device times by operation and rank."""
    device = np.array(device_us)[None] * US
    hosts = np.full_like(device, 1.0 * US)
    load = Load(hosts, hosts.copy(), device, np.zeros_like(device), stalls or [])
    return simulate(Cluster(1, 2), Workload(), (Role(PROGRAM, (0, 1)),), load, coupling or Coupling())


BALANCED = [[100, 100], [20, 20], [50, 50], [0, 0], [10, 10]]
#   compute  |gemm 5..105|gemm 105..155|gemm 155..165|
#   nccl                 |105..125|
LATE = [[100, 160], [20, 20], [50, 50], [0, 0], [10, 10]]
#   rank 0   |gemm 5..105|gemm 105..155|            |gemm 185..195|
#     nccl               |wait 105..165 |165..185|
#   rank 1   |gemm 5..165              |gemm 165..215|gemm 215..225|


def test_overlapped_communication_costs_nothing() -> None:
    events = run(BALANCED)

    assert events.device_start_ns[0, :, 0].tolist() == [5 * US, 105 * US, 105 * US, 0, 155 * US]
    assert events.iteration_ends_ns().tolist() == [165 * US]


def test_the_late_rank_sets_the_pace_and_the_others_wait_on_the_device() -> None:
    events = run(LATE)

    assert events.device_start_ns[0, 1].tolist() == [105 * US, 165 * US]
    assert events.device_end_ns[0, 1].tolist() == [185 * US, 185 * US]
    assert events.device_start_ns[0, 4].tolist() == [185 * US, 215 * US]
    assert events.iteration_ends_ns().tolist() == [225 * US]


def test_kappa_lengthens_the_transfer_by_the_mean_wait() -> None:
    # given waits of 60 and 0 us, whose mean is 30
    events = run(LATE, coupling=Coupling(kappa=0.5))

    assert events.device_end_ns[0, 1].tolist() == [200 * US, 200 * US]


def test_eta_slows_what_computes_beside_a_waiting_collective() -> None:
    # given 50 us of compute on rank 0 beside 60 us of waiting, at two thirds of the speed: 40 done, 10 left
    events = run(LATE, coupling=Coupling(eta_wait=0.5))

    assert events.device_end_ns[0, 2].tolist() == [(165 + 10) * US, 215 * US]


def test_a_stall_of_the_host_is_hidden_as_far_as_it_runs_ahead() -> None:
    # given a host that stands still for 80 us before the third operation, while its device has 100 us to do
    hidden = run(BALANCED, [Stall(2, np.array([[80.0 * US, 0]]))])
    # and one for 150 us: it goes on at 154, and its kernel starts at 154 + 2 + 3
    seen = run(BALANCED, [Stall(2, np.array([[150.0 * US, 0]]))])

    assert hidden.iteration_ends_ns().tolist() == [165 * US]
    assert seen.device_start_ns[0, 2].tolist() == [159 * US, 105 * US]


def test_what_drains_the_device_waits_for_it_first() -> None:
    events = run(BALANCED, [Stall(2, np.array([[10.0 * US, 0]]), drains_device=True)])

    # then the host waits for the collective, to 125, stands still for 10, and its kernel starts 5 later
    assert events.device_start_ns[0, 2].tolist() == [140 * US, 105 * US]


def test_the_time_of_a_ring_by_hand() -> None:
    # given four ranks: six steps of 2 us, and 6/4 of 1,000 bytes at 0.5 bytes/ns
    assert Link(2_000, 0.5).all_reduce_ns(1_000, 4) == 6 * 2_000 + 1_500 / 0.5


@pytest.mark.parametrize(
    ("cluster", "paths"),
    [
        (Cluster(1, 4), {("data_parallel", "node")}),
        (Cluster(2, 4), {("data_parallel", "rack")}),
        (Cluster(2, 4, 4), {("tensor_parallel", "node"), ("data_parallel", "rack")}),
        (Cluster(2, 4, 4, nodes_per_rack=1), {("tensor_parallel", "node"), ("data_parallel", "uplink")}),
    ],
)
def test_groups_know_their_path(cluster: Cluster, paths: set[tuple[str, str]]) -> None:
    assert {(group.kind, group.path) for group in cluster.groups()} == paths
    assert all(group.path in LINKS for group in cluster.groups())
