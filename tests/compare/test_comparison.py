"""Two small jobs side by side: what changed is named, what did not is not, and what cannot be compared is refused."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.given import MS, Trace, add_run, built, data_parallel_job
from traceforge.compare import Side, compare_runs
from traceforge.compare.comparability import job_facts, objections
from traceforge.errors import UsageError
from traceforge.report.comparison_text import headline, summary
from traceforge.store.database import Store

RANKS = 4
ITERATIONS = 12


def jitter(rank: int, iteration: int) -> int:
    return (rank * 7919 + iteration * 104_729) % 97 * MS // 200


def job(extra_ns: Sequence[int] = (0, 0, 0, 0), *, seed: int = 0, transfer_ns: int = 5 * MS) -> list[Trace]:
    """A job of four ranks that compute about 50 ms, each with its own extra, then reduce together."""
    compute = [
        [50 * MS + jitter(rank, iteration + seed) + extra_ns[rank] for rank in range(RANKS)]
        for iteration in range(ITERATIONS)
    ]
    return data_parallel_job(compute, transfer_ns=transfer_ns)


def gathering() -> list[Trace]:
    """A program that gathers twice where the others reduce once."""
    traces = [Trace(rank) for rank in range(RANKS)]
    for number in range(ITERATIONS):
        now = number * 60 * MS
        for trace in traces:
            trace.step(number, now, now + 60 * MS).kernel(now, now + 50 * MS)
            for part in range(2):
                start = now + (50 + 5 * part) * MS
                trace.collective(start, start + 5 * MS, op="_allgather_base", kernel="ncclDevKernel_AllGather_RING_LL")
    return traces


def broadcasting(late_ns: int) -> list[Trace]:
    """A program that broadcasts, which a rank may come to when the others have left, and then reduces."""
    traces = [Trace(rank) for rank in range(RANKS)]
    for number in range(ITERATIONS):
        now = number * 60 * MS
        for rank, trace in enumerate(traces):
            late = late_ns if rank == 2 else 0
            trace.step(number, now, now + 60 * MS).collective(now + late, now + late + MS, op="broadcast")
            trace.kernel(now + late + MS, now + late + 40 * MS).collective(now + late + 40 * MS, now + 60 * MS)
    return traces


def _ranks(name: str) -> int:
    return 2 if name == "two_ranks" else RANKS


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, Side]]:
    """All jobs as runs of one database, by name.

    slow_rank: rank 2 computes 10 ms longer; slower_network: transfers take 15 in the place of 5 ms.
    """
    jobs = {
        "healthy": job(),
        "again": job(seed=5),
        "slow_rank": job([0, 0, 10 * MS, 0]),
        "slower_rank": job([0, 0, 25 * MS, 0]),
        "drifted": job([-12 * MS // 10, 12 * MS // 10, -6 * MS // 10, 9 * MS // 10]),
        "all_slower": job([48 * MS // 10, 5 * MS, 5 * MS, 5 * MS]),
        "steady": data_parallel_job([[55 * MS] * RANKS] * ITERATIONS, transfer_ns=5 * MS),
        "one_slower_others_faster": job([23 * MS, -7 * MS, -9 * MS, -11 * MS]),
        "sometimes_slow": data_parallel_job(
            [
                [50 * MS + jitter(rank, n) + (20 * MS if rank == 1 and n % 3 == 0 else 0) for rank in range(RANKS)]
                for n in range(ITERATIONS)
            ],
            transfer_ns=5 * MS,
        ),
        "two_slow_ranks": job([0, 3 * MS, 10 * MS, 0]),
        "slower_network": job(transfer_ns=15 * MS),
        "two_ranks": data_parallel_job([[50 * MS, 51 * MS]] * ITERATIONS),
        "no_steps": [Trace(rank).kernel(0, 100) for rank in range(RANKS)],
        "gathering": gathering(),
        "broadcasting": broadcasting(0),
        "broadcasting_late": broadcasting(10 * MS),
        "short": data_parallel_job([[90 * MS] * RANKS] * 2),
        "few": data_parallel_job([[50 * MS * 8**n] * RANKS for n in range(3)]),
        "without_rank_3": job([0, 0, 10 * MS, 0])[:3],
    }
    with Store(None, threads=1, is_kept=False) as store:
        runs = {name: add_run(store, *traces, run_name=name, world_size=_ranks(name)) for name, traces in jobs.items()}
        built(store, "align", "replay", "attribute")
        yield {name: Side(store, run_id) for name, run_id in runs.items()}


@pytest.fixture
def healthy(sides: dict[str, Side]) -> Side:
    return sides["healthy"]


def test_a_rank_that_became_slow_is_named_with_what_it_costs(sides: dict[str, Side], healthy: Side) -> None:
    # given the same job, but rank 2 computes 10 ms longer
    #   before  |compute 50|reduce 5|
    #   after   |compute 60|reduce 5|   ranks 0, 1, 3 wait
    found = compare_runs(healthy, sides["slow_rank"])

    # then the iteration is longer by nearly as much, for that cause and rank
    assert found.iteration.is_significant
    assert found.iteration.difference_ns == pytest.approx(10 * MS, rel=0.06)
    assert [change.name for change in found.of("rank_work", only_significant=True)] == ["2"]
    assert [change.name for change in found.of("rank_delay", only_significant=True)] == ["2"]
    assert found.of("cause")[0].name == "synchronization_amplification/slow_compute"
    assert {change.name for change in found.of("phase", only_significant=True)} >= {"wait", "compute"}
    assert not found.of("collective_transfer", only_significant=True)
    assert not found.objections


def test_of_the_same_job_again_nothing_significant_is_said(sides: dict[str, Side], healthy: Side) -> None:
    found = compare_runs(healthy, sides["again"])
    assert not found.iteration.is_significant
    assert not [change for change in found.changes if change.is_significant]


def test_a_run_against_itself_changes_by_nothing(sides: dict[str, Side], healthy: Side) -> None:
    found = compare_runs(healthy, healthy)
    assert all(change.difference_ns == 0 for change in [found.iteration, *found.changes])
    assert found.slower_share == 0.5


def test_a_slower_network_is_a_change_of_transfers_and_of_no_rank(sides: dict[str, Side], healthy: Side) -> None:
    # given transfers of 15 in the place of 5 ms: 4,000 bytes, class 2,048, four ranks
    found = compare_runs(healthy, sides["slower_network"])
    transfers = found.of("collective_transfer", only_significant=True)
    assert [change.name for change in transfers] == ["all_reduce/2048/4"]
    assert transfers[0].difference_ns == pytest.approx(10 * MS)
    assert not found.of("rank_work", only_significant=True)
    assert not found.of("rank_delay", only_significant=True)


def test_causes_and_the_work_itself_add_up_to_the_iteration(sides: dict[str, Side], healthy: Side) -> None:
    found = compare_runs(healthy, sides["two_slow_ranks"])
    for side in ("before_ns", "after_ns"):
        parts = sum(getattr(change, side) for change in found.of("cause"))
        assert parts == pytest.approx(getattr(found.iteration, side))


def test_another_number_of_ranks_is_refused_by_name(sides: dict[str, Side], healthy: Side) -> None:
    with pytest.raises(UsageError, match=r"world_size \(4 against 2\)") as refusal:
        compare_runs(healthy, sides["two_ranks"])
    assert "traceforge forecast" in str(refusal.value.hint)
    forced = compare_runs(healthy, sides["two_ranks"], force=True)
    assert forced.objections[0].field == "world_size"


def test_a_run_without_iterations_is_refused_even_by_force(sides: dict[str, Side], healthy: Side) -> None:
    with pytest.raises(UsageError, match=r"iterations \(12 against 0\)") as refusal:
        compare_runs(healthy, sides["no_steps"], force=True)
    assert "traceforge doctor" in str(refusal.value.hint)


def test_other_collectives_are_a_warning_by_name(sides: dict[str, Side], healthy: Side) -> None:
    found = compare_runs(healthy, sides["gathering"])

    # then the mix, the number and the amount are told, and the comparison is made
    assert [objection.field for objection in found.objections] == ["op_mix", "collectives", "bytes"]


def test_below_three_iterations_no_change_is_called_significant(sides: dict[str, Side], healthy: Side) -> None:
    found = compare_runs(healthy, sides["short"])
    assert not found.iteration.is_significant
    assert found.iteration.low_ns is None
    assert "iterations" in [objection.field for objection in found.objections]


def test_delays_above_other_durations_are_a_warning_by_name(healthy: Side) -> None:
    # given the same job, its delays counted above the first quartile of durations
    facts = job_facts(healthy)
    assert facts.reference == healthy.store.query("SELECT reference FROM meta.analysis").item() != "first_quartile"

    found = objections(facts, replace(facts, reference="first_quartile"))

    assert [(one.field, one.is_refusal) for one in found] == [("reference", False)]


@pytest.mark.parametrize(("size_bytes", "fields"), [(1.09e6, []), (1.2e6, ["bytes"]), (None, [])])
def test_ranks_that_send_another_amount_may_be_of_another_model(
    healthy: Side, size_bytes: float | None, fields: list[str]
) -> None:
    facts = replace(job_facts(healthy), size_bytes=1e6)

    assert [one.field for one in objections(facts, replace(facts, size_bytes=size_bytes))] == fields


def test_of_three_iterations_that_take_seven_times_as_long_nothing_is_claimed(
    sides: dict[str, Side], healthy: Side
) -> None:
    # given iterations of 55 ms, and three of 55, 405 and 3,205 ms
    found = compare_runs(healthy, sides["few"])

    # then the mean is far up and not significant, which is no all-clear
    assert found.iteration.difference_ns > found.iteration.before_ns
    assert not found.iteration.is_significant
    assert not found.is_judged
    assert headline(found).startswith("Cannot be judged: ")
    assert "from 12 against 3 iterations" in headline(found)
    assert summary(found).startswith("Whether a phase, cause, collective or rank changed cannot be judged")


def test_of_the_same_job_again_with_enough_iterations_no_change_is_a_judgement(
    sides: dict[str, Side], healthy: Side
) -> None:
    found = compare_runs(healthy, sides["again"])

    assert found.is_judged
    assert headline(found).startswith("No significant change: ")


def test_waiting_and_transfer_are_compared_together_where_a_member_has_no_trace(
    sides: dict[str, Side], healthy: Side
) -> None:
    # given the job with a slow rank, once with all ranks and once without the trace of rank 3
    found = compare_runs(sides["slow_rank"], sides["without_rank_3"])

    # then no change of waiting is claimed: it is not measured
    assert {change.name for change in found.of("phase")} == {"compute", "communication"}
    assert "waiting" in {objection.field for objection in found.objections}
    assert not found.of("collective_transfer", only_significant=True)


def test_a_rank_that_gets_slower_where_the_others_get_faster_by_a_third_of_that_is_named(
    sides: dict[str, Side], healthy: Side
) -> None:
    # given three others that change by -7, -9 and -11 ms: a median of -9, a standard deviation of 2 ms
    found = compare_runs(healthy, sides["one_slower_others_faster"])

    # then the one that changes by 23 ms lies 16 of them apart; of three, 10.2 are asked for at 5 % among four ranks
    assert [change.name for change in found.of("rank_work", only_significant=True)] == ["0"]


def test_a_rank_that_drifts_as_the_others_do_is_no_change(sides: dict[str, Side], healthy: Side) -> None:
    # given ranks that all compute otherwise than before, by -1.2 to 1.2 ms, each in all its iterations
    found = compare_runs(healthy, sides["drifted"])

    # then each changed for certain, and none more than the others did
    assert [change.name for change in found.of("rank_work") if (change.p_value or 0) < 0.01]
    assert not found.of("rank_work", only_significant=True)


def test_a_rank_that_changes_as_all_do_is_not_named(sides: dict[str, Side], healthy: Side) -> None:
    # given all ranks compute 5 ms longer, rank 0 by 0.2 ms less: of an iteration of 56 ms, 0.5 % are 0.28 ms
    found = compare_runs(healthy, sides["all_slower"])

    # then the job is slower, and no rank is accused of it
    assert found.iteration.is_significant
    assert not found.of("rank_work", only_significant=True)


def test_a_change_that_is_said_to_show_is_large_enough_to_be_called_one(sides: dict[str, Side], healthy: Side) -> None:
    # given a job without scatter, again: no change below 0.5 % of its 60 ms is ever called significant
    again = compare_runs(sides["steady"], sides["steady"])

    # then none is said to show
    assert again.unseen_ns == 300_000
    # and where there is scatter, one is said to show that lies beyond what is called significant in half of all cases
    noisy = compare_runs(healthy, sides["again"])
    half_ns = (noisy.iteration.high_ns - noisy.iteration.low_ns) / 2
    assert noisy.unseen_ns > 1.3 * half_ns


def test_a_rank_that_is_slow_in_some_iterations_only_is_a_new_finding(sides: dict[str, Side], healthy: Side) -> None:
    # given rank 1 that computes 20 ms longer in every third iteration
    found = compare_runs(healthy, sides["sometimes_slow"])

    # then the mean may hide it, the finding does not
    assert [(one.turn, one.subject_kind, one.subject) for one in found.findings] == [("new", "rank", "1")]
    assert found.findings[0].before_ns is None
    assert summary(found).startswith("New: Rank 1 ")


def test_a_finding_of_both_runs_has_grown_only_if_their_intervals_do_not_meet(sides: dict[str, Side]) -> None:
    # given rank 2 that computes 10 ms longer, then the same again, then 25 ms
    again = compare_runs(sides["slow_rank"], sides["slow_rank"])
    worse = compare_runs(sides["slow_rank"], sides["slower_rank"])
    better = compare_runs(sides["slower_rank"], sides["slow_rank"])
    mended = compare_runs(sides["slow_rank"], sides["healthy"])

    assert [one.turn for found in (again, worse, better, mended) for one in found.findings] == [
        "same", "grown", "shrunk", "gone"
    ]  # fmt: skip


def test_a_rank_that_comes_late_to_broadcasts_does_not_make_them_more(sides: dict[str, Side]) -> None:
    # rank 0   |broadcast|compute·····|reduce|
    # rank 2      late |broadcast|compute·····|reduce|      the others have left, and are in one of their own
    on_time, late = sides["broadcasting"], sides["broadcasting_late"]
    parts = "SELECT COUNT(*) FROM timeline.collective WHERE op = 'broadcast' AND run_id = ?"

    assert [one.store.value(parts, [one.run_id]) for one in (on_time, late)] == [ITERATIONS, 2 * ITERATIONS]
    assert job_facts(late).calls == job_facts(on_time).calls
    assert not objections(job_facts(on_time), job_facts(late))
