"""Random traces, in random layouts and random units, read as a plain JSON parser with exact decimals reads them."""

import gzip
import json
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from itertools import accumulate
from typing import Any

from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.sources.reading import Read, Reading
from traceforge.errors import InputUnusableError

LIMIT_NS = 2**62
quick = examples(250, suppress_health_check=[HealthCheck.function_scoped_fixture])

names = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "aten::mm",
            "ncclKernel",
            "ProfilerStep#3",
            '"},{"',
            "a\\",
            '\\"',
            "}",
            "],",
            "NaN",
            "traceEvents",
            "é \U0001f600",
        ]
    ),
)
numbers = st.one_of(
    st.integers(-(10**6), 10**18),
    st.decimals(-(10**6), 2 * 10**15, places=3),
    st.decimals(0, 10**9, places=7),
    st.sampled_from([Decimal("1e3"), Decimal("12.5E-2"), Decimal(10**40), 0]),
)
tracks = st.one_of(st.integers(-5, 10**10), st.sampled_from(["Spans", "stream 7", "", "5"]))
ids = st.one_of(st.integers(-1, 5000), st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**70)]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), names),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "External id": ids,
        "correlation": ids,
        "stream": ids,
        "device": ids,
        "bytes": ids,
        "Record function id": ids,
        "Call stack": names,
        "Input Dims": st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=3),
        "shapes": st.lists(st.fixed_dictionaries({"a": anything}), max_size=3),
        "x": anything,
    },
)
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "M", "s", "f", "t", "i", "C", "B", "E"]),
        "cat": st.sampled_from(["cpu_op", "kernel", "ac2g", ""]),
        "name": names,
        "pid": tracks,
        "tid": tracks,
        "ts": numbers,
        "dur": numbers,
        "id": ids,
        "args": arguments,
        "bp": st.just("e"),
    },
)


class Layout:
    """Writes JSON with the white space and the order of keys of some tool."""

    def __init__(self, spaces: list[str], ascii_only: bool) -> None:
        self._spaces = spaces
        self._ascii_only = ascii_only
        self._next = 0

    def _space(self) -> str:
        self._next += 1
        return self._spaces[self._next % len(self._spaces)]

    def text(self, value: Any) -> str:
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, dict):
            members = (
                f"{self._space()}{json.dumps(key)}{self._space()}:{self.text(item)}" for key, item in value.items()
            )
            return "{" + ",".join(members) + self._space() + "}"
        if isinstance(value, list):
            return "[" + ",".join(self._space() + self.text(item) for item in value) + self._space() + "]"
        return self._space() + json.dumps(value, ensure_ascii=self._ascii_only)


layouts = st.builds(
    Layout, st.lists(st.sampled_from(["", " ", "\n", "\n  ", "\t", " \r\n"]), min_size=1, max_size=7), st.booleans()
)


def fitting(value: object, bits: int) -> int | None:
    return value if isinstance(value, int) and -(2**bits) <= value < 2**bits else None


def nanoseconds(value: int | Decimal | None) -> int | None:
    if value is None:
        return None
    with localcontext() as context:
        context.prec = 200
        exact = int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN))
    return exact if abs(exact) <= LIMIT_NS else None


def oracle_rows(text: str) -> list[dict[str, Any]]:
    """Rows by the letter of the table's comments, with nothing but the standard library."""
    trace = json.loads(text, parse_float=Decimal)
    elements = trace["traceEvents"] if isinstance(trace, dict) else trace
    base_ns = trace.get("baseTimeNanoseconds", 0) if isinstance(trace, dict) else 0
    rows = []
    for number, event in enumerate(elements):
        args = event.get("args", {})
        start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        rows.append(
            {
                "event_id": number,
                "phase": event.get("ph"),
                "category": event.get("cat"),
                "name": event.get("name"),
                "track": (event.get("pid"), event.get("tid")),
                "raw_start_ns": None if start is None else start + base_ns,
                "duration_ns": None if duration is None else max(duration, 0),
                "correlation": fitting(args.get("correlation"), 63),
                "external_id": fitting(args.get("External id"), 63),
                "flow_id": fitting(event.get("id"), 63) if event.get("ph") in ("s", "t", "f") else None,
                "stream": fitting(args.get("stream"), 31),
                "device": fitting(args.get("device"), 31),
                "size_bytes": fitting(args.get("bytes"), 63),
                "record_function_id": fitting(args.get("Record function id"), 63),
            }
        )
        rows[-1]["track"] = tuple(None if part is None else str(part) for part in rows[-1]["track"])
    return rows


def stored_rows(reading: Reading) -> list[dict[str, Any]]:
    """The rows that were read, with the track's number replaced by what it stands for."""
    tracks = {row["track_id"]: (row["process"], row["thread"]) for row in reading.rows("track")}
    rows = [{**row, "track": tracks.get(row["track_id"], (None, None))} for row in reading.events]
    return [{name: value for name, value in row.items() if name != "track_id"} for row in rows]


def document(elements: list[dict[str, Any]], layout: Layout, form: str, base_ns: int) -> str:
    members = {"schemaVersion": 1, "deviceProperties": [{"id": 0}, {"id": 1}]}
    base = {"baseTimeNanoseconds": base_ns}
    trace: dict[str, Any] | list[Any] = elements
    if form == "header":
        trace = {**members, **base, "traceEvents": elements, "traceName": "x"}
    elif form == "footer":
        trace = {"schemaVersion": 1, "traceEvents": elements, **members, **base}
    return layout.text(trace)


@quick
@given(
    st.lists(events, max_size=12),
    layouts,
    st.sampled_from(["header", "footer", "list"]),
    st.sampled_from([0, 1_711_964_646_000_000_000]),
    st.integers(1, 400),
    st.booleans(),
)
def test_rows_equal_those_of_a_plain_parser(
    read_kineto: Read,
    elements: list[dict[str, Any]],
    layout: Layout,
    form: str,
    base_ns: int,
    unit_bytes: int,
    compress: bool,
) -> None:
    text = document(elements, layout, form, base_ns)
    # A base time behind the events is asked for only where starts are not times of this century already.
    late = [start for element in elements if (start := nanoseconds(element.get("ts"))) is not None and start >= 10**18]
    assume(form != "footer" or not late)
    reading = read_kineto(text, unit_bytes=unit_bytes, batch_rows=5, compress=compress)
    assert stored_rows(reading) == oracle_rows(text)
    assert reading.summary.event_count == reading.summary.stored_count == len(elements)


@quick
@given(
    st.lists(events, min_size=1, max_size=8),
    layouts,
    st.sampled_from(["header", "footer", "list"]),
    st.integers(1, 400),
    st.data(),
)
def test_a_cut_costs_at_most_the_event_it_goes_through(
    read_kineto: Read, elements: list[dict[str, Any]], layout: Layout, form: str, unit_bytes: int, data: st.DataObject
) -> None:
    # given a trace of which the end is missing, and where its events end
    whole = [layout.text(element) for element in elements]
    head = {"list": "[", "header": '{"schemaVersion": 1, "traceEvents": [', "footer": '{"traceEvents": ['}[form]
    foot = "]" if form == "list" else '], "traceName": "x"}'
    text = head + ",".join(whole) + foot
    cut = data.draw(st.integers(len(head), len(text) - 1))
    ends = [len(head) + end + number for number, end in enumerate(accumulate(map(len, whole)))]
    # when
    reading = read_kineto(text[:cut], unit_bytes=unit_bytes)
    # then all events before the cut are there, and the one it goes through is counted
    complete = sum(end <= cut for end in ends)
    begun = (
        complete < len(whole) and text[(ends[complete - 1] if complete else len(head)) : cut].strip(" \t\r\n,") != ""
    )
    assert [row["event_id"] for row in reading.events] == list(range(complete))
    assert reading.summary.event_count == complete + begun
    assert stored_rows(reading) == oracle_rows("[" + ",".join(whole[:complete]) + "]")
    assert "kineto_truncated" in reading.codes


def is_counted(reading: Reading) -> bool:
    lost = sum(issue.lost_events for issue in reading.summary.issues)
    stored = len(reading.events)
    ids = [row["event_id"] for row in reading.events]
    in_order = ids == sorted(set(ids)) and all(0 <= number < reading.summary.event_count for number in ids)
    return in_order and reading.summary.stored_count == stored and reading.summary.event_count == stored + lost


sound_events = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from("XsfM"), "name": names, "ts": st.integers(0, 9**9), "args": arguments},
        optional={"dur": numbers},
    ),
    min_size=1,
    max_size=8,
)
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(b'"\\{}[],: \n\x00\xff1eN') | st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, changes: list[tuple[float, int, int]], start: int = 0) -> bytes:
    """Bytes with some of them replaced, removed, doubled, or with one put in, behind `start`."""
    content = bytearray(data)
    for place, kind, byte in changes:
        index = start + int(place * (len(content) - start - 1))
        if index < 0 or index >= len(content):
            continue
        if kind == 0:
            content[index] = byte
        elif kind == 1:
            del content[index]
        else:
            content.insert(index, byte if kind == 2 else content[index])
    return bytes(content)


@quick
@given(sound_events, layouts, st.booleans(), edits, st.integers(1, 400))
def test_random_damage_never_raises_nor_loses_in_silence(
    read_kineto: Read,
    elements: list[dict[str, Any]],
    layout: Layout,
    in_object: bool,
    changes: list[tuple[float, int, int]],
    unit_bytes: int,
) -> None:
    text = layout.text({"schemaVersion": 1, "traceEvents": elements, "traceName": "x"} if in_object else elements)
    try:
        reading = read_kineto(edited(text.encode(), changes), unit_bytes=unit_bytes, keep_all_args=True)
    except InputUnusableError:
        return
    assert is_counted(reading)


@quick
@given(sound_events, edits)
def test_random_damage_of_compressed_files_never_raises_either(
    read_kineto: Read, elements: list[dict[str, Any]], changes: list[tuple[float, int, int]]
) -> None:
    data = gzip.compress(Layout([" "], True).text({"traceEvents": elements}).encode(), mtime=0)
    try:
        reading = read_kineto(edited(data, changes, start=10))
    except InputUnusableError:
        return
    assert is_counted(reading)


@quick
@given(sound_events, st.floats(0, 1), st.integers(0, 3), st.sampled_from(b'"\\{}],: \x00\xffN'), st.integers(1, 400))
def test_one_damaged_byte_costs_at_most_two_events(
    read_kineto: Read, elements: list[dict[str, Any]], place: float, kind: int, byte: int, unit_bytes: int
) -> None:
    # given a dense list of events with one byte changed among them (an added [ would make a list of lists of it)
    text = "[" + ",".join(json.dumps(element, default=str) for element in elements) + "]"
    damaged = edited(text.encode(), [(place, kind, byte)], start=1)
    if not damaged.endswith(b"]"):
        return
    # when
    reading = read_kineto(damaged, unit_bytes=unit_bytes)
    # then the others are as they were
    before = {(row["name"], row["raw_start_ns"]) for row in oracle_rows(text)}
    kept = [row for row in reading.events if (row["name"], row["raw_start_ns"]) in before]
    assert len(kept) >= len(elements) - 2
    assert is_counted(reading)
