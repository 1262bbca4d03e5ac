"""A slow host of a launch-bound job that waits for its device in each step costs what it launches later, and no more.

host of the others |launches 100 kernels, 0.1 ms each         |waits ..........|
device             |.03| |.03| |.03| …                       |            |left 2|
NCCL                          |first call, waits for rank 2 …              |1|
host of rank 2     |launches 100 kernels, 0.13 ms each                   |waits|
"""

import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import Run, told

RANKS, STEPS, KERNELS, SLOW = 4, 10, 100, 2


def job(slow_ns: int = 130 * US, further_ns: int = 0) -> Run:
    """Hosts synchronise at the end of each step, in which devices are left with a transfer of 1 ms and 2 ms of work.

    Args:
        slow_ns: what rank 2's host takes for a kernel.
        further_ns: what its device computes longer than the others before the second call.
    """
    traces = [Trace(rank, host=f"node{rank}") for rank in range(RANKS)]
    begun = 0
    for n in range(STEPS):
        each = [(slow_ns if rank == SLOW else 100 * US) + (7 * rank + 3 * n) % 5 * 100 for rank in range(RANKS)]
        halves = [[begun + KERNELS // 2 * half * one for one in each] for half in (1, 2)]
        hosts = halves[1]
        halves[1] = [at + further_ns * (rank == SLOW) for rank, at in enumerate(hosts)]
        ends = [max(arrivals) + MS for arrivals in halves]
        done = ends[1] + 2 * MS
        for rank, trace in enumerate(traces):
            trace.step(n, begun, done)
            for k in range(KERNELS):
                at = begun + k * each[rank]
                trace.host_work("aten::mm", at, at + each[rank] - 10 * US)
                trace.kernel(at + 20 * US, at + 50 * US, launch_ns=at + 10 * US)
            if halves[1][rank] > hosts[rank]:
                trace.kernel(hosts[rank], halves[1][rank], launch_ns=hosts[rank] - 7 * US)
            for arrivals, issued, end in zip(halves, (halves[0][rank], hosts[rank]), ends, strict=True):
                trace.collective(arrivals[rank], end, issue_ns=issued - 5 * US, group="0", ranks=range(RANKS))
                trace.events[-1]["stream"] = 20
            trace.kernel(ends[1], done, "adamw", launch_ns=hosts[rank] - 2 * US)
            trace.host_work("cudaStreamSynchronize", hosts[rank], done, "cuda_runtime")
        begun = done + 5 * US
    return told(*traces)


def test_what_the_device_has_left_to_do_at_the_end_of_each_step_is_not_saved_with_the_slow_host() -> None:
    columns = "summary, delay_ns_per_iteration, delay_low_ns, delay_high_ns"
    ((summary, delay_ns, low_ns, high_ns),) = rows_of(
        job(), f"SELECT {columns} FROM attribute.finding WHERE confidence <> 'low'"
    )

    # then 100 times 0.03 ms; without what is left, hosts that need 10 of 16 ms would leave 6
    assert str(summary).startswith("Rank 2 launches work more slowly")
    assert delay_ns == pytest.approx(3 * MS, rel=0.03)
    assert isinstance(low_ns, int)
    assert isinstance(high_ns, int)
    assert low_ns <= 3 * MS <= high_ns


def test_the_time_in_which_even_the_slow_host_waits_is_what_its_device_has_left_to_do() -> None:
    waits = rows_of(job(), "SELECT DISTINCT rank, least_awaited_ns FROM attribute.host_need")

    assert {rank for rank, _ in waits} == set(range(RANKS))
    assert all(wait == pytest.approx(3 * MS, rel=0.01) for _, wait in waits)


def test_a_slow_device_for_which_all_hosts_wait_costs_all_of_what_it_takes_longer() -> None:
    # given hosts alike, and a device that computes for 6 ms more, which is what every host waits for longer
    store = job(100 * US, further_ns=6 * MS)

    ((cause, cost_ns),) = rows_of(
        store, "SELECT cause, delay_ns_per_iteration FROM attribute.finding WHERE confidence <> 'low'"
    )
    ((lost_ns,),) = rows_of(store, "SELECT MEDIAN(excess_ns) FROM attribute.excess")
    assert cause == "slow_compute"
    assert (cost_ns, lost_ns) == (pytest.approx(6 * MS, rel=0.03), pytest.approx(6 * MS, rel=0.03))
