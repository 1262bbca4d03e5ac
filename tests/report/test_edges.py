"""Rows as real traces leave them: values that are unknown, words nobody foresaw, runs that are very long."""

import re

import pytest

from traceforge.report import Report, build_report
from traceforge.report.sections.waterfall import parts_of
from traceforge.store.database import Store

from .tables import MS, Job, borrowed


def report_of(store: Store) -> Report:
    return build_report(store, run_id=1, versions={}, command=None)


def words(html: str) -> str:
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", bare).split()).replace("\N{NO-BREAK SPACE}", " ")


_UNKNOWN = {
    "meta.source": ("rank", "host"),
    "meta.issue": ("source_id", "first_at"),
    "align.clock": ("host", "offset_ns", "drift_ppb", "residual_ns", "anchors"),
    "timeline.rank_iteration": ("hidden_communication_ns",),
    "timeline.communicator": ("name", "description", "size"),
    "timeline.collective": ("op", "size_bytes", "dtype", "bus_bandwidth_bytes_per_s", "last_rank", "iteration"),
    "timeline.arrival": ("iteration",),
    "attribute.delay": ("rank",),
    "attribute.finding": ("delay_low_ns", "share", "gain_if_fixed", "first_iteration", "subject"),
    "attribute.verdict": ("explanation", "confidence", "next_step"),
    "replay.outcome": ("throughput_ratio", "throughput_ratio_low", "gain_ceiling", "cv", "p99_ns", "reason"),
    "forecast.point": ("copy_ns", "compute_ns", "cv", "waiting_ns"),
}


@pytest.mark.parametrize("table", _UNKNOWN)
def test_unknown_values_break_no_section(table: str) -> None:
    with borrowed(Job(iterations=7)) as store:
        for column in _UNKNOWN[table]:
            store.execute(f"UPDATE {table} SET {column} = NULL WHERE rowid % 3 > 0")
        report_of(store)
        for column in _UNKNOWN[table]:
            store.execute(f"UPDATE {table} SET {column} = NULL")
        report = report_of(store)
    assert 'id="appendix"' in report.html
    assert "None" not in re.sub(r"\bNone of\b", "", words(report.html))
    assert "nan" not in words(report.html).split()


def test_words_nobody_foresaw_are_shown_as_they_are() -> None:
    with borrowed(Job()) as store:
        store.execute("UPDATE attribute.delay SET mode = 'solar_flare', cause = 'sun_spot' WHERE mode <> 'unexplained'")
        store.execute("UPDATE align.clock SET status = 'guessed' WHERE rank = 1")
        store.execute("UPDATE timeline.segment SET phase = 'nap' WHERE phase = 'input'")
        store.execute("UPDATE attribute.finding SET confidence = 'absolute', mode = 'solar_flare'")
        store.execute("UPDATE replay.outcome SET verdict = 'perhaps'")
        page = words(report_of(store).html)
    for word in ("solar flare", "Sun spot, rank 2", "guessed", "perhaps"):
        assert word in page


def test_many_iterations_are_binned_and_said_so() -> None:
    with borrowed(Job(ranks=2, iterations=2_000, late_rank=1, late_from=900)) as store:
        report = report_of(store)
    page = words(report.html)
    assert "iterations share a column" in page
    assert "A cell holds 8 iterations and shows the latest of them" in page
    assert "From iteration 900 on they take" in page
    assert len(report.html.encode()) < 2_000_000


def test_batches_of_other_kinds_are_told_apart_from_iterations_that_are_cut_off() -> None:
    with borrowed(Job(iterations=7)) as store:
        store.execute("UPDATE timeline.iteration SET annotation = 'step[DECODE bs=#]'")
        store.execute("UPDATE timeline.iteration SET is_partial = TRUE WHERE iteration IN (1, 2, 6)")
        store.execute("UPDATE timeline.iteration SET annotation = 'step[EXTEND bs=# toks=#]' WHERE iteration IN (1, 2)")
        page = words(report_of(store).html)
    assert "Iterations 3 used, 1 warm-up, 2 of other kinds, 1 cut off" in page


def test_lateness_below_the_clocks_resolution_is_neither_drawn_nor_told() -> None:
    with borrowed(Job(residual_ns=20 * MS)) as store:
        html = report_of(store).html
    page = words(html)
    figure = html.partition('<figure id="figure-lateness"')[2].partition("</figure>")[0]
    assert 'class="chart"' not in figure
    assert "All ranks arrive together, within the resolution of the clocks." in page
    assert "all ranks arrive within the 60.0 ms that the clocks cannot resolve" in page
    assert "All differences are within 60.0 ms and not drawn: they are below the resolution of the clocks" in page


def test_a_credit_is_a_bar_of_its_own_and_unexplained_stays_explicit() -> None:
    with borrowed(Job()) as store:
        store.execute(
            "INSERT INTO attribute.delay (run_id, iteration, mode, cause, delay_ns)"
            " SELECT run_id, iteration, 'unexplained', 'faster_than_reference', -1000000"
            " FROM attribute.excess"
        )
        page = words(report_of(store).html)
    assert "Faster than reference" in page
    assert "Negative bars are credits" in page
    # and it is not netted against what stays unexplained among the failure modes
    assert not re.search(r"Unexplained not attributed \N{MINUS SIGN}", page)
    assert "Unexplained" in page


def test_a_run_without_unexplained_delay_still_shows_its_bar() -> None:
    with borrowed(Job()) as store:
        store.execute("DELETE FROM attribute.delay WHERE mode = 'unexplained'")
        page = words(report_of(store).html)
    assert "Nothing remains unexplained" in page


def test_many_small_culprits_are_summed_by_cause() -> None:
    with borrowed(Job(ranks=4)) as store:
        store.execute(
            "INSERT INTO attribute.delay (run_id, iteration, rank, mode, cause, delay_ns)"
            " SELECT 1, e.iteration, r.rank, 'runtime_control_plane', 'late_launch', 1000"
            " FROM attribute.excess AS e CROSS JOIN range(40) AS r(rank)"
        )
        page = words(report_of(store).html)
    assert "Late launch, 40 ranks" in page


def test_a_page_beyond_the_cap_is_thinned_further_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceforge.report.page._LARGEST_PAGE_BYTES", 1_250_000)
    with borrowed(Job(ranks=64, iterations=30, late_rank=5, pieces=60)) as store:
        report = report_of(store)
    assert len(report.html.encode()) <= 1_250_000
    assert "thinned further to keep the page small" in report.html


def test_arrivals_that_the_clocks_cannot_tell_apart_have_no_size() -> None:
    # given ranks that arrive some 8 ms apart, by clocks that resolve 3 x 20 ms
    with borrowed(Job(residual_ns=20 * MS)) as store:
        page = words(report_of(store).html)

    assert "20.0 ms of transfer; its ranks arrive within less than the 60.0 ms that the clocks resolve." in page


def test_the_iterations_of_an_episode_are_told_beside_the_others() -> None:
    # given eleven iterations of 100 ms, of which 5 and 6, an episode, take 150 ms
    with borrowed(Job(iterations=12)) as store:
        store.execute("UPDATE attribute.finding SET pattern = 'episode', first_iteration = 5, last_iteration = 6")
        store.execute(
            "UPDATE timeline.iteration SET duration_ns = CASE WHEN iteration IN (5, 6) THEN 150 ELSE 100 END * 1e6"
        )
        page = words(report_of(store).html)

    assert "Iterations 5\N{EN DASH}6 take 150 ms instead of 100 ms (+50 %)." in page
    assert "No lasting change" not in page


def test_no_line_breaks_between_a_number_and_its_unit() -> None:
    with borrowed(Job()) as store:
        store.execute("UPDATE attribute.finding SET summary = 'Rank 2 is late by 6.22 ms (25 %) of 1.5 GB.'")
        store.execute("UPDATE attribute.evidence SET statement = 'It is late by 6.22 ms (25 %).'")
        html = report_of(store).html

    bare = re.sub(r"<(script|style|pre|code|title)\b.*?</\1>", " ", html, flags=re.DOTALL)
    assert re.findall(r".{0,30}\d (?:%|(?:[nµm]?s|[kMGT]?B)\b).{0,10}", re.sub(r"<[^>]*>", "|", bare)) == []


def test_what_is_summed_over_causes_counts_no_rank_twice() -> None:
    # given 13 parts, more than are drawn: two of them small, each of the same four ranks
    alone = [_part_row("slow_compute", rank, 1, is_alone=True) for rank in range(11)]
    small = [_part_row(cause, 0, 4, is_alone=False) for cause in ("host_stall", "late_launch")]

    labels = [part.label for part in parts_of([*alone, *small])]

    assert labels.count("Runtime and control plane, smaller parts") == 1
    assert not any("8 ranks" in label for label in labels)


def _part_row(cause: str, rank: int, ranks: int, *, is_alone: bool) -> dict[str, object]:
    mode = "synchronization_amplification" if cause == "slow_compute" else "runtime_control_plane"
    return {
        "mode": mode, "shown_cause": cause, "is_unexplained": False, "is_alone": is_alone, "rank": rank,
        "subject": None, "ranks": ranks, "delay_ns": 1.0, "share": 0.01, "share_of_delay": 0.01,
    }  # fmt: skip


def test_a_failure_mode_that_costs_much_gets_no_all_clear_where_nobody_is_to_blame() -> None:
    with borrowed(Job()) as store:
        store.execute(
            "INSERT INTO attribute.delay (run_id, iteration, mode, cause, delay_ns)"
            " SELECT run_id, iteration, 'fabric_contention', 'slow_transfer', 20000000 FROM attribute.excess"
        )
        page = words(report_of(store).html)
    assert re.search(r"Fabric contention \(\d\d %\): no culprit found\.", page)
    assert not re.search(r"ontention[a-z, ]*: no problem found", page)
