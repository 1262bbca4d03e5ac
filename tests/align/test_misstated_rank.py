"""Files that all state one rank, and cannot be of it, take their ranks from names or state none; others keep theirs."""

import polars as pl
import pytest

from tests.given import MS, Trace, built, rows_of, store_of
from traceforge.align.misstated_rank import without_misstated_ranks

NAMES = ["job/rank3.json", "job/rank1.json"]
RANKS = "SELECT r.rank, s.path FROM align.rank AS r JOIN meta.source AS s USING (source_id) ORDER BY r.rank"


def ranks(paths: list[str], **said: object) -> list[int | None]:
    """Ranks of files that state rank 0 of a job of one, were recorded at one time and call with four members."""
    plain = {"rank": 0, "rank_origin": "metadata", "raw_first_ns": 10, "raw_last_ns": 90, "communicates": True,
             "stated_ranks": 4, "world_size": 1}  # fmt: skip
    files = pl.DataFrame([{"path": path, **plain, **said} for path in paths], schema_overrides={"rank": pl.Int32})
    return without_misstated_ranks(files)["rank"].to_list()


def test_ranks_of_names_go_before_one_that_all_files_state() -> None:
    assert ranks(NAMES) == [3, 1]
    # and where the size of the job is stated rightly, too
    assert ranks(NAMES, world_size=4) == [3, 1]
    # and where ranks are named by folders
    assert ranks([f"job/rank{n}/host_7{n}.17.pt.trace.json" for n in (1, 0)]) == [1, 0]


def test_a_rank_that_calls_deny_and_no_name_corrects_counts_as_not_stated() -> None:
    handler = [f"job/host_7{n}.17.pt.trace.json" for n in range(4)]

    assert ranks(handler) == [None] * 4
    # but not where the job may have several rank 0 of which each was recorded alone
    assert ranks(handler, world_size=4) == [0] * 4
    assert ranks(handler[:3]) == [0] * 3


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"rank_origin": "rank_regex"}, id="as the user said"),
        pytest.param({"stated_ranks": 1}, id="that call nobody"),
        pytest.param({"communicates": False}, id="that do not communicate"),
    ],
)
def test_files_keep_the_rank_that_may_be_true(said: dict[str, object]) -> None:
    assert ranks(NAMES, **said) == [0, 0]


def test_files_of_other_times_keep_their_rank() -> None:
    # given rank 0 of two jobs, of which one had `rank8` in its name for something else
    files = pl.DataFrame([
        {"path": path, "rank": 0, "rank_origin": "metadata", "raw_first_ns": at, "raw_last_ns": at + 50,
         "communicates": True, "stated_ranks": 2, "world_size": 2}
        for path, at in (("lora_rank8.json", 0), ("lora_rank16.json", 90))
    ])  # fmt: skip

    assert without_misstated_ranks(files)["rank"].to_list() == [0, 0]


def test_what_was_put_right_is_said() -> None:
    # given two ranks of one call, which both state rank 0 of 1
    traces = [
        Trace(0, path=name, groups=[("1", "default_pg", (0, 1))]).step(0, 0, 10 * MS)
        .collective(1 * MS, 5 * MS, issue_ns=1, group="1")
        for name in ("rank0.json", "rank1.json")
    ]  # fmt: skip
    store = store_of(*traces)
    store.execute("UPDATE raw.profile SET world_size = 1")
    store.execute("UPDATE raw.collective SET group_size = 2")
    store = built(store, "align")

    assert rows_of(store, RANKS) == [(0, "rank0.json"), (1, "rank1.json")]
    issues = rows_of(store, "SELECT code, severity, count FROM meta.issue WHERE code LIKE 'rank%'")
    assert issues == [("rank_misstated", "warning", 2)]
