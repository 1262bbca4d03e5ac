"""Who loses time without costing any is named in a verdict of nothing, with both numbers."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.findings.runs import judged_run
from traceforge.attribute.cause import causes
from traceforge.attribute.costless import said_of_costless
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.finding_cost import CostEstimate, FindingCost
from traceforge.attribute.findings.subjects import Subject
from traceforge.attribute.findings.text import summary

MS = 1_000_000


def late(rank: int, delay_ns: float) -> FindingCandidate:
    effect = Effect(delay_ns, None, 0.03, "medium", "transient", np.arange(4), delay_ns, np.full(4, delay_ns))
    return FindingCandidate(causes()["slow_copy"], effect, Subject("rank", str(rank), (rank,), f"rank {rank}"))


def costing(delay_ns: float) -> FindingCost:
    size = CostEstimate(delay_ns, None, None)
    return FindingCost(size, 0.0, 0.0, size, size, 0.0, 0.0, 0.0)


def test_the_largest_delay_that_a_replay_does_not_shorten_is_named() -> None:
    # given ranks 1 and 2, which copy for longer and hold nobody up, and rank 3, which does
    found = [late(1, 5 * MS), late(2, 28.8 * MS), late(3, 90 * MS)]
    costs = [costing(0), costing(-1 * MS), costing(80 * MS)]

    # then rank 2 is named: its bar is the longest that is no finding
    assert said_of_costless(found, costs) == (
        "Rank 2 spends longer in copies between host and device, 28.8 ms an iteration in the ledger, but the job ends"
        " no earlier when it is replayed without that."
    )


def test_nobody_is_named_where_all_that_stands_out_costs_time() -> None:
    assert said_of_costless([late(3, 90 * MS)], [costing(80 * MS)]) == ""
    assert said_of_costless([], []) == ""


def test_a_share_of_the_cost_is_none_where_the_job_ends_no_earlier_without() -> None:
    # given rank 2, to whom the ledger gives 28.8 ms and whose removal saves nothing
    cost = replace(costing(28.8 * MS), saved=CostEstimate(0.0, None, None))

    assert said_of_costless([late(2, 28.8 * MS)], [cost]).startswith("Rank 2 spends longer in copies")


@pytest.mark.parametrize(
    ("saved_ns", "said"),
    [
        (
            0,
            "7.20 ms an iteration (0.9 %) in the ledger, but the job ends no earlier when it is replayed without that.",
        ),
        (5 * MS, "It costs the job 7.20 ms an iteration (0.9 %)."),
    ],
)
def test_a_hint_does_not_say_that_it_costs_the_job_what_a_replay_does_not_save(saved_ns: float, said: str) -> None:
    # given rank 2, late by 28.8 ms in 2 of 8 iterations of 800 ms
    run = replace(judged_run(8, 4), pace_ns=800.0 * MS)
    cost = replace(costing(7.2 * MS), saved=CostEstimate(saved_ns, None, None), affected_ns=28.8 * MS)
    effect = replace(late(2, 7.2 * MS).effect, affected=np.array([1, 5]))

    told = summary(replace(late(2, 7.2 * MS), effect=effect), cost, run, repeats=False)

    assert told.startswith(
        "Rank 2 spends longer in copies between host and device, 28.8 ms in each of 2 of 8 iterations"
    )
    assert told.endswith(said)
