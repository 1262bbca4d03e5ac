"""Racks as a user states them: by a file of hosts, by a pattern of their names; nothing is guessed."""

from pathlib import Path

import pytest

from tests.given import MS, Trace, built, rows_of, store_of
from traceforge.align.stated_racks import StatedRacks, parsed_racks, stated_racks
from traceforge.errors import InputUnusableError, UsageError
from traceforge.replay.assumptions import are_assumed, assume
from traceforge.store.database import Store

RACKS = "SELECT host, rack FROM align.rack ORDER BY host"
WITHOUT = "SELECT severity, count, first_at FROM meta.issue WHERE code = 'host_without_rack'"


def of_hosts(*hosts: str) -> Store:
    """A run of one rank a host, before its stages are built."""
    return store_of(*(Trace(rank, host=host).step(0, 0, MS).kernel(0, MS) for rank, host in enumerate(hosts)))


@pytest.mark.parametrize(
    "text",
    [
        "host,rack\nnode0,r1\nnode1, r2\n",
        "# by hand\n\nnode0,r1\nnode1,r2",
        "\ufeffnode0,r1\r\nnode1,r2\r\nnode1,r2\r\n",
        '{"node0": "r1", "node1": "r2"}',
    ],
    ids=["with a header", "with remarks", "of a spreadsheet", "json"],
)
def test_a_file_names_hosts_and_their_racks(tmp_path: Path, text: str) -> None:
    (tmp_path / "racks").write_text(text, encoding="utf-8", newline="")

    assert parsed_racks(tmp_path / "racks", None) == StatedRacks({"node0": "r1", "node1": "r2"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node0 r1", "'node0 r1' is no host and its rack"),
        ("node0,r1,top", "is no host and its rack"),
        ("node0,", "is no host and its rack"),
        ("node0,r1\nnode0,r2", "node0 is in two racks"),
        ("", "it names no host"),
        ('{"node0": 1}', "a rack in it is no text"),
        ('{"node0"', "it is no JSON"),
    ],
)
def test_a_file_that_does_not_say_which_rack_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "racks").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=message):
        parsed_racks(tmp_path / "racks", None)


def test_what_is_no_file_and_what_is_no_pattern_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError, match="cannot be read"):
        parsed_racks(tmp_path, None)
    for pattern in ("r(", "r1", "(r)(1)"):
        with pytest.raises(UsageError, match="--rack-pattern"):
            parsed_racks(None, pattern)
    assert parsed_racks(None, None) is None


def test_the_file_goes_before_the_pattern_and_hosts_need_no_domain() -> None:
    racks = StatedRacks({"node7": "spare"}, r"^(?:r(\d+)n|node7)")

    assert [racks.of(host) for host in ("r12n3", "node7.cluster.example", "login1")] == ["12", "spare", None]


def test_each_host_of_the_run_has_the_rack_that_is_stated() -> None:
    store = of_hosts("r1n0", "r1n1", "r2n0", "spare")
    assume(store, racks=StatedRacks({}, r"^r(\d+)n"))

    built(store, "align.rack")

    assert rows_of(store, RACKS) == [("r1n0", "1"), ("r1n1", "1"), ("r2n0", "2")]
    assert rows_of(store, WITHOUT) == [("info", 1, "spare")]


def test_a_pattern_that_fits_no_host_is_a_warning() -> None:
    store = of_hosts("node0", "node1")
    assume(store, racks=StatedRacks({}, "^rack(.)"))

    built(store, "align.rack")

    assert rows_of(store, WITHOUT) == [("warning", 2, "node0")]


def test_where_nothing_is_stated_no_rack_is_guessed() -> None:
    store = built(of_hosts("r1n0", "r2n0"), "align.rack")

    assert rows_of(store, RACKS) == []
    assert rows_of(store, WITHOUT) == []


def test_other_racks_have_the_stages_built_anew_and_the_same_keep_them() -> None:
    store = of_hosts("node0")
    first, second = StatedRacks({"node0": "r1"}, "(x)"), StatedRacks({"node0": "r2"})
    for racks, builds in ((first, 0), (first, 1), (second, 0)):
        store.execute("DELETE FROM meta.build")
        store.execute("INSERT INTO meta.build VALUES ('1.0', 'hash')")
        assume(store, racks=racks)

        assert (store.value("SELECT COUNT(*) FROM meta.build"), stated_racks(store)) == (builds, racks)
        assert are_assumed(store, None, None, None)
