"""What the page says of other runs of the same files: whether they agree, and what they say where they do not."""

from collections.abc import Iterator

import pytest

from traceforge.redaction import Redaction
from traceforge.report import Report, build_report
from traceforge.store.database import Store

from .conftest import HOSTILE
from .tables import MS, Job, borrowed

NOTHING = "No rank and no cause stands out."


@pytest.fixture
def store() -> Iterator[Store]:
    """A run with a late rank 2, to which windows are added."""
    with borrowed(Job()) as own:
        yield own


def window(store: Store, number: int, subject: str | None = "2", delay_ms: int = 8, name: str = "job42") -> None:
    """A further window: as the first one, but for who costs how much; nobody does where there is no subject."""
    store.execute("INSERT INTO meta.run VALUES (?, ?, 4)", [number, f"{name} [window {number}]"])
    for table in ("verdict", *(["finding"] if subject else [])):
        copied = f"SELECT * REPLACE ({number} AS run_id) FROM attribute.{table} WHERE run_id = 1"
        store.execute(f"INSERT INTO attribute.{table} BY NAME {copied}")
    if subject is None:
        store.execute(
            "UPDATE attribute.verdict SET kind = 'nothing_significant', headline = ? WHERE run_id = ?",
            [NOTHING, number],
        )
        return
    headline = f"Rank {subject} computes longer."
    store.execute("UPDATE attribute.verdict SET headline = ? WHERE run_id = ?", [headline, number])
    store.execute(
        "UPDATE attribute.finding SET subject = ?, delay_ns_per_iteration = ? WHERE run_id = ? AND finding_id = 0",
        [subject, delay_ms * MS, number],
    )


def report_of(store: Store, run_id: int = 1) -> Report:
    return build_report(store, run_id=run_id, versions={}, command=None)


def said(report: Report) -> str:
    """What the terminal says of other runs."""
    lines = report.verdict_lines
    starts = [place for place, line in enumerate(lines) if line.startswith("  runs:")]
    if not starts:
        return ""
    later = lines[starts[0] + 1 :]
    more = next((place for place, line in enumerate(later) if not line.startswith("       ")), len(later))
    return " ".join(line.strip() for line in lines[starts[0] : starts[0] + 1 + more]).removeprefix("runs:").strip()


def test_a_run_alone_says_nothing_of_others(store: Store) -> None:
    report = report_of(store)

    assert said(report) == ""
    assert report.summary["other_runs"] == []


def test_windows_that_name_the_same_rank_and_cause_agree(store: Store) -> None:
    window(store, 2, delay_ms=7)
    window(store, 3, delay_ms=9)

    report = report_of(store)

    assert said(report) == "the 2 other windows say the same (7.00 ms and 9.00 ms)"
    assert "**The 2 other windows say the same**" in report.markdown
    assert "- Window 2: Rank 2 computes longer. 7.00 ms" in report.markdown


def test_one_other_window_agrees_in_the_singular(store: Store) -> None:
    window(store, 2, delay_ms=7)

    assert said(report_of(store)) == "the other window says the same (7.00 ms)"


def test_a_window_with_another_answer_comes_first_with_the_command_that_shows_it(store: Store) -> None:
    # given rank 2 in two windows, and rank 3, who costs more, in the last
    window(store, 2, delay_ms=7)
    window(store, 4, subject="3", delay_ms=60)

    report = report_of(store)

    assert said(report) == (
        "1 of 2 other windows says the same (7.00 ms); window 4 says: Rank 3 computes longer."
        " See it with --run 'job42 [window 4]'"
    )
    assert report.markdown.index("Window 4: Rank 3") < report.markdown.index("Window 2: Rank 2")
    assert "Other windows of these files" in report.markdown


def test_a_window_without_a_finding_is_another_answer(store: Store) -> None:
    window(store, 2, subject=None)

    assert said(report_of(store)) == f"window 2 says: {NOTHING} See it with --run 'job42 [window 2]'"


def test_a_healthy_window_tells_of_a_later_one_that_is_not(store: Store) -> None:
    # given the window without a finding as the one that is shown
    window(store, 2, subject=None)

    report = report_of(store, run_id=2)

    assert said(report).startswith("the first run says: Rank 2 computes longer")
    assert [entry["agrees"] for entry in report.summary["other_runs"]] == [False]  # type: ignore[attr-defined]


def iterations_of(store: Store, number: int, longer: float) -> None:
    """Iterations of a further window, so many times as long as those of the first."""
    store.execute(
        "INSERT INTO timeline.iteration BY NAME SELECT * REPLACE (? AS run_id,"
        " CAST(duration_ns * CAST(? AS DOUBLE) AS BIGINT) AS duration_ns) FROM timeline.iteration WHERE run_id = 1",
        [number, longer],
    )


def test_a_window_that_says_the_same_at_another_pace_is_told_with_both(store: Store) -> None:
    # given slow links throughout window 3: nothing stands out in it, but iterations of 113 ms take 1.7 times that
    window(store, 2, subject=None)
    window(store, 3, subject=None)
    iterations_of(store, 2, 1.0)
    iterations_of(store, 3, 1.7)

    report = report_of(store, run_id=2)

    assert "; the median iteration takes 192 ms in window 3, 113 ms here: `compare` shows" in said(report)
    assert f"Window 3: {NOTHING} The median iteration takes 192 ms, and 113 ms here." in report.markdown


def test_windows_whose_iterations_hardly_differ_are_not_told_apart(store: Store) -> None:
    # given 9 %, which is less than what counts as a drift (10 %)
    window(store, 2, delay_ms=7)
    iterations_of(store, 2, 1.09)

    assert said(report_of(store)) == "the other window says the same (7.00 ms)"


def test_a_window_of_which_nothing_can_be_known_neither_agrees_nor_differs(store: Store) -> None:
    window(store, 2, subject=None)
    store.execute("UPDATE attribute.verdict SET kind = 'cannot_be_known' WHERE run_id = 2")

    report = report_of(store)

    assert said(report) == ""
    assert "Window 2: " in report.markdown
    assert [entry["agrees"] for entry in report.summary["other_runs"]] == [None]  # type: ignore[attr-defined]


def test_beside_windows_with_an_answer_those_without_are_counted(store: Store) -> None:
    window(store, 2, delay_ms=7)
    window(store, 3, subject=None)
    store.execute("UPDATE attribute.verdict SET kind = 'cannot_be_known' WHERE run_id = 3")

    assert said(report_of(store)) == "1 of 2 other windows says the same (7.00 ms); of 1 it cannot be known"


def test_the_same_rank_for_another_cause_is_another_answer(store: Store) -> None:
    window(store, 2)
    store.execute("UPDATE attribute.finding SET cause = 'host_stall' WHERE run_id = 2 AND finding_id = 0")

    assert said(report_of(store)).startswith("window 2 says: Rank 2 computes longer.")


def test_runs_of_other_files_are_not_told(store: Store) -> None:
    window(store, 2, subject="3", name="job4")

    assert said(report_of(store)) == ""


def test_of_many_windows_some_are_shown_and_all_are_counted(store: Store) -> None:
    for number in range(2, 11):
        window(store, number, subject="3", delay_ms=number)

    report = report_of(store)

    assert said(report).startswith("window 10 says: Rank 3 computes longer.")
    assert said(report).endswith("; 8 more of another answer")
    assert "Other windows of these files, 3 not shown" in report.markdown


def test_a_hostile_name_of_a_run_is_text(store: Store) -> None:
    window(store, 2, subject="3", name=f"job{HOSTILE}")
    store.execute("UPDATE meta.run SET run_name = ? WHERE run_id = 1", [f"job{HOSTILE}"])

    assert "<script>window.PWNED" not in report_of(store).html


def test_redacted_runs_go_by_their_replacement(store: Store) -> None:
    window(store, 2, subject="3")

    report = build_report(store, run_id=1, versions={}, command=None, redaction=Redaction.of(store))

    assert said(report).startswith("job-2 says: Rank 3 computes longer. See it with --run job-2")
