"""Names whose numbers cannot be ranks, as calls name their members, are not taken for ranks."""

import polars as pl

from tests.given import MS, Trace, built, rows_of, store_of
from traceforge.align.misnamed_rank import without_denied_names

FOUR = "[0, 1, 2, 3]"


def ranks(named: list[int], *lists: list[str] | None, **said: object) -> list[int | None]:
    """Ranks of files called after these numbers, each of a device of its own, which call groups of these members."""
    plain = {"rank_origin": "file_name", "host": "a", "raw_first_ns": 10, "raw_last_ns": 90, "communicates": True,
             "stated_ranks": 4, "process": None}  # fmt: skip
    files = [
        {"source_id": n, "path": f"worker_{rank}.json", "rank": rank, "first_device": n, "last_device": n,
         "member_lists": lists[n % len(lists)], **plain, **said}
        for n, rank in enumerate(named)
    ]  # fmt: skip
    kinds = {"rank": pl.Int32, "process": pl.Int64, "member_lists": pl.List(pl.String)}
    return without_denied_names(pl.DataFrame(files, schema_overrides=kinds))["rank"].to_list()


def test_names_that_count_from_1_are_one_more_than_ranks() -> None:
    assert ranks([1, 2, 3, 4], [FOUR]) == [0, 1, 2, 3]
    # and where each calls in a group of its own beside
    assert ranks([1, 2, 3, 4], [FOUR, "[0, 1]"], [FOUR, "[0, 1]"], [FOUR, "[2, 3]"], [FOUR, "[2, 3]"]) == [0, 1, 2, 3]


def test_names_that_hold_processes_are_no_ranks_where_something_else_tells_them() -> None:
    assert ranks([4000, 4017, 4034, 4051], [FOUR]) == [None] * 4
    # but where nothing does, they still tell files apart
    assert ranks([4000, 4017, 4034, 4051], [FOUR], first_device=0, last_device=0) == [4000, 4017, 4034, 4051]


def test_names_that_no_call_denies_are_ranks() -> None:
    assert ranks([4, 5], ["[4, 5]"]) == [4, 5]
    assert ranks([1, 2, 3], [FOUR]) == [1, 2, 3]
    # and where members are not written, or not in full
    assert ranks([4, 5], None) == [4, 5]
    assert ranks([4, 5], ["[0, 1, ...]"]) == [4, 5]
    # and where the file or the user says so
    assert ranks([4, 5], ["[0, 1]"], rank_origin="metadata") == [4, 5]


def test_what_names_get_wrong_is_said() -> None:
    traces = [
        Trace(number, path=f"rank{number}.json", groups=[("1", "default_pg", (0, 1))]).step(0, 0, 10 * MS)
        .collective(1 * MS, 5 * MS, issue_ns=1, group="1", ranks=[0, 1])
        for number in (1, 2)
    ]  # fmt: skip
    store = store_of(*traces)
    store.execute("UPDATE meta.source SET rank_origin = 'file_name'")

    built(store, "align")

    assert rows_of(store, "SELECT rank FROM align.rank ORDER BY rank") == [(0,), (1,)]
    assert rows_of(store, "SELECT count FROM meta.issue WHERE code = 'rank_misnamed'") == [(2,)]
