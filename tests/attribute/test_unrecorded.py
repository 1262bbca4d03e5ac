"""Traces that lack: who has none may have come late after all the others, which looks like a slow network.

Rank 3 of four is late, or the network is slow; times are in us.

    rank 0..2   |compute 100|transfer 10······+50|
    rank 3      |no trace                        |
"""

import pytest

from tests.given import US, Trace, rows_of
from tests.stories import Run, told

FINDINGS = "SELECT mode, cause, subject_kind, confidence FROM attribute.finding ORDER BY finding_id"
EVERYONE = [0, 1, 2, 3]


def job(recorded: list[int], slow: range, *, pairs: bool = False) -> Run:
    """Twelve iterations of one all-reduce that takes 50 longer in some; in pairs, those of the first pair only."""
    traces = [Trace(rank) for rank in recorded]
    now = 0
    for i in range(12):
        ends = [now + (160 if i in slow and (not pairs or trace.rank in (0, 1)) else 110) * US for trace in traces]
        for trace, end in zip(traces, ends, strict=True):
            members = EVERYONE if not pairs else [0, 1] if trace.rank in (0, 1) else [2, 3]
            trace.step(i, now, max(ends)).kernel(now, now + 100 * US)
            trace.collective(now + 100 * US, end, group=f"group {members[0]}", ranks=members)
        now = max(ends)
    return told(*traces)


def test_a_slow_transfer_is_the_networks_where_all_ranks_are_recorded() -> None:
    assert rows_of(job(EVERYONE, range(4, 9)), FINDINGS) == [("fabric_contention", "slow_transfer", "job", "high")]


def test_where_a_rank_is_not_recorded_it_may_be_late_instead() -> None:
    store = job([0, 1, 2], range(4, 9))

    assert rows_of(store, FINDINGS) == [("unexplained", "unrecorded_rank", "job", "medium")]
    ((headline, step),) = rows_of(store, "SELECT headline, next_step FROM attribute.verdict")
    assert str(headline).startswith("Communication takes longer although all recorded ranks have arrived: a rank that")
    assert str(step).startswith("Record all ranks")


def test_the_pair_that_lacks_a_rank_is_no_slow_path() -> None:
    # given two pairs, of which the first is slow all the time and lacks rank 1
    found = rows_of(job([0, 2, 3], range(12), pairs=True), FINDINGS)

    assert "gpu_locality" not in {mode for mode, *_ in found}


@pytest.mark.parametrize("slow", [range(0), range(12)], ids=["never", "always"])
def test_what_does_not_change_stands_out_of_nothing(slow: range) -> None:
    assert rows_of(job([0, 1, 2], slow), FINDINGS) == []


def test_a_hint_on_the_jobs_only_group_is_told_once() -> None:
    # given one slow all-reduce of twelve, too rare for a finding; all are of one group
    found = rows_of(job([0, 1, 2], range(4, 5)), FINDINGS)

    assert found == [("unexplained", "unrecorded_rank", "communicator", "low")]
