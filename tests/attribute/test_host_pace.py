"""Hosts that set the pace: a job that always waits for input, on all ranks, accuses nobody.

host     |fetches input 60 ± 3|issues 2|fetches input …          without a wait for the device
device                        |computes 30|waits for the last rank|transfer 1|
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import Run, told

RANKS, STEPS = 4, 14
VERDICT = "SELECT kind, headline, explanation, next_step FROM attribute.verdict"
CONFIDENCE = "SELECT confidence FROM attribute.verdict"


def job(
    fetching_ns: Callable[[int, int], int],
    computing_ns: Callable[[int, int], int] = lambda rank, step: 30 * MS,
    ranks: int = RANKS,
    *,
    is_recorded: bool = True,
    uneven: Sequence[int] = (),
) -> Run:
    """A job whose hosts run ahead of their devices.

    Args:
        fetching_ns: of a rank in a step.
        computing_ns: of a rank in a step.
        is_recorded: whether there are events of what fetches input.
        uneven: steps in which rank 0 communicates once more, so that they cannot be judged.
    """
    traces = [Trace(rank, host=f"node{rank // 2}") for rank in range(ranks)]
    host, device = [0] * ranks, [0] * ranks
    for n in range(STEPS):
        issued = [host[rank] + fetching_ns(rank, n) for rank in range(ranks)]
        starts = [max(device[rank], issued[rank] + MS) for rank in range(ranks)]
        arrivals = [start + computing_ns(rank, n) for rank, start in enumerate(starts)]
        end = max(arrivals) + MS
        for rank, trace in enumerate(traces):
            at = issued[rank]
            trace.step(n, host[rank], at + 2 * MS)
            if is_recorded:
                trace.host_work("load_batch", host[rank], at, "user_annotation")
            trace.host_work("aten::mm", at, at + 2 * MS - 10 * US)
            trace.kernel(starts[rank], arrivals[rank], launch_ns=at + MS)
            trace.collective(arrivals[rank], end, issue_ns=at + 2 * MS - 5 * US, group="0", ranks=range(ranks))
            if n in uneven and rank == 0:
                trace.collective(end, end + US, issue_ns=at + 2 * MS - 3 * US, group="1", ranks=[0, ranks])
            host[rank], device[rank] = at + 2 * MS, end
    return told(*traces)


def varied(rank: int, step: int, most_ms: float = 3) -> int:
    """60 ms, so many more or less; some rank's sum is the largest."""
    return 60 * MS + int(np.random.default_rng([rank, step]).uniform(-most_ms, most_ms) * MS)


def test_a_job_all_of_whose_hosts_fetch_input_all_the_time_accuses_nobody_and_says_what_bounds_it() -> None:
    store = job(varied)
    ((kind, headline, explanation, step),) = rows_of(store, VERDICT)

    # then not with certainty: what seems to fetch input may wait
    assert (kind, rows_of(store, CONFIDENCE)) == ("nothing_significant", [("medium",)])
    assert str(headline).startswith("All ranks alike: the usual host needs 62.0 ms (60.0 ms of it to fetch")
    assert "Nothing else is significant: no rank" in str(headline)
    assert "Input-bound: the usual host needs" in str(explanation)
    assert str(step).startswith("Fetch input faster on all ranks")


def test_steps_that_cannot_be_judged_give_hosts_no_more_time_for_those_that_can() -> None:
    # given two of them: between the completions around them are two steps, one of which has no known hosts
    ((kind, headline, _, _),) = rows_of(job(varied, uneven=(4, 9)), VERDICT)

    # then nobody is accused; rank 4, which the further calls name, was not recorded
    assert kind == "nothing_significant"
    assert str(headline).startswith("All ranks recorded alike: for 44 % of each 64.8 ms step the device is idle")
    assert "Nothing else is significant on the 4 of 5 ranks recorded" in str(headline)


def test_one_rank_that_fetches_input_for_longer_than_the_others_compute_is_named() -> None:
    store = job(lambda rank, step: varied(rank, step) - (0 if rank == 2 else 55 * MS))

    ((_, headline, _, step),) = rows_of(store, VERDICT)
    assert str(headline).startswith("Rank 2 waits for its next batch of input")
    assert "rank 2's data loader" in str(step)


def test_a_slow_device_may_cost_no_more_than_the_next_host_leaves_of_it() -> None:
    # given devices that compute 30 ms, one 80; hosts that need 62, unless what they do is a wait for these devices
    store = job(lambda _rank, _step: 60 * MS, lambda rank, _step: 80 * MS if rank == 1 else 30 * MS)

    columns = "summary, delay_ns_per_iteration, delay_low_ns, cost_note, confidence"
    ((summary, delay_ns, low_ns, note, confidence),) = rows_of(
        store, f"SELECT {columns} FROM attribute.finding WHERE finding_id = 0"
    )

    # then mending it saves 50 of 81, or 81 - 62
    assert str(summary).startswith("Rank 1 computes longer")
    assert delay_ns == pytest.approx(50 * MS, rel=0.1)
    assert low_ns == pytest.approx(19 * MS, rel=0.1)
    assert "mending it saves 19.0 ms" in str(note)
    assert confidence == "high"


def test_who_may_cost_next_to_nothing_because_hosts_are_as_slow_is_not_certain() -> None:
    # given hosts that seem to need 80 of the 81 ms themselves
    store = job(lambda _rank, _step: 78 * MS, lambda rank, _step: 80 * MS if rank == 1 else 30 * MS)

    sql = "SELECT summary, confidence FROM attribute.finding WHERE finding_id = 0"
    ((summary, confidence),) = rows_of(store, sql)
    assert str(summary).startswith("Rank 1 computes longer")
    assert confidence == "medium"


def test_hosts_that_wait_for_their_devices_under_the_name_of_their_input_set_no_pace() -> None:
    # given devices that always have work: 60 ms of it, for which hosts seem to fetch input
    ((kind, _, explanation, step),) = rows_of(job(varied, lambda _rank, _step: 75 * MS), VERDICT)

    assert kind == "nothing_significant"
    assert "Input-bound" not in str(explanation)
    assert "Fetch input" not in str(step)


def test_of_one_rank_the_device_shows_what_its_host_does() -> None:
    # given a device that stands idle while its host fetches input: that is more than what the host needs in all
    store = job(varied, ranks=1)

    ((_, headline, _, step),) = rows_of(store, VERDICT)
    assert "the usual host" not in str(headline)
    assert "data loader" in str(step)
    assert rows_of(store, "SELECT COUNT(*) FROM attribute.host_pace") == [(0,)]


def test_an_iteration_is_held_up_for_as_long_as_the_emptiest_device_lacks_work() -> None:
    # given rank 2, whose host needs about 62 ms and whose device computes for 30 and transfers for 1; the others wait
    store = job(lambda rank, _step: 60 * MS if rank == 2 else 5 * MS)

    starved = "SELECT DISTINCT starved_ns // 1000000 FROM attribute.starvation WHERE iteration BETWEEN 2 AND 10"
    assert rows_of(store, starved) == [(31,)]


def test_a_hosts_own_work_is_its_step_without_waits() -> None:
    is_work = "host_ns BETWEEN 0.999 * step_ns AND step_ns AND input_ns BETWEEN 0.96 * host_ns AND 0.97 * host_ns"
    sql = f"SELECT rank, COUNT(*), BOOL_AND({is_work}) FROM attribute.host_pace GROUP BY rank ORDER BY rank"

    assert rows_of(job(varied), sql) == [(rank, STEPS, True) for rank in range(RANKS)]


def test_what_no_host_records_anything_of_in_any_step_is_work_of_them_all() -> None:
    # given hosts of whose 60 ms, a few less or more, nothing is recorded: Python between operations
    store = job(lambda rank, step: varied(rank, step, 1.2), lambda _rank, _step: 3 * MS, is_recorded=False)

    least = "MIN(unnamed_ns) OVER (PARTITION BY iteration)"
    sums = f"SELECT iteration, rank, host_ns + {least} AS host_ns FROM attribute.host_pace"
    differing = f"SELECT COUNT(*) FROM ({sums}) AS s JOIN attribute.host_need AS n USING (iteration, rank)"
    assert rows_of(store, f"{differing} WHERE n.host_ns <> s.host_ns") == [(0,)]
    ((kind, _, explanation, _),) = rows_of(store, VERDICT)
    assert kind == "nothing_significant"
    assert "Host-bound: the usual host needs" in str(explanation)


def test_what_one_host_alone_does_without_an_event_is_no_work_of_the_others() -> None:
    store = job(lambda rank, step: varied(rank, step) - (0 if rank == 2 else 55 * MS), is_recorded=False)

    assert rows_of(store, "SELECT MAX(host_ns) < 20000000 FROM attribute.host_need WHERE rank <> 2") == [(True,)]
    ((_, headline, _, _),) = rows_of(store, VERDICT)
    assert str(headline).startswith("Rank 2")


def test_a_host_of_which_nothing_is_recorded_while_its_device_computes_may_wait_for_it() -> None:
    store = job(varied, lambda _rank, _step: 60 * MS, is_recorded=False)

    assert rows_of(store, "SELECT MEDIAN(host_ns) < 10000000 FROM attribute.host_need") == [(True,)]


def test_what_hosts_leave_of_a_cost_may_be_little_but_not_less_than_nothing() -> None:
    # given rank 1, which computes for 130 in every third step, and hosts that need as long as all steps in sum
    slow = [1, 4, 7, 10, 13]
    store = job(lambda _rank, _step: 60 * MS, lambda rank, step: 130 * MS if rank == 1 and step in slow else 30 * MS)

    costs = "SELECT subject, delay_low_ns >= 0, delay_low_ns < 5000000 FROM attribute.finding WHERE finding_id = 0"
    assert rows_of(store, costs) == [("1", True, True)]


def test_what_hosts_take_of_a_cost_is_not_given_back_for_iterations_that_stay_longer() -> None:
    # given hosts that fetch for 30 to 90 and are the bottleneck, so that some iterations are struck far harder
    store = job(lambda rank, step: varied(rank, step, 30), lambda _rank, _step: 55 * MS)

    # then the finding costs no more than judged iterations take above the reference
    excess = "SELECT AVG(excess_ns) FROM attribute.excess JOIN timeline.iteration USING (iteration) WHERE NOT is_warmup"
    ((cost_ns, excess_ns),) = rows_of(
        store, f"SELECT delay_ns_per_iteration, ({excess}) FROM attribute.finding WHERE finding_id = 0"
    )
    assert cost_ns == pytest.approx(excess_ns, rel=0.02)


def test_a_stall_inside_an_operation_beside_a_collective_is_its_hosts() -> None:
    # host of rank 1   |aten::mm 1––––––––––––––40|launches
    # device           |compute 10|collective ––––––––––––––100|       compute waits for that host
    stall_ns, step_ns = 30 * MS, 125 * MS
    traces = [Trace(rank, host=f"node{rank}") for rank in range(RANKS)]
    for n in range(STEPS):
        now = n * step_ns + n * stall_ns
        for rank, trace in enumerate(traces):
            begun = now + 10 * MS + (stall_ns if rank == 1 else 0)
            trace.step(n, now, now + step_ns + stall_ns)
            trace.kernel(now, now + 10 * MS, launch_ns=now)
            trace.collective(now + 10 * MS, now + 100 * MS, issue_ns=now + 5, group="0", ranks=range(RANKS))
            if rank == 1:
                trace.host_work("autograd::engine::evaluate_function: MulBackward0", now + MS, begun - 10)
            trace.host_work("aten::mm", begun - 9, begun + 9).kernel(begun, begun + 100 * MS, launch_ns=begun)
            trace.collective(
                begun + 100 * MS, now + step_ns + stall_ns, issue_ns=begun + 20, group="0", ranks=range(RANKS)
            )
    ((cause, subject, delay_ns),) = rows_of(
        told(*traces), "SELECT cause, subject, delay_ns_per_iteration FROM attribute.finding WHERE confidence = 'high'"
    )

    assert (cause, subject) == ("host_stall", "1")
    assert delay_ns == pytest.approx(stall_ns, rel=0.05)


def launching_job(slow: Mapping[int, float], *, is_awaited: bool = False, ranks: int = 8) -> Run:
    """Hosts that launch for longer than their devices work, and wait for nothing: who is slow holds up all.

        host     |fetches 2 ms|launches 20 times, and a transfer, 0.1 each; 4 times|fetches …
        device                |.04|  |.04|  |.04|    …   |.04|  |transfer 0.1|      …

    Args:
        slow: by how much longer hosts of ranks take to launch.
        is_awaited: whether fetching waits until the device is done, as where it copies ahead.
    """
    traces = [Trace(rank) for rank in range(ranks)]
    host, device = [0] * ranks, [0] * ranks
    for n in range(STEPS):
        begun = list(host)
        for rank, trace in enumerate(traces):
            fetched = host[rank] + 2 * MS
            host[rank] = max(fetched, device[rank]) if is_awaited else fetched
            trace.host_work("load_batch", begun[rank], host[rank], "user_annotation")
        for _ in range(4):
            arrivals, issued = [], []
            for rank, trace in enumerate(traces):
                launching_ns = int(100 * US * slow.get(rank, 1))
                for _ in range(20):
                    at = host[rank] + launching_ns
                    trace.host_work("aten::mm", host[rank], at - US)
                    start = max(device[rank], at)
                    trace.kernel(start, start + 40 * US, launch_ns=at - 20 * US)
                    host[rank], device[rank] = at, start + 40 * US
                issued.append(host[rank] + launching_ns - 20 * US)
                trace.host_work("aten::add", host[rank], host[rank] + launching_ns - US)
                host[rank] += launching_ns
                arrivals.append(max(device[rank], host[rank]))
            end = max(arrivals) + 100 * US
            for rank, trace in enumerate(traces):
                trace.collective(arrivals[rank], end, issue_ns=issued[rank], group="0", ranks=range(ranks))
                device[rank] = end
        for rank, trace in enumerate(traces):
            trace.step(n, begun[rank], host[rank])
    return told(*traces)


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize(
    ("slow", "said"),
    [
        ([5], "Rank 5 launches work more slowly"),
        ([2, 5], "Each of ranks 2 and 5 launches work more slowly"),
        ([4, 5, 6, 7], "Each of ranks 4, 5, 6 and 7 launches work more slowly"),
    ],
)
def test_hosts_that_are_slow_alike_are_named_together_though_their_devices_wait_for_one_of_them(
    slow: Sequence[int], said: str, *, is_awaited: bool
) -> None:
    # given hosts that launch for 9.24 ms where the others do for 8.4, the first of them for a tenth of a per cent more
    store = launching_job({rank: 1.1 + 0.001 * (rank == slow[0]) for rank in slow}, is_awaited=is_awaited)

    columns = "summary, cause, delay_ns_per_iteration, delay_low_ns"
    ((summary, cause, delay_ns, low_ns),) = rows_of(
        store, f"SELECT {columns} FROM attribute.finding WHERE confidence <> 'low'"
    )

    # then fetching, for which the devices of slow hosts wait too, is no cause: all hosts fetch for as long
    assert (str(summary).split(" than its device")[0], cause) == (said, "late_launch")
    # and where the others may fetch for as long, or only seem to, mending it saves so much at least
    assert (low_ns if is_awaited else delay_ns) == pytest.approx(0.84 * MS, rel=0.1)


def test_hosts_whose_fetching_waits_for_their_devices_need_it_at_most_for_as_long_as_the_last_one_fetches() -> None:
    store = launching_job({5: 1.1}, is_awaited=True)

    times = "MEDIAN(host_ns) / 1e6, MEDIAN(possible_ns) / 1e6"
    (others, slow) = rows_of(store, f"SELECT rank = 5, {times} FROM attribute.host_need GROUP BY 1 ORDER BY 1")
    # then they launch for 8.4 ms for sure; rank 5 fetches for 2 and launches for 9.24
    assert others[1:] == pytest.approx((8.4, 10.4), rel=0.02)
    assert slow[1:] == pytest.approx((11.24, 11.24), rel=0.02)
