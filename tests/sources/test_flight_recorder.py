"""Dumps of the flight recorder are strangers' files: pickles are walked, never executed, and bounded."""

import contextlib
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.flight_recorder import SOURCE
from traceforge.sources.flight_recorder.dump import read_dump
from traceforge.sources.flight_recorder.plain_pickle import load_plain

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(), inner, max_size=5)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.lists(inner, max_size=6).map(tuple)
    ),
    max_leaves=30,
)


@given(plain_values, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_as_they_were_by_any_protocol(value: object, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol), where="dump") == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InputUnusableError):
        load_plain(b"\x80\x02" + data + b".", where="dump")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_ends_too_early_is_refused_wherever_it_ends(protocol: int) -> None:
    # given what dumps consist of, with numbers of all sizes, more values than one byte counts, and some that come twice
    early = {
        "id": 1,
        "seq": 300,
        "pg": -70_000,
        "time": 2**60,
        "ms": 0.5,
        "sizes": [[1, 2]],
        "group": ("0", "x"),
        "up": None,
    }
    late = {"state": "y", **early}
    lists: list[object] = [[] for _ in range(256)]
    whole = pickle.dumps({"entries": [early, *lists, late, dict(late)]}, protocol)

    for end in range(len(whole)):
        with pytest.raises(InputUnusableError, match="the pickle is not read"):
            load_plain(whole[:end], where="dump")


def test_shared_values_stay_shared() -> None:
    frame = {"name": "forward", "line": 1}

    found = load_plain(pickle.dumps([frame] * 1000), where="dump")

    assert found == [frame] * 1000


def test_lists_of_numbers_as_pytorch_writes_them_are_lists() -> None:
    # given what the C++ pickler writes for [1, 2]
    data = b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n(](K\x01K\x02etR."

    assert load_plain(data, where="dump") == [1, 2]


class _Harmful:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        import os

        return os.system, ("touch /tmp/harm",)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(_Harmful()),
        pickle.dumps(_Harmful(), 0),
        pickle.dumps({1, 2}),
        pickle.dumps(Path("x")),
        b"cos\nsystem\n(S'true'\ntR.",
        b"ctorch.jit._pickle\nbuild_intlist\n.",
        b"ctorch.jit._pickle\nbuild_intlist\n](h.",
        b"\x80\x02]q\x00h\x00a.",
        b"](q\x000h\x00K\x01e.",
        b"](2K\x01e0.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"]" * 500 + b"a" * 499 + b".",
        b"(" * 100_000,
        b"",
    ],
    ids=repr,
)
def test_what_is_no_plain_value_is_refused(data: bytes) -> None:
    with pytest.raises(InputUnusableError, match="the pickle is not read"):
        load_plain(data, where="dump")


def test_a_huge_memo_index_costs_nothing() -> None:
    assert load_plain(b"}r" + struct.pack("<I", 2**32 - 1) + b".", where="dump") == {}


def test_lists_that_double_with_every_step_are_refused() -> None:
    # given a few hundred bytes that are 2^90 values when written out
    doubling = b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(50)) + b"."

    with pytest.raises(InputUnusableError, match=r"far larger|too deeply"):
        load_plain(doubling, where="dump")


@pytest.mark.parametrize(
    "tuples",
    [
        b")" + b"\x85" * 500_000,
        b")" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(60)),
    ],
    ids=["deep", "doubling"],
)
@pytest.mark.parametrize("pair", [b"}%bNs.", b"}(%bNu.", b"(%bNd."], ids=["one", "many", "whole"])
def test_a_tuple_is_no_key(pair: bytes, tuples: bytes) -> None:
    # given tuples whose hash takes 2^60 steps, or more of C's stack than there is
    with pytest.raises(InputUnusableError, match="no text and no number"):
        load_plain(b"\x80\x02" + pair % tuples, where="dump")


@pytest.mark.parametrize("pack", [pickle.dumps, lambda value: json.dumps(value).encode()], ids=["pickle", "json"])
def test_odd_values_cost_their_field_alone(tmp_path: Path, pack: Callable[[object], bytes]) -> None:
    entry = {
        "collective_seq_id": 2**70,
        "duration_ms": 10**300,
        "profiling_name": "nccl:all_reduce",
        "frames": [{"name": "f", "filename": "x.py", "line": 2**80}],
        "state": ["list"],
    }
    dump = {"entries": [entry, entry, 7], "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}, "rank": 2**40}
    (tmp_path / "dump_0").write_bytes(pack(dump))
    batches: list[Batch] = []

    summary = read_dump(tmp_path / "dump_0", batches.append, ReadOptions())

    assert (summary.event_count, summary.stored_count) == (3, 2)
    rows = pl.concat([batch.rows for batch in batches if batch.table.endswith("_entry")]).to_dicts()
    assert {row["name"] for row in rows} == {"nccl:all_reduce"}
    assert {(row["collective_sequence"], row["duration_ns"], row["state"]) for row in rows} == {(None, None, None)}


def test_half_a_surrogate_pair_becomes_a_question_mark(tmp_path: Path) -> None:
    dump = {"entries": [{"collective_seq_id": 1, "profiling_name": "a\ud800"}], "pg_config": {}}
    (tmp_path / "dump_0").write_bytes(pickle.dumps(dump))
    batches: list[Batch] = []

    read_dump(tmp_path / "dump_0", batches.append, ReadOptions())

    assert batches[0].rows["name"].to_list() == ["a?"]


def test_json_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(b'{"\xfa": 1, "entries": [], "pg_config": {}}')

    with pytest.raises(InputUnusableError, match="not well-formed"):
        SOURCE.read(tmp_path / "dump", lambda _batch: None, ReadOptions())


def test_json_as_pytorch_writes_it_says_the_same_as_the_pickle(tmp_path: Path) -> None:
    # given progress as texts, moments of 0 that nobody noticed, and a send that is called no message
    entry = {
        "collective_seq_id": 4,
        "p2p_seq_id": 1,
        "pg_id": 2,
        "process_group": ["5", "PIPELINE"],
        "profiling_name": "nccl:send 0->1",
        "is_p2p": False,
        "state": "scheduled",
        "time_discovered_started_ns": 0,
        "time_discovered_completed_ns": 0,
    }
    status = {"2": {"last_enqueued_collective": "4", "last_started_collective": "-1", "last_completed_collective": "3"}}
    groups = {"5": {"name": "5", "desc": "PIPELINE", "ranks": "[0, 1]"}}
    (tmp_path / "dump_0").write_text(json.dumps({"entries": [entry], "pg_config": groups, "pg_status": status}))
    batches: list[Batch] = []

    read_dump(tmp_path / "dump_0", batches.append, ReadOptions())

    rows = {batch.table.removeprefix("raw.flight_recorder_"): batch.rows.to_dicts()[0] for batch in batches}
    assert rows["progress"] == {"process_group_id": 2, "last_enqueued": 4, "last_started": -1, "last_completed": 3}
    assert (rows["entry"]["is_p2p"], rows["entry"]["raw_noticed_start_ns"]) == (True, None)
    assert rows["entry"]["raw_noticed_end_ns"] is None


def test_json_of_a_process_in_which_nothing_was_under_way_is_a_dump() -> None:
    assert SOURCE.recognises(
        b'{"comm_lib_version":"2.27.5","pg_config":{"0":{}},"pg_status":{"0":{}},"version":"2.10"}'
    )


def test_a_bare_list_of_calls_as_pytorch_2_2_writes_it_is_a_dump(tmp_path: Path) -> None:
    # given two calls: one of the group that a process makes first, which is that of all ranks, and one of another
    call = {"pg_id": 0, "seq_id": 13, "profiling_name": "nccl:all_reduce", "time_created_us": 1_714_000_000_000_007}
    shapes: dict[str, object] = {"input_sizes": [[8]], "output_sizes": [[8]], "state": "started", "retired": False}
    whole = pickle.dumps([{**call, **shapes}, {**call, **shapes, "pg_id": 2}], 2)
    (tmp_path / "nccl_trace_rank_0").write_bytes(whole)
    batches: list[Batch] = []

    read_dump(tmp_path / "nccl_trace_rank_0", batches.append, ReadOptions())

    assert SOURCE.recognises(whole)
    (rows,) = (batch.rows for batch in batches)
    assert rows["process_group_name"].to_list() == ["0", None]
    first = rows.row(0, named=True)
    assert (first["collective_sequence"], first["raw_created_ns"]) == (13, 1_714_000_000_000_007_000)
    assert (first["state"], first["in_shapes"]) == ("started", "[[8]]")


def test_groups_of_version_1_are_lists_of_ranks_by_the_process_s_number(tmp_path: Path) -> None:
    entry = {"record_id": 0, "pg_id": 1, "seq_id": 4, "profiling_name": "nccl:all_reduce", "state": "scheduled"}
    dump = {"entries": [entry], "version": "1.4", "pg_config": {0: [0, 1, 2, 3], 1: [2, 3]}}
    (tmp_path / "dump_2").write_bytes(pickle.dumps(dump, 2))
    batches: list[Batch] = []

    summary = read_dump(tmp_path / "dump_2", batches.append, ReadOptions())

    rows = {batch.table.removeprefix("raw.flight_recorder_"): batch.rows for batch in batches}
    assert rows["entry"]["process_group_name"].to_list() == ["1"]
    assert rows["group"].select("process_group_name", "ranks").rows() == [("0", "[0, 1, 2, 3]"), ("1", "[2, 3]")]
    assert summary.world_size == 4
