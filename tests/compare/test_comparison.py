"""Two small jobs side by side: what changed is named, what did not is not, and what cannot be compared is refused."""

from collections.abc import Sequence

import pytest

from tests.given import MS, Trace, built, data_parallel_job, store_of
from traceforge.compare import Comparison, Side, compare_runs
from traceforge.errors import UsageError
from traceforge.store.database import Store

RANKS = 4
ITERATIONS = 12


def jitter(rank: int, iteration: int) -> int:
    return (rank * 7919 + iteration * 104_729) % 97 * MS // 200


def job(extra_ns: Sequence[int] = (0, 0, 0, 0), *, seed: int = 0, transfer_ns: int = 5 * MS) -> Store:
    """A job of four ranks that compute about 50 ms, each with its own extra, then reduce together."""
    compute = [
        [50 * MS + jitter(rank, iteration + seed) + extra_ns[rank] for rank in range(RANKS)]
        for iteration in range(ITERATIONS)
    ]
    return built(store_of(*data_parallel_job(compute, transfer_ns=transfer_ns), world_size=RANKS), "attribute")


def compared(before: Store, after: Store) -> Comparison:
    return compare_runs(Side(before, 0), Side(after, 0))


@pytest.fixture(scope="module")
def healthy() -> Store:
    return job()


def test_a_rank_that_became_slow_is_named_with_what_it_costs(healthy: Store) -> None:
    # given the same job, but rank 2 computes 10 ms longer
    #   before  |compute 50|reduce 5|
    #   after   |compute 60|reduce 5|   ranks 0, 1, 3 wait
    found = compared(healthy, job([0, 0, 10 * MS, 0]))

    # then the iteration is longer by nearly as much, for that cause and rank
    assert found.iteration.is_significant
    assert found.iteration.difference_ns == pytest.approx(10 * MS, rel=0.06)
    assert [change.name for change in found.of("rank_work", only_significant=True)] == ["2"]
    assert [change.name for change in found.of("rank_delay", only_significant=True)] == ["2"]
    assert found.of("cause")[0].name == "synchronization_amplification/slow_compute"
    assert {change.name for change in found.of("phase", only_significant=True)} >= {"wait", "compute"}
    assert not found.of("collective_transfer", only_significant=True)
    assert not found.objections


def test_of_the_same_job_again_nothing_significant_is_said(healthy: Store) -> None:
    found = compared(healthy, job(seed=5))
    assert not found.iteration.is_significant
    assert not [change for change in found.changes if change.is_significant]


def test_a_run_against_itself_changes_by_nothing(healthy: Store) -> None:
    found = compared(healthy, healthy)
    assert all(change.difference_ns == 0 for change in [found.iteration, *found.changes])
    assert found.slower_share == 0.5


def test_a_slower_network_is_a_change_of_transfers_and_of_no_rank(healthy: Store) -> None:
    # given transfers of 15 in the place of 5 ms: 4,000 bytes, class 2,048, four ranks
    found = compared(healthy, job(transfer_ns=15 * MS))
    transfers = found.of("collective_transfer", only_significant=True)
    assert [change.name for change in transfers] == ["all_reduce/2048/4"]
    assert transfers[0].difference_ns == pytest.approx(10 * MS)
    assert not found.of("rank_work", only_significant=True)
    assert not found.of("rank_delay", only_significant=True)


def test_causes_and_the_work_itself_add_up_to_the_iteration(healthy: Store) -> None:
    found = compared(healthy, job([0, 3 * MS, 10 * MS, 0]))
    for side in ("before_ns", "after_ns"):
        parts = sum(getattr(change, side) for change in found.of("cause"))
        assert parts == pytest.approx(getattr(found.iteration, side))


def test_another_number_of_ranks_is_refused_by_name(healthy: Store) -> None:
    # given a job on two ranks
    compute = [[50 * MS, 51 * MS]] * ITERATIONS
    small = built(store_of(*data_parallel_job(compute), world_size=2), "attribute")

    # then it is refused, unless one insists
    with pytest.raises(UsageError, match=r"world_size \(4 against 2\)"):
        compared(healthy, small)
    forced = compare_runs(Side(healthy, 0), Side(small, 0), force=True)
    assert forced.objections[0].field == "world_size"


def test_a_run_without_iterations_is_refused_even_by_force(healthy: Store) -> None:
    nothing = built(store_of(*(Trace(rank).kernel(0, 100) for rank in range(RANKS)), world_size=RANKS), "attribute")
    with pytest.raises(UsageError, match=r"iterations \(12 against 0\)"):
        compare_runs(Side(healthy, 0), Side(nothing, 0), force=True)


def test_other_collectives_are_a_warning_by_name(healthy: Store) -> None:
    # given a program that gathers twice where the other one reduces once
    traces = [Trace(rank) for rank in range(RANKS)]
    for number in range(ITERATIONS):
        now = number * 60 * MS
        for trace in traces:
            trace.step(number, now, now + 60 * MS).kernel(now, now + 50 * MS)
            for part in range(2):
                start = now + (50 + 5 * part) * MS
                trace.collective(start, start + 5 * MS, op="_allgather_base", kernel="ncclDevKernel_AllGather_RING_LL")
    other = built(store_of(*traces, world_size=RANKS), "attribute")

    # then both the mix and the number are told, and the comparison is made
    assert [objection.field for objection in compared(healthy, other).objections] == ["op_mix", "collectives"]


def test_below_three_iterations_no_change_is_called_significant(healthy: Store) -> None:
    short = built(store_of(*data_parallel_job([[90 * MS] * RANKS] * 2), world_size=RANKS), "attribute")
    found = compared(healthy, short)
    assert not found.iteration.is_significant
    assert found.iteration.low_ns is None
    assert "iterations" in [objection.field for objection in found.objections]


def test_delays_above_other_durations_are_a_warning_by_name(healthy: Store) -> None:
    # given the same job, its delays counted above the first quartile of durations
    other = job()
    other.execute("UPDATE meta.analysis SET reference = 'first_quartile'")
    found = compared(healthy, other)
    assert [(one.field, one.is_refusal) for one in found.objections] == [("reference", False)]
