"""A clock's course is read alike by Python, by SQL and by any client of the database."""

from pathlib import Path

import duckdb
import numpy as np

from tests.given import Trace, built, rows_of, store_of
from traceforge.align.clock_course import ClockCourse, course_through, read_course
from traceforge.store.database import Store
from traceforge.store.stage import build_stage

SECOND = 1_000_000_000


def test_pieces_meet_where_one_ends_and_the_next_begins() -> None:
    knots, offsets = np.array([0, 7, 1_000_003, 5_000_000_000]), np.array([5, -3, 999, -123_456])

    course = course_through(knots, offsets)

    before = course.offset_ns[:-1] + np.sign(course.drift_ppb[:-1]) * (
        np.abs(np.diff(course.raw_ns) * course.drift_ppb[:-1]) // SECOND
    )
    assert course.at(course.raw_ns).tolist() == course.offset_ns.tolist()
    assert before.tolist() == course.offset_ns[1:].tolist()


def test_a_course_of_one_piece_holds_before_it_too() -> None:
    course = ClockCourse(np.array([1_000]), np.array([50]), np.array([1_000_000]))

    assert course.at(np.array([-1_000_000, 1_000, 1_001_000])).tolist() == [50 - 1_001, 50, 50 + 1_000]


def test_sql_and_python_read_a_course_alike_to_the_ns() -> None:
    # given pieces that run ahead, behind and not at all, read before, between and after their knots
    store = built(
        store_of(Trace(0).step(1, 0, 90).collective(40, 90), Trace(1).step(1, 0, 90).collective(70, 90)), "align"
    )
    store.execute("DELETE FROM align.clock_piece")
    knots = [
        (0, 1, -(2**63) + 1, 1_000, 5, 333),
        (0, 1, 9_000_000, 9_000_000, -7, -1_777),
        (0, 1, 10**15, 10**15, 3, 0),
    ]
    for knot in knots:
        store.execute("INSERT INTO align.clock_piece VALUES (?, ?, ?, ?, ?, ?)", knot)
    readings = np.array([-(10**9), 0, 999, 1_000, 5_004_003, 8_999_999, 9_000_000, 10**14, 10**15 - 1, 10**15 + 5])

    # when both read them
    course = read_course(store, 0, 1)
    ahead = """
    SELECT align.ahead_ns(r.raw_ns, p) FROM UNNEST(?) AS r(raw_ns)
    ASOF JOIN align.clock_piece AS p ON p.rank = 1 AND r.raw_ns >= p.raw_from_ns ORDER BY r.raw_ns
    """

    # then they agree
    assert [row[0] for row in rows_of(store, ahead, [readings.tolist()])] == course.at(readings).tolist()


def test_any_client_reads_the_macro_from_a_finished_file(tmp_path: Path) -> None:
    # given a database with a view over the macro
    with Store(tmp_path / "job.duckdb", is_kept=True) as store:
        for stage in ("align", "timeline"):
            build_stage(store, f"traceforge.{stage}")
        store.execute("INSERT INTO align.clock_piece VALUES (0, 0, 0, 0, 40, 0)")
        store.execute(
            "CREATE VIEW timeline.zero AS SELECT 100 - align.ahead_ns(100, p) AS zero_ns FROM align.clock_piece AS p"
        )

    # when a plain client opens it, or attaches it beside others, for reading
    with duckdb.connect(tmp_path / "job.duckdb", read_only=True) as alone:
        assert alone.execute("SELECT zero_ns FROM timeline.zero").fetchall() == [(60,)]
        assert alone.execute("SELECT comment FROM duckdb_functions() WHERE function_name = 'ahead_ns'").fetchall()[0][0]
    with duckdb.connect() as beside:
        beside.execute(f"ATTACH '{tmp_path / 'job.duckdb'}' AS job (READ_ONLY)")
        assert beside.execute("SELECT zero_ns FROM job.timeline.zero").fetchall() == [(60,)]
