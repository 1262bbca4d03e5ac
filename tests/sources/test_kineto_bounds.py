"""Names and threads beyond what any profiler writes take bounded memory, and what is left of them is said."""

import json

import pytest

from tests.sources.reading import Read
from traceforge.sources.kineto import document, kinds, tracks
from traceforge.sources.kineto.kinds import OTHER_NAMES
from traceforge.sources.kineto.tracks import LONGEST_TEXT

PLAIN = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}


def test_a_name_that_is_too_long_is_cut_and_counted(read_kineto: Read) -> None:
    # given two names that differ only behind the cut, the first of them twice, and one that is just short enough
    first, second, short = "a" * 20_000 + "b", "a" * 20_000 + "c", "a" * LONGEST_TEXT
    events = [{**PLAIN, "name": name} for name in (first, second, first, short)]

    reading = read_kineto(events)

    assert [event["name"] for event in reading.events] == [short] * 4
    assert len(reading.rows("event_kind")) == 3
    assert reading.issue("kineto_long_text").count == 2
    assert reading.summary.stored_count == 4


@pytest.mark.parametrize("unit_bytes", [300, 64 * 1024 * 1024])
def test_an_event_of_megabytes_is_read_like_any_other(read_kineto: Read, unit_bytes: int) -> None:
    events = [PLAIN, {**PLAIN, "name": "a" * 6_000_000, "dur": 7}, PLAIN]

    reading = read_kineto(events, unit_bytes=unit_bytes)

    assert [event["duration_ns"] for event in reading.events] == [1000, 7000, 1000]
    assert reading.codes == ["kineto_long_text"]


def test_threads_beyond_the_bound_are_left_out_of_events_and_counted(
    read_kineto: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given three threads where two may be kept, and names of them
    monkeypatch.setattr(tracks, "MOST_TRACKS", 2)
    named = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": "t" * 20_000 if tid == 2 else "main"}}
        for tid in (1, 2, 3)
    ]

    reading = read_kineto([*({**PLAIN, "tid": tid} for tid in (1, 2, 3, 1)), *named])

    assert [event["track_id"] for event in reading.events[:4]] == [0, 1, None, 0]
    assert [(row["thread"], row["thread_name"]) for row in reading.rows("track")] == [
        ("1", "main"),
        ("2", "t" * LONGEST_TEXT),
    ]
    # the event and the name of the third, which are of two kinds
    assert reading.issue("kineto_too_many_tracks").count == 2


def test_events_of_threads_that_are_left_out_share_one_kind(read_kineto: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    # given names of a thread that is kept and of a hundred that are not, each a kind of its own as written
    monkeypatch.setattr(tracks, "MOST_TRACKS", 1)
    named = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": str(tid)}} for tid in range(101)]

    late = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 7, "args": {"name": str(pid)}} for pid in (1, 2)]

    reading = read_kineto([*named, *late])

    assert [(row["name"], row["track_id"]) for row in reading.rows("event_kind")] == [
        ("thread_name", 0),
        ("thread_name", None),
        ("process_name", None),
    ]
    # events that share a kind no longer say which thread they are of, so they name none
    assert [(row["thread_name"], row["process_name"]) for row in reading.rows("track")] == [("0", None)]
    assert reading.issue("kineto_too_many_tracks").count == 102
    assert reading.summary.stored_count == 103


@pytest.mark.parametrize(("names", "characters"), [(2, 10**9), (10**9, 1)])
def test_names_beyond_the_bound_become_one_and_are_counted(
    read_kineto: Read, monkeypatch: pytest.MonkeyPatch, names: int, characters: int
) -> None:
    # given six names of one character each where two may be kept, or more than one character
    monkeypatch.setattr(kinds, "MOST_NAMES", names)
    monkeypatch.setattr(kinds, "MOST_NAME_CHARACTERS", characters)

    reading = read_kineto([{**PLAIN, "name": name} for name in "abcdefab"])

    assert reading.names == ["a", "b", *[OTHER_NAMES] * 4, "a", "b"]
    assert len(reading.rows("event_kind")) == 3
    assert reading.issue("kineto_too_many_names").count == 4
    assert reading.summary.stored_count == 8


@pytest.mark.parametrize(("most", "left_out"), [(2, 1), (3, 0)])
def test_process_groups_beyond_the_bound_are_left_out_and_counted(
    read_kineto: Read, monkeypatch: pytest.MonkeyPatch, most: int, left_out: int
) -> None:
    # given three process groups
    monkeypatch.setattr(document, "MOST_GROUPS", most)
    groups = [{"pg_name": name, "pg_size": 8, "ranks": [0, 1]} for name in "abc"]

    reading = read_kineto({"distributedInfo": {"rank": 0, "pg_config": groups}, "traceEvents": [PLAIN]})

    assert [row["process_group_name"] for row in reading.rows("process_group")] == list("abc")[:most]
    assert sum(one.count for one in reading.summary.issues if one.code == "kineto_too_many_process_groups") == left_out
    assert reading.summary.stored_count == 1


@pytest.mark.parametrize("place", ["before", "behind"])
def test_of_metadata_beyond_the_bound_the_first_process_groups_are_kept(
    read_kineto: Read, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    # given ten process groups of 40 bytes each and a comma, another member of 400, and room for 200 bytes of all
    monkeypatch.setattr(document, "MOST_METADATA_BYTES", 200)
    groups = [{"pg_name": str(number), "pg_size": 8, "a": "-" * 6} for number in range(10)]
    beside = {"distributedInfo": {"rank": 3, "pg_config": groups, "world_size": 8}, "notes": "n" * 398, "trace_id": "t"}
    events = {"traceEvents": [PLAIN]}

    trace = beside | events if place == "before" else events | beside
    reading = read_kineto(json.dumps(trace, separators=(",", ":")))

    assert [row["process_group_name"] for row in reading.rows("process_group")] == ["0", "1", "2"]
    assert (reading.summary.rank, reading.summary.world_size, reading.summary.stored_count) == (3, 8, 1)
    (profile,) = reading.rows("profile")
    assert profile["trace_id"] == "t"
    assert "notes" not in profile["metadata"]
    assert reading.issue("kineto_large_metadata").count == 7 * (40 + 1) + 400


def test_metadata_of_another_kind_than_expected_is_left_out_beyond_the_bound(
    read_kineto: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MOST_METADATA_BYTES", 50)

    reading = read_kineto({"distributedInfo": ["x"] * 50, "schemaVersion": 1, "traceEvents": [PLAIN]})

    assert reading.rows("profile")[0]["schema_version"] == 1
    assert reading.codes == ["kineto_large_metadata"]
