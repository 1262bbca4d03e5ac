"""The section on collectives: what was matched is shown, also where no iteration counts."""

import pytest

from tests.report.tables import Job, store_of
from traceforge.report import build_report


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_matched_calls_are_shown_though_no_iteration_is_whole(is_cut_off: bool) -> None:
    # given a job of four ranks and six iterations, of which the trace holds none, or all, from end to end
    with store_of(Job(4, 6)) as store:
        store.execute("UPDATE timeline.iteration SET is_partial = ?", [is_cut_off])
        (of_all,) = store.rows("SELECT COUNT(*) FROM timeline.collective WHERE iteration IS NOT NULL")
        page = build_report(store, run_id=1, versions={}, command=None).html

    # then the section holds its calls, and says which these are
    section = page.partition('<section id="collectives"')[2].partition("</section>")[0]
    assert of_all[0] > 0
    assert "all_reduce" in section
    assert ("these are all calls that were matched" in section) == is_cut_off


def test_calls_outside_of_all_iterations_are_counted_not_denied() -> None:
    with store_of(Job(4, 6)) as store:
        store.execute("UPDATE timeline.collective SET iteration = NULL")
        page = build_report(store, run_id=1, versions={}, command=None).html

    assert "that could be matched lie outside of the iterations that count" in page.replace("\u00a0", " ")
    assert "no collective call could be matched" not in page.partition('id="collectives"')[2].partition("</section>")[0]
