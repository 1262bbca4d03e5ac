"""The scanner in C and the Python reader say the same of every file, to the last issue."""

import gzip
import json
import random
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.kineto import mutated, seeds
from tests.sources.conftest import read_path
from tests.sources.test_kineto_collectives import MEMBERS
from tests.sources.test_kineto_properties import Layout, document, edited, edits, events, layouts, quick
from traceforge.errors import TraceforgeError
from traceforge.files import read_head
from traceforge.reading import communication_args
from traceforge.sources.kineto import SOURCE, native
from traceforge.sources.kineto.issues import new_log
from traceforge.sources.kineto.kinds import Kinds
from traceforge.sources.kineto.native import Scanner, native_columns
from traceforge.sources.kineto.tracks import TrackNames

pytestmark = pytest.mark.skipif(Scanner is None, reason="the scanner was not built")
MUTATIONS = 100


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native") / "trace.json"


def said_of(path: Path, native: bool, **options: Any) -> object:
    """All that a reader says of a file, or why it refuses it."""
    try:
        return read_path(path, native=native, **options).all_said
    except TraceforgeError as error:
        return str(error)


def assert_readers_agree(path: Path, **options: Any) -> None:
    assert said_of(path, True, **options) == said_of(path, False, **options)


def scanned(text: bytes) -> int | None:
    """How many events the scanner takes of a unit; None where it declines."""
    columns = native_columns(Kinds(tracks := TrackNames(new_log()), new_log()), tracks, False)
    assert columns is not None
    unit = columns.read(text, 0)
    return None if unit is None else unit.count


PLAIN = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":5.125,"dur":1,"args":{"stream":7}}'


def test_plain_events_are_read_by_the_scanner() -> None:
    assert scanned(PLAIN) == 1
    assert scanned(b" " + PLAIN + b" ,\r\n\t" + PLAIN + b"\n") == 2
    assert scanned('{"ph":"i","name":"é \\u00e9 \\n","ts":"12"}'.encode()) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        PLAIN[:-1],
        PLAIN + b",",
        PLAIN + PLAIN,
        b"[" + PLAIN + b"]",
        PLAIN + b"\0",
        PLAIN.replace(b"5.125", b"NaN"),
        PLAIN.replace(b"5.125", b"5."),
        PLAIN.replace(b"5.125", b"5e3"),
        PLAIN.replace(b"5.125", b"05"),
        PLAIN.replace(b"5.125", b"99999999999999999"),
        PLAIN.replace(b'"ts":5.125,', b""),
        PLAIN.replace(b'"ts":5.125', b'"ts":null'),
        PLAIN.replace(b'"dur":1', b'"dur":-1'),
        PLAIN.replace(b'"dur":1', b'"ts":1'),
        PLAIN.replace(b'"stream":7', b'"stream":7.5'),
        PLAIN.replace(b'"stream":7', b'"stream":"7"'),
        PLAIN.replace(b'"stream":7', b'"stream":7,"stream":8'),
        PLAIN.replace(b'"stream":7', b'"stream":2147483648'),
        PLAIN.replace(b'"stream":7', b'"bytes":9223372036854775808'),
        PLAIN.replace(b'"stream":7', b'"stream":7,'),
        PLAIN.replace(b'"stream"', b'"str\\u0065am"'),
        PLAIN.replace(b'{"stream":7}', b"null"),
        PLAIN.replace(b'{"stream":7}', b"[" * 65 + b"]" * 65),
        PLAIN.replace(b"aten::mm", b"\xff"),
        PLAIN.replace(b"aten::mm", b"\xed\xa0\x80"),
        PLAIN.replace(b"aten::mm", b"\xc0\x80"),
        PLAIN.replace(b"aten::mm", b"\\ud800"),
        PLAIN.replace(b"aten::mm", b"\\x"),
        PLAIN.replace(b"aten::mm", b"\n"),
        PLAIN.replace(b'"pid":1', b'"pid":1.0'),
    ],
)
def test_what_is_not_plain_is_declined_and_nothing_of_it_remains(text: bytes) -> None:
    # given columns that hold an event already
    columns = native_columns(kinds := Kinds(tracks := TrackNames(new_log()), new_log()), tracks, True)
    assert columns is not None
    assert columns.read(PLAIN, 0) is not None
    kinds.flush()
    # when
    assert columns.read(PLAIN.replace(b"aten", b"other") + b"," + text, 1) is None
    # then neither rows nor kinds are there that were not there before
    assert columns.flush()["event_id"].to_list() == [0]
    assert kinds.flush().is_empty()


def test_rows_stay_in_order_where_units_of_both_kinds_alternate(file: Path) -> None:
    # given every third event with a stream that only the Python reader takes
    trace = [
        {"ph": "X", "name": f"op{number % 7}", "pid": 1, "tid": 1, "ts": number, "args": {"stream": "7"}}
        if number % 3 == 0
        else {"ph": "X", "name": f"op{number % 5}", "pid": 1, "tid": "1", "ts": number, "args": {"stream": 7}}
        for number in range(100)
    ]
    file.write_text(json.dumps(trace))
    # when
    reading = read_path(file, unit_bytes=60, batch_rows=10, native=True)
    # then
    assert [event["event_id"] for event in reading.events] == list(range(100))
    assert [event["stream"] for event in reading.events] == [7] * 100
    assert_readers_agree(file, unit_bytes=60, batch_rows=10)


@quick
@given(
    st.lists(events, max_size=12),
    layouts,
    st.sampled_from(["header", "footer", "list"]),
    st.integers(1, 400),
    st.booleans(),
)
def test_readers_agree_on_random_events(
    file: Path, elements: list[dict[str, Any]], layout: Layout, form: str, unit_bytes: int, keep_all_args: bool
) -> None:
    file.write_text(document(elements, layout, form, 0))
    assert_readers_agree(file, unit_bytes=unit_bytes, batch_rows=5, keep_all_args=keep_all_args)


@quick
@given(st.lists(events, max_size=6), layouts, edits, st.integers(1, 400))
def test_readers_agree_on_damaged_text(
    file: Path, elements: list[dict[str, Any]], layout: Layout, changes: list[tuple[float, int, int]], unit_bytes: int
) -> None:
    text = document(elements, layout, "header", 0).encode()
    file.write_bytes(edited(text, changes))
    assert_readers_agree(file, unit_bytes=unit_bytes, batch_rows=5, keep_all_args=True)


CALLS = [
    '{"Collective name":"allreduce","In msg nelems":64,"dtype":"Float","Seq":%d,"External id":%d}',
    '{"Collective name":"allreduce","In msg nelems":64,"dtype":"Float","External id":%d,"Ev Idx":%d}',
    '{"Collective name":"allreduce", "In msg nelems":64, "Seq" : %d , "External id":"%d"}',
    '{"Collective name":"wait","Seq":"%d","Group size":%d}',
    '{"Collective name":"a","Seq":%d,"Seq":%d}',
    '{"Collective name":"a","Seq":%d,"Seq":"%d"}',
    '{"Collective name":"a","Seq":%d,"Rank":%d}',
    '{"Collective name":"a","Seq":0%d,"Rank":%d}',
    '{"Collective name":"a","Seq":-%d,"Rank":-%d}',
    '{"Collective name":"a","Seq":%d.5,"Rank":%d.0}',
    '{"Collective name":"a","Seq":1%018d,"Group size":1%018d}',
    '{"Collective name":"a","Is asynchronized op":"%d","Group size":"x%d"}',
    '{"Collective name":"a","in":{"Seq":%d,"Rank":%d}}',
    '{"in":{"Collective name":"a","Seq":%d},"Seq":%d}',
    '{"name":"Collective name","Seq":%d,"stream":%d}',
    '{"In msg nelems":%d,"Process Group Name":"\\u00e9 %d"}',
    '{"Process Group Ranks":"[0, %d]","Seq":%d}',
    '{"correlation":%d,"stream":%d}',
    "{}",
]  # fmt: skip


@pytest.mark.parametrize("keep_all_args", [False, True])
def test_readers_agree_on_arguments_of_communication(file: Path, keep_all_args: bool) -> None:
    # given calls that are alike, and calls that only look so, some of them in damaged text
    source = random.Random(5)  # noqa: S311 - to be repeated, not to be secret
    texts = []
    for number in range(300):
        args = source.choice(CALLS)
        args = args % (number % 7, number % 5) if "%" in args else args
        name = source.choice(["record_param_comms", "ncclDevKernel_AllReduce", "aten::mm", "other"])
        damage = source.choice(["", "", "", "", '"dur": NaN, '])
        texts.append(f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", {damage}"ts": {number}, "args": {args}}}')
    file.write_text("[" + ",".join(texts) + "]")
    # then
    reading = read_path(file, native=True, unit_bytes=600, keep_all_args=keep_all_args)
    assert len(reading.rows("collective")) > 100
    for unit_bytes in (200, 600, 256 * 1024):
        assert_readers_agree(file, unit_bytes=unit_bytes, batch_rows=50, keep_all_args=keep_all_args)


@quick
@example([['"Seq": 5', '"deep": {"correlation": 5}'], ['"External id": 5', '"deep": {"Seq": 5}']])
@given(st.lists(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=4), min_size=1, max_size=6))
def test_readers_agree_on_calls_that_look_alike(file: Path, calls: list[list[str]]) -> None:
    texts = [
        '{"ph": "X", "name": "c10d::x", "ts": 1, "args": {' + ", ".join(['"In msg nelems": 1', *members]) + "}}"
        for members in calls
    ]
    file.write_text("[" + ",".join(texts) + "]")
    assert_readers_agree(file)


def test_distinct_calls_are_forgotten_where_there_are_many(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given 60 calls of which no two are alike, and room for 10
    monkeypatch.setattr(communication_args, "_MOST_KNOWN", 10)
    call = '{"ph": "X", "name": "record_param_comms", "ts": 1, "args": {"Collective name": "a", "In msg nelems": %d}}'
    file.write_text("[" + ",".join(call % (number % 60) for number in range(180)) + "]")
    # then
    reading = read_path(file, native=True, unit_bytes=300, batch_rows=20)
    assert [row["in_elements"] for row in reading.rows("collective")] == [number % 60 for number in range(180)]
    assert_readers_agree(file, unit_bytes=300, batch_rows=20)


def test_readers_agree_on_mutations_of_all_layouts(file: Path) -> None:
    source = random.Random(3)  # noqa: S311 - to be repeated, not to be secret
    inputs = seeds()
    for _ in range(MUTATIONS):
        file.write_bytes(mutated(source, inputs))
        assert_readers_agree(file, unit_bytes=source.choice([1, 64, 300, 4096]), batch_rows=100)


def test_readers_agree_on_real_traces_of_all_eras(corpus: Path) -> None:
    files = [path for path in sorted((corpus / "traces/kineto").rglob("*")) if path.is_file()]
    traces = [path for path in files if SOURCE.recognises(read_head(path))]
    assert len(traces) > 90
    # the smallest of each folder: what is peculiar to an era is in all of its files, and the Python reader is slow
    by_size = sorted(traces, key=lambda path: (path.parent, path.stat().st_size))
    for path in [next(found) for _, found in groupby(by_size, key=lambda path: path.parent)]:
        assert_readers_agree(path, unit_bytes=256 * 1024)


def test_a_table_of_kinds_that_starts_anew_agrees_too(file: Path) -> None:
    # given more names than the table of kinds holds on to
    trace = [{"ph": "X", "name": f"op{number % 30_000}", "pid": 1, "tid": 1, "ts": number} for number in range(70_000)]
    file.write_bytes(gzip.compress(json.dumps(trace).encode(), compresslevel=1))
    assert_readers_agree(file, unit_bytes=64 * 1024, batch_rows=20_000)


def test_many_spellings_of_one_name_are_one_kind_and_take_no_memory(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a name in which each letter is written as itself or as an escape, and little room for that
    monkeypatch.setattr(native, "_MOST_SPELLINGS", 10)
    spellings = ["".join(c if 1 << i & n else f"\\u{ord(c):04x}" for i, c in enumerate("kernel")) for n in range(64)]
    event = '{"ph": "X", "name": "%s", "pid": 1, "tid": 1, "ts": 1}'
    file.write_text("[" + ",".join(event % name for name in [*spellings, "kernel", "other"]) + "]")
    # when
    reading = read_path(file, unit_bytes=300, native=True)
    # then
    assert [kind["name"] for kind in reading.rows("event_kind")] == ["kernel", "other"]
    assert_readers_agree(file, unit_bytes=300)


def test_a_scanner_refuses_what_are_not_the_kinds_of_its_last_unit() -> None:
    scanner = Scanner()
    assert scanner.scan(PLAIN, 0) == [(b'"X"', b'"cpu_op"', b'"aten::mm"', b"1", b"2")]
    with pytest.raises(ValueError, match="not the kinds of the last unit"):
        scanner.settle([0, 1], b"\0\0", False)
    assert scanner.row_count == 0
    assert scanner.settle([5], b"\1", False) == ([(0, 5, b'{"stream":7}')], [], b"")
    with pytest.raises(ValueError, match="not the kinds of the last unit"):
        scanner.settle([], b"", False)
