"""What all ranks lose alike leads a verdict without a culprit, and stands beside a finding.

rank 0  |fetches input 40|computes 50      |exchanges 10|   twelve steps of 100 ms
rank 1  |fetches input 40|computes 50      |exchanges 10|
"""

import pytest

from tests.given import MS, Trace, rows_of
from tests.stories import Run, told

RANKS, STEPS = 4, 12
VERDICT = "SELECT kind, headline, explanation, next_step, is_common FROM attribute.verdict"


def job(
    input_ns: int,
    late_ns: int = 0,
    quick_ns: int | None = None,
    transfer_ns: int = 10 * MS,
    world_size: int | None = None,
) -> Run:
    """Steps of 100 ms, whose devices rest while input is fetched.

    Args:
        input_ns: for how long.
        late_ns: how much longer rank 1 computes, which the others wait for.
        quick_ns: for how long rank 2 fetches input, if not as long; it computes instead.
        transfer_ns: how long the exchange takes.
    """
    step_ns = 100 * MS + late_ns
    traces = []
    for rank in range(RANKS):
        trace = Trace(rank, host=f"node{rank // 2}")
        for n in range(STEPS):
            at = n * step_ns
            fetched = at + (input_ns if quick_ns is None or rank != 2 else quick_ns)
            computed = at + 100 * MS - transfer_ns + (late_ns if rank == 1 else 0)
            trace.step(n, at, at + step_ns)
            if fetched > at:
                trace.host_work("load_batch", at, fetched, "user_annotation")
            trace.kernel(fetched, computed).collective(computed, at + step_ns, group="0", ranks=range(RANKS))
        traces.append(trace)
    return told(*traces, world_size=world_size)


def test_what_all_ranks_lose_alike_leads_the_verdict_where_nobody_is_to_blame() -> None:
    ((kind, headline, explanation, step, is_common),) = rows_of(job(40 * MS), VERDICT)

    assert (kind, is_common) == ("nothing_significant", True)
    assert str(headline).startswith(
        "All ranks alike: for 40 % of each 100 ms step the device is idle while the host loads data. Nothing else is "
        "significant: no rank"
    )
    assert "Kernels and transfers that are slow alike for everyone in all iterations do not show" in str(explanation)
    assert str(step).startswith("Give the data loader more workers")


@pytest.mark.parametrize("input_ns", [0, 19 * MS])
def test_what_is_little_leads_nothing(input_ns: int) -> None:
    ((_, headline, _, _, is_common),) = rows_of(job(input_ns), VERDICT)

    assert (str(headline)[:20], is_common) == ("Nothing significant:", False)


@pytest.mark.parametrize("quick_ns", [0, 10 * MS])
def test_what_one_rank_does_not_lose_is_not_said_of_all(quick_ns: int) -> None:
    # given 40 ms on three ranks of four, 30 or 32.5 on the mean one
    ((_, headline, _, _, is_common),) = rows_of(job(40 * MS, quick_ns=quick_ns), VERDICT)

    assert "alike" not in str(headline)
    assert not is_common


def test_of_ranks_that_were_recorded_nothing_is_said_of_the_others() -> None:
    ((_, headline, _, _, _),) = rows_of(job(40 * MS, world_size=8), VERDICT)

    assert str(headline).startswith("All ranks recorded alike: for 40 %")
    assert "Nothing else is significant on the 4 of 8 ranks recorded" in str(headline)


def test_a_finding_does_not_hide_what_all_ranks_lose() -> None:
    # given a rank that computes 10 ms longer, in steps of 110 ms
    ((kind, headline, explanation, _, is_common),) = rows_of(job(40 * MS, late_ns=10 * MS), VERDICT)

    assert (kind, is_common) == ("finding", False)
    assert str(headline).startswith("Rank 1 computes longer")
    assert "Beside that, all ranks alike: for 36 % of each 110 ms step the device is idle" in str(explanation)


def test_exposed_transfers_are_no_loss_beside_a_finding_that_makes_them_late() -> None:
    # given 30 ms of 110 in which all exchange, after a rank that computes 10 ms longer
    ((kind, _, explanation, _, _),) = rows_of(job(0, late_ns=10 * MS, transfer_ns=30 * MS), VERDICT)

    assert kind == "finding"
    assert "alike" not in str(explanation)


def test_a_device_that_computes_most_of_the_time_still_loses_the_rest() -> None:
    # given 6 ms of 100 in which input is fetched
    ((_, _, explanation, step, _),) = rows_of(job(6 * MS), VERDICT)

    assert "the device computes 84 % of each 100 ms step" in str(explanation)
    assert "For 10 % of the step nothing but communication runs." in str(explanation)
    assert str(step).startswith("Overlap communication with compute")


def test_what_no_call_explains_is_told_of_a_device_that_computes_most_of_the_time() -> None:
    # given kernels whose launches were not recorded, in 90 ms of 100
    trace = Trace(0)
    for n in range(STEPS):
        trace.step(n, n * 100 * MS, (n + 1) * 100 * MS)
        trace.unlaunched_kernel(n * 100 * MS, (n * 100 + 90) * MS, "gemm")

    ((_, headline, _, step, _),) = rows_of(told(trace), VERDICT)
    assert "For 10 % of the step nothing runs, and no call of the host is recorded." in str(headline)
    assert str(step).startswith("Record the stacks of the host")
