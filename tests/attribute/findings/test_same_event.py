"""Findings of the same ranks in the same few iterations: one event, the costlier first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.attribute.findings.runs import judged_run
from tests.given import MS, Trace
from tests.stories import told
from traceforge.attribute.cause import causes
from traceforge.attribute.finding import in_order
from traceforge.attribute.findings import candidates
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.same_event import events_of, with_sure_events
from traceforge.attribute.findings.subjects import Subject

RANK, OTHER = Subject("rank", "3", (3,), "rank 3"), Subject("rank", "4", (4,), "rank 4")
STRUCK = (4, 9, 14, 19)


def candidate(
    cause: str,
    struck: Sequence[int] = STRUCK,
    subject: Subject = RANK,
    pattern: str = "transient",
    confidence: str = "medium",
) -> FindingCandidate:
    effect = Effect(6.0, None, 0.06, confidence, pattern, np.array(struck), 20.0, np.zeros(20))
    return FindingCandidate(causes()[cause], effect, subject, {cause: 6.0})


def test_two_causes_of_a_rank_in_the_same_iterations_are_one_event() -> None:
    found = [candidate("slow_compute"), candidate("input_stall", (1, 2)), candidate("host_stall")]

    assert events_of(found) == [0, 1, 0]


def test_one_of_them_may_seem_to_strike_an_iteration_more() -> None:
    assert events_of([candidate("slow_compute", (*STRUCK, 17)), candidate("host_stall")]) == [0, 0]
    assert events_of([candidate("slow_compute", range(10, 20)), candidate("host_stall", (11, 14, 17))]) == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        candidate("host_stall", (4, 9, 14, 18)),
        candidate("host_stall", subject=OTHER),
        candidate("host_stall", pattern="persistent"),
        candidate("host_stall", range(20), pattern="episode"),
        candidate("slow_transfer"),
        replace(candidate("host_stall"), is_in_turns=True),
        replace(candidate("host_stall"), companion_of="slow_compute"),
    ],
    ids=["other iterations", "another rank", "persistent", "all of them", "transfers", "in turns", "a hint"],
)
def test_anything_else_is_an_event_of_its_own(other: FindingCandidate) -> None:
    assert events_of([candidate("slow_compute"), other]) == [0, 1]


def test_findings_of_one_event_stand_together_the_costliest_first() -> None:
    # given an event of a likely 20 and a sure 10, whose weight of 30 puts both before a likely 25
    rows = [
        {"confidence": grade, "delay_ns_per_iteration": cost}
        for grade, cost in (("high", 10), ("medium", 25), ("medium", 20))
    ]

    assert in_order(rows, [0, 1, 0]) == [(2, False), (0, True), (1, False)]
    assert in_order(rows, [0, 1, 2]) == [(0, False), (1, False), (2, False)]


def grades(*found: FindingCandidate) -> list[str]:
    return [one.confidence for one in with_sure_events(found, 20)]


def test_a_hint_is_likely_where_it_comes_with_what_is_sure() -> None:
    # four of twenty iterations are the same four by chance in one of 4,845 runs
    sure, hint = candidate("slow_compute", confidence="high"), candidate("host_stall", confidence="low")

    assert grades(sure, hint) == ["high", "medium"]
    assert grades(hint, sure) == ["medium", "high"]


@pytest.mark.parametrize(
    "hint",
    [
        candidate("host_stall", (4, 9, 14, 18), confidence="low"),
        candidate("host_stall", subject=OTHER, confidence="low"),
        replace(candidate("host_stall", confidence="low"), companion_of="slow_compute"),
        candidate("host_stall", pattern="persistent", confidence="low"),
    ],
    ids=["other iterations", "another rank", "a by-product", "persistent"],
)
def test_any_other_hint_stays_one(hint: FindingCandidate) -> None:
    assert grades(candidate("slow_compute", confidence="high"), hint) == ["high", "low"]


def test_one_iteration_that_both_strike_may_be_chance() -> None:
    once = candidate("slow_compute", (7,), pattern="one_off", confidence="high")

    assert grades(once, candidate("host_stall", (7,), pattern="one_off", confidence="low")) == ["high", "low"]


def evaluating_job(struck: Sequence[int], iterations: int = 20) -> list[Trace]:
    """Three ranks of 100 ms compute; in some iterations rank 0 computes 60 ms more and its host is busy for 90.

    rank 0   |compute 100 + 60 ··|idle 90 ······|t|
    rank 1   |compute 100 |wait ················|t|
    """
    traces, now = [Trace(rank) for rank in range(3)], 0
    for n in range(iterations):
        more = (60 * MS, 90 * MS) if n in struck else (0, 0)
        end = now + 100 * MS + sum(more) + 2 * MS
        for trace in traces:
            work, idle = more if trace.rank == 0 else (0, 0)
            done = now + 100 * MS + work
            trace.step(n, now, end).kernel(now, done).host_work("aten::item", done, done + idle)
            trace.collective(done + idle, end)
        now = end
    return traces


def findings(struck: Sequence[int]) -> list[dict[str, object]]:
    with told(*evaluating_job(struck)) as store:
        return store.query("FROM attribute.finding WHERE confidence <> 'low' ORDER BY finding_id").to_dicts()


def test_what_a_rank_does_every_fifth_iteration_is_told_the_costlier_cause_first() -> None:
    # given rank 0, which evaluates in iterations 4, 9, 14 and 19
    first, second = findings(STRUCK)

    assert (first["cause"], second["cause"]) == ("host_stall", "slow_compute")
    assert first["delay_ns_per_iteration"] == pytest.approx(18 * MS, rel=0.02)
    assert second["delay_ns_per_iteration"] == pytest.approx(12 * MS, rel=0.02)
    assert " 90.0 ms in each of 4 of 20 iterations, every 5th. " in str(first["summary"])
    assert " 60.0 ms in each of 4 of 20 iterations, every 5th, at the same times. " in str(second["summary"])
    assert str(first["next_step"]).startswith("See what rank 0 does in every 5th iteration only: an evaluation")


@pytest.mark.parametrize("struck", [(4, 9, 14, 18), (4, 9, 14), (4, 5, 6, 7)], ids=["uneven", "three", "in a row"])
def test_iterations_that_may_be_spaced_by_chance_are_not_called_regular(struck: Sequence[int]) -> None:
    assert all(", every " not in f"{one['summary']} {one['next_step']}" for one in findings(struck))


def test_a_run_is_told_of_a_hint_that_comes_with_what_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a search that finds rank 3's work for certain, and its pauses in the same iterations as a hint
    found = [candidate("slow_compute", confidence="high"), candidate("host_stall", confidence="low")]
    monkeypatch.setattr(candidates, "search", lambda _run, _lost: found)
    columns = {"iteration": pl.Int64, "owner": pl.Int64, "cause": pl.String, "delay_ns": pl.Int64}

    searched = candidates.candidates(judged_run(20, 5), pl.DataFrame(schema=columns))

    assert [one.confidence for one in searched.found] == ["high", "medium"]
