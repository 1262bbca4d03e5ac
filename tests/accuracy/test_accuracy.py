"""A part of the grid, with every change: right mode, right culprit, nothing false. `python -m tests.accuracy`: all."""

import pytest

from tests.accuracy.case import Case
from tests.accuracy.cases import disturbed
from tests.accuracy.grid import quick
from tests.accuracy.judging import Mark, judge_together
from tests.accuracy.outcomes import is_right
from tests.accuracy.table import of_all_runs, scores, shortfalls, table

CASES = quick()
TOGETHER = 6
_marks: dict[str, Mark] = {}


def marked(case: Case) -> Mark:
    """The mark of a case; with it its neighbours of the quick part are judged, as tests run in their order."""
    name = case.scenario.name
    if name not in _marks:
        place = next((place for place, one in enumerate(CASES) if one.scenario.name == name), None)
        first = None if place is None else place - place % TOGETHER
        together = [case] if first is None else CASES[first : first + TOGETHER]
        _marks.update({one.scenario.name: mark for one, mark in zip(together, judge_together(together), strict=True)})
    return _marks[name]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario.name)
def test_what_is_wrong_is_named_and_nothing_else(case: Case) -> None:
    mark = marked(case)

    assert is_right(mark) or not mark.asked, mark.findings
    assert not mark.false_findings


def test_this_part_reaches_the_thresholds() -> None:
    assert shortfalls(scores([marked(case) for case in CASES])) == []


def test_every_simple_reading_is_beaten() -> None:
    ours, *readings = of_all_runs([marked(case) for case in CASES]).values()

    assert all(reading < ours for reading in readings)


@pytest.mark.parametrize("name", ["launch_stall-lasting-1", "input_stall-rough-1"])
def test_where_waiting_slows_other_things_down_the_interval_holds_that_cost_too(name: str) -> None:
    # given transfers that grow by a fifth of the mean wait, which the first run does not show, and slowed kernels
    (case,) = (case for case in disturbed(range(1, 2)) if case.scenario.name == name)

    mark = marked(case)

    assert mark.covered == [True], mark.findings
    assert mark.errors == [pytest.approx(0, abs=0.06)]


def test_the_table_tells_all_groups() -> None:
    # given a healthy run and a faulty one
    marks = [marked(case) for case in (CASES[0], CASES[-1])]

    found = scores(marks)
    assert {group: score.runs for group, score in found.items()} == {case.case.group: 1 for case in marks}
    for group in found:
        assert f"| {group} | 1 |" in table(marks)
