"""Slow transfers that come with a rank's delay: whose are they? Iterations take 100."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from traceforge.attribute.cause import causes
from traceforge.attribute.findings.coinciding import with_coinciding
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.subjects import Subject

RANK, JOB = Subject("rank", "3", (3,), "rank 3"), Subject("job", "all", (), "the job")


def candidate(cause: str, subject: Subject, affected: Sequence[int], confidence: str = "medium") -> FindingCandidate:
    effect = Effect(6.0, None, 0.06, confidence, "transient", np.array(affected), 20.0, np.zeros(20))
    return FindingCandidate(causes()[cause], effect, subject, {cause: 6.0})


def test_transfers_that_are_slow_only_when_a_rank_is_late_may_be_its_by_product() -> None:
    # given a stall in every third of 20 iterations, and slow transfers in the same ones
    stall = candidate("input_stall", RANK, range(1, 20, 3))
    slow = candidate("slow_transfer", JOB, range(1, 20, 3))

    late, transfers = with_coinciding([stall, slow], 20)
    assert (transfers.companion_of, transfers.confidence) == ("input_stall", "low")
    assert (late.companion_of, late.beside_ns) == (None, 6.0)


@pytest.mark.parametrize(
    ("struck", "slow"),
    [
        # A rank that is always late coincides with anything.
        (range(20), range(5, 11)),
        # Half of the slow iterations have no late rank.
        (range(5, 11), range(8, 14)),
        # Two of two coincide by chance in one of 9 runs.
        (range(7), [2, 3]),
    ],
)
def test_transfers_that_are_slow_at_other_times_or_coincide_by_chance_are_the_networks(
    struck: Sequence[int], slow: Sequence[int]
) -> None:
    found = [candidate("input_stall", RANK, struck), candidate("slow_transfer", JOB, slow)]

    assert with_coinciding(found, 20) == found


@pytest.mark.parametrize(("delay_ns", "is_by_product"), [(12.0, True), (12.1, False)])
def test_transfers_grow_by_no_more_than_twice_what_others_wait(delay_ns: float, is_by_product: bool) -> None:
    # given a rank that is late by 6 of 100, and slow transfers in the same iterations
    stall, slow = candidate("input_stall", RANK, range(1, 20, 3)), candidate("slow_transfer", JOB, range(1, 20, 3))
    slow = replace(slow, effect=replace(slow.effect, delay_ns_per_iteration=delay_ns))

    _, transfers = with_coinciding([stall, slow], 20)
    assert (transfers.companion_of is not None) == is_by_product


def test_a_delay_that_does_not_count_explains_nothing_nor_does_one_that_ranks_take_in_turns() -> None:
    slow = candidate("slow_transfer", JOB, range(1, 20, 3))
    late = candidate("slow_compute", RANK, range(1, 20, 3))

    for other in (replace(late, is_in_turns=True), candidate("slow_compute", RANK, range(1, 20, 3), "low")):
        assert with_coinciding([other, slow], 20) == [other, slow]
