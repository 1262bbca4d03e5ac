"""Damaged files lose as little as possible, and what they lose is counted."""

import gzip
import json
import zlib
from pathlib import Path

import pytest

from tests.sources.conftest import read_path
from tests.sources.reading import Read, Reading
from traceforge.errors import InputUnusableError

HEAD = '{"schemaVersion": 1, "traceEvents": ['
FOOT = '], "traceName": "x"}'


def event(number: int) -> str:
    return json.dumps(
        {"ph": "X", "name": f"op {number}", "pid": 1, "tid": 1, "ts": number, "dur": 1, "args": {"a": [1, 2]}}
    )


def trace(*events: str) -> str:
    return HEAD + ",\n".join(events) + FOOT


def counted(reading: Reading) -> bool:
    """Whether nothing was lost in silence."""
    lost = sum(issue.lost_events for issue in reading.summary.issues)
    stored = len(reading.events)
    return reading.summary.stored_count == stored and reading.summary.event_count == stored + lost


@pytest.mark.parametrize("unit_bytes", [1, 200, 100_000])
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_a_file_cut_inside_an_event_keeps_all_events_before(read_kineto: Read, compress: bool, unit_bytes: int) -> None:
    # given |op 0|op 1|op 2 ...cut
    text = trace(event(0), event(1), event(2))
    text = text[: text.index("op 2") + 3]
    # when
    reading = read_kineto(text, compress=compress, unit_bytes=unit_bytes)
    # then the cut event is counted, with the place where the file ends
    assert reading.names == ["op 0", "op 1"]
    assert (reading.summary.event_count, reading.summary.stored_count) == (3, 2)
    assert reading.codes == ["kineto_truncated"]
    assert reading.issue("kineto_truncated").lost_events == 1
    assert reading.issue("kineto_truncated").first_at == f"byte {len(text)}"


@pytest.mark.parametrize("unit_bytes", [1, 200, 100_000])
@pytest.mark.parametrize(
    "cut",
    [
        '{"ph": "X", "args": {"\\ud800\\udc00": [1]',
        '{"ph": "X", "args": {"shapes": [{"ph": "a"}], "x": 1}',
        '{"ph": "X", "name": "\\ud8',
        '{"ph": "X", "ts": 1.',
        '{"ph": "X", "ts": -',
        '{"ph": "X", "args": {"a": [' + "{}, " * 200,
        '{"ph": "X", "args": {"a": NaN, "b": [1]',
    ],
    ids=["a surrogate pair", "a nested object", "an escape", "a fraction", "a sign", "many objects", "nan"],
)
def test_whatever_a_cut_goes_through_it_costs_one_event(read_kineto: Read, cut: str, unit_bytes: int) -> None:
    reading = read_kineto(HEAD + event(0) + ", " + cut, unit_bytes=unit_bytes)
    assert reading.names == ["op 0"]
    assert reading.codes == ["kineto_truncated"]
    assert reading.issue("kineto_truncated").lost_events == 1


@pytest.mark.parametrize("size", [3_000, 5_000, 30_000])
def test_an_event_that_is_too_large_costs_itself_alone(
    read_kineto: Read, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sound event beyond the limit, which here is 2,000 bytes
    monkeypatch.setattr("traceforge.sources.kineto.elements.LARGEST_ELEMENT", 2_000)
    monkeypatch.setattr("traceforge.sources.kineto.splitter.LARGEST_ELEMENT", 2_000)
    large = json.dumps({"ph": "X", "name": "large", "ts": 1, "args": {"text": "y, " * (size // 3)}})
    # when it is met with less of the file at hand than it takes
    reading = read_kineto(trace(event(0), large, event(2), event(3)), unit_bytes=200)
    # then nothing else is lost, and nothing else said
    assert reading.names == ["op 0", "op 2", "op 3"]
    assert reading.codes == ["kineto_oversized_event"]
    assert reading.issue("kineto_oversized_event").lost_events == 1
    assert counted(reading)


@pytest.mark.parametrize("size", [5_000, 30_000])
@pytest.mark.parametrize("unit_bytes", [200, 100_000])
def test_an_event_that_is_too_large_is_left_out_at_the_end_of_a_file_as_well(
    read_kineto: Read, size: int, unit_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceforge.sources.kineto.elements.LARGEST_ELEMENT", 2_000)
    monkeypatch.setattr("traceforge.sources.kineto.splitter.LARGEST_ELEMENT", 2_000)

    reading = read_kineto(
        trace(event(0), event(1), json.dumps({"ph": "X", "name": "n" * size, "ts": 1})), unit_bytes=unit_bytes
    )

    assert reading.names == ["op 0", "op 1"]
    assert reading.codes == ["kineto_oversized_event"]
    assert counted(reading)


@pytest.mark.parametrize("unit_bytes", [1, 100_000])
def test_an_event_with_many_nested_objects_beside_damage_is_kept(read_kineto: Read, unit_bytes: int) -> None:
    large = json.dumps({"ph": "X", "name": "large", "ts": 1, "args": {"list": [{"a": n} for n in range(500)]}})
    reading = read_kineto(trace(event(0), large, '{"ph": "X", "name" "a"}', large, event(4)), unit_bytes=unit_bytes)
    assert reading.names == ["op 0", "large", "large", "op 4"]
    assert reading.summary.event_count == 5


@pytest.mark.parametrize("unit_bytes", [1, 100_000])
@pytest.mark.parametrize(
    "text",
    [
        "[" + event(0) + "]\n[" + event(1) + "]",
        "[" + event(0) + ", [" + event(1) + ']{"',
        "[{" + event(0) + "," + event(1) + "]",
    ],
    ids=["two lists", "a list begun in a list", "an added brace"],
)
def test_fragments_of_lists_put_together_lose_no_event(read_kineto: Read, text: str, unit_bytes: int) -> None:
    assert read_kineto(text, unit_bytes=unit_bytes).names == ["op 0", "op 1"]


@pytest.mark.parametrize(
    "text", [HEAD + event(0), HEAD + event(0) + ",", HEAD + event(0) + "]", HEAD + event(0) + '], "traceName']
)
def test_a_file_cut_between_events_loses_none(read_kineto: Read, text: str) -> None:
    reading = read_kineto(text)
    assert reading.names == ["op 0"]
    assert reading.summary.event_count == 1
    assert "kineto_truncated" in reading.codes


def test_members_before_a_cut_in_the_footer_are_kept(read_kineto: Read) -> None:
    reading = read_kineto(HEAD + event(0) + '], "baseTimeNanoseconds": 5000, "traceName": "unfin')
    assert reading.events[0]["raw_start_ns"] == 5000
    assert reading.codes == ["kineto_truncated"]


@pytest.mark.parametrize("kept_share", [0.5, 0.9, 0.999])
def test_a_cut_gzip_file_is_read_to_its_last_byte(tmp_path: Path, kept_share: float) -> None:
    # given a gzip file of which the end is missing
    text = trace(*(event(number) for number in range(20_000)))
    compressed = gzip.compress(text.encode(), mtime=0)
    compressed = compressed[: int(len(compressed) * kept_share)]
    path = tmp_path / "cut.json.gz"
    path.write_bytes(compressed)
    available = zlib.decompressobj(wbits=31).decompress(compressed)
    # when
    reading = read_path(path)
    # then every event that lies in the decompressible bytes is there
    complete = available.count(b"}},\n")
    assert reading.names == [f"op {number}" for number in range(complete)]
    assert reading.summary.event_count - complete in (0, 1)
    assert reading.issue("kineto_truncated").first_at == f"byte {len(available)}"
    assert "ended before" in reading.issue("kineto_truncated").detail


def test_a_gzip_file_with_a_wrong_checksum_is_read_and_reported(tmp_path: Path) -> None:
    compressed = bytearray(gzip.compress(trace(event(0), event(1)).encode(), mtime=0))
    compressed[-5] ^= 0xFF
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(compressed)
    reading = read_path(path)
    assert reading.names == ["op 0", "op 1"]
    assert reading.codes == ["kineto_damaged_compression"]


def test_a_gzip_file_of_which_nothing_can_be_inflated_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(InputUnusableError, match="nothing can be decompressed"):
        read_path(path)


@pytest.mark.parametrize("unit_bytes", [1, 150, 100_000])
@pytest.mark.parametrize(
    ("damaged", "code", "name"),
    [
        (b'{"ph": "X", "name": "a\xffb", "ts": 1}', "kineto_invalid_utf8", "a\N{REPLACEMENT CHARACTER}b"),
        (b'{"ph": "X", "name": "a\tb\nc", "ts": 1}', "kineto_control_characters", "a\tb\nc"),
        (b'{"ph": "X", "name": "a\x01b", "ts": 1}', "kineto_control_characters", "a\x01b"),
        (b'{"ph": "X", "name": "a\\ud800", "ts": 1}', "kineto_bad_escape", "a\N{REPLACEMENT CHARACTER}"),
        (b'{"ph": "X", "name": "C:\\data", "ts": 1}', "kineto_bad_escape", "C:\\data"),
        (b'{"ph": "X", "name": "NaN", "ts": 1, "args": {"x": [NaN, -Infinity, inf]}}', "kineto_not_a_number", "NaN"),
    ],
    ids=["utf8", "tab and newline", "control", "surrogate", "backslash", "nan"],
)  # fmt: skip
def test_damaged_text_is_repaired_in_place(
    read_kineto: Read, damaged: bytes, code: str, name: str, unit_bytes: int
) -> None:
    data = HEAD.encode() + event(0).encode() + b"," + damaged + b"," + event(2).encode() + FOOT.encode()
    reading = read_kineto(data, unit_bytes=unit_bytes)
    assert reading.names == ["op 0", name, "op 2"]
    assert reading.codes == [code]
    assert [row["raw_start_ns"] for row in reading.events] == [0, 1000, 2000]


def test_repairs_are_counted_one_by_one(read_kineto: Read) -> None:
    reading = read_kineto(b'[{"ph": "X", "name": "\xff \xfe", "ts": 1, "dur": NaN, "args": {"a": [NaN, Infinity]}}]')
    assert reading.issue("kineto_invalid_utf8").count == 2
    assert reading.issue("kineto_not_a_number").count == 3
    assert reading.events[0]["duration_ns"] is None


def test_invalid_bytes_in_a_field_that_no_column_needs_do_no_harm(read_kineto: Read) -> None:
    reading = read_kineto(b'[{"ph": "X", "name": "gloo:x", "ts": 1, "args": {"Call stack": "\xff"}}]')
    assert reading.rows("argument")[0]["args"] == '{"Call stack": "\N{REPLACEMENT CHARACTER}"}'


@pytest.mark.parametrize("unit_bytes", [1, 150, 100_000])
@pytest.mark.parametrize(
    "damaged",
    [
        '{"ph": "X", "name": "foo "bar" baz", "ts": 1}',
        '{"ph": "X", "name": "never closed, "ts": 1}',
        '{"ph": "X", "name" "a", "ts": 1}',
        '{"ph": "X", "name": "deep", "args": {"a": ' + "[" * 5000 + "]" * 5000 + "}}",
        '{"ph": "X", "ts": 01}',
        '{"ph": "X", "args": {"a": 1}',
    ],
    ids=["unescaped quotes", "open text", "no colon", "nesting bomb", "bad number", "missing brace"],
)
def test_an_event_beyond_repair_costs_only_itself(read_kineto: Read, damaged: str, unit_bytes: int) -> None:
    reading = read_kineto(trace(event(0), event(1), damaged, event(3), event(4)), unit_bytes=unit_bytes)
    assert reading.names == ["op 0", "op 1", "op 3", "op 4"]
    assert [row["event_id"] for row in reading.events] == [0, 1, 3, 4]
    assert reading.issue("kineto_undecodable_event").lost_events == 1
    place = len(HEAD) + 2 * len(event(0)) + 4
    assert reading.issue("kineto_undecodable_event").first_at == f"byte {place}"
    assert counted(reading)


def test_a_damaged_last_event_leaves_the_members_behind_it_readable(read_kineto: Read) -> None:
    text = trace(event(0), '{"ph": "X", "name": "a "b"", "ts": 1}').replace(
        '"traceName"', '"baseTimeNanoseconds": 7, "traceName"'
    )
    reading = read_kineto(text)
    assert reading.names == ["op 0"]
    assert json.loads(reading.rows("profile")[0]["metadata"])["traceName"] == "x"
    assert reading.rows("profile")[0]["base_time_ns"] == 7
    assert counted(reading)


@pytest.mark.parametrize("unit_bytes", [1, 150, 100_000])
def test_elements_that_are_no_objects_are_counted(read_kineto: Read, unit_bytes: int) -> None:
    text = trace(event(0), "5, null", '[{"a": 1}, {"b": 2}]', event(4), '"text"')
    reading = read_kineto(text, unit_bytes=unit_bytes)
    assert [(row["event_id"], row["name"]) for row in reading.events] == [(0, "op 0"), (4, "op 4")]
    assert reading.issue("kineto_not_an_object").lost_events == 4
    assert reading.summary.event_count == 6


@pytest.mark.parametrize(
    "separator", ["", ",,", "] , ", "} , "], ids=["missing comma", "two commas", "bracket", "brace"]
)
def test_damage_between_events_loses_none(read_kineto: Read, separator: str) -> None:
    reading = read_kineto(HEAD + event(0) + separator + event(1) + FOOT)
    assert reading.names == ["op 0", "op 1"]
    assert set(reading.codes) == {"kineto_damaged_separator"}


def test_a_trailing_comma_is_forgiven(read_kineto: Read) -> None:
    reading = read_kineto(HEAD + event(0) + ",\n" + FOOT)
    assert reading.names == ["op 0"]
    assert reading.codes == ["kineto_damaged_separator"]


def test_values_of_unexpected_types_cost_only_themselves(read_kineto: Read) -> None:
    odd = {
        "ph": "X", "cat": 5, "name": ["a"], "pid": 1.5, "tid": True, "ts": 1, "dur": {"a": 1}, "id": "x",
        "args": {"correlation": "17", "External id": 2.0, "stream": "seven", "device": None, "bytes": [1]},
    }  # fmt: skip
    reading = read_kineto([json.loads(event(0)), odd, json.loads(event(2))])
    row = reading.events[1]
    assert (row["phase"], row["category"], row["name"]) == ("X", "5", '["a"]')
    assert (row["raw_start_ns"], row["duration_ns"]) == (1000, None)
    assert (row["correlation"], row["external_id"], row["stream"], row["size_bytes"]) == (17, 2, None, None)
    assert [(track["process"], track["thread"]) for track in reading.rows("track")] == [("1", "1"), ("1.5", "true")]
    # then the category, the name, the duration, the stream and the bytes are counted
    assert reading.issue("kineto_wrong_type").count == 5
    assert reading.issue("kineto_wrong_type").first_at == "event 1"


@pytest.mark.parametrize("args", ["null", '"text"', "[1]", "7"])
def test_arguments_that_are_no_object_are_not_read(read_kineto: Read, args: str) -> None:
    reading = read_kineto('[{"ph": "X", "name": "a", "ts": 1, "args": ' + args + "}]")
    assert reading.names == ["a"]
    assert ("kineto_wrong_type" in reading.codes) == (args != "null")


def test_integers_that_do_not_fit_become_null_and_are_counted(read_kineto: Read) -> None:
    reading = read_kineto(
        [
            {"ph": "X", "ts": 1, "args": {"correlation": 2**63, "External id": 2**63 - 1, "stream": 2**31}},
            {"ph": "s", "ts": 1, "id": 2**64},
            {"ph": "X", "ts": 10**30, "dur": 10**30},
        ]
    )
    first, flow, last = reading.events
    assert (first["correlation"], first["external_id"], first["stream"]) == (None, 2**63 - 1, None)
    assert flow["flow_id"] is None
    assert (last["raw_start_ns"], last["duration_ns"]) == (None, None)
    assert reading.issue("kineto_out_of_range").count == 5


def test_a_negative_duration_becomes_zero_and_is_counted(read_kineto: Read) -> None:
    reading = read_kineto([{"ph": "X", "ts": 1, "dur": 2}, {"ph": "X", "ts": -1.5, "dur": -0.5}])
    assert [row["duration_ns"] for row in reading.events] == [2000, 0]
    assert reading.events[1]["raw_start_ns"] == -1500
    assert reading.issue("kineto_negative_duration").first_at == "event 1"


def test_an_event_without_a_start_is_stored_and_counted_unless_it_is_metadata(read_kineto: Read) -> None:
    reading = read_kineto([{"ph": "M", "name": "process_name", "pid": 1}, {"ph": "X", "name": "a"}])
    assert [row["raw_start_ns"] for row in reading.events] == [None, None]
    assert reading.issue("kineto_event_without_timestamp").count == 1


def test_of_a_repeated_key_the_last_counts(read_kineto: Read) -> None:
    reading = read_kineto('[{"ph": "X", "name": "a", "name": "b", "ts": 1, "ts": 2}]')
    assert [(row["name"], row["raw_start_ns"]) for row in reading.events] == [("b", 2000)]


@pytest.mark.parametrize("unit_bytes", [1, 100_000])
def test_a_second_list_of_events_is_read_too(read_kineto: Read, unit_bytes: int) -> None:
    text = '{"traceEvents": [' + event(0) + '], "traceEvents": [' + event(1) + "," + event(2) + "]}"
    assert read_kineto(text, unit_bytes=unit_bytes).names == ["op 0", "op 1", "op 2"]


@pytest.mark.parametrize("head", ["", "["], ids=["object", "list"])
def test_bytes_behind_the_trace_are_counted(read_kineto: Read, head: str) -> None:
    text = ("[" + event(0) + "]" if head else trace(event(0))) + "\ngarbage"
    reading = read_kineto(text)
    assert reading.names == ["op 0"]
    assert reading.codes == ["kineto_trailing_data"]
    assert reading.issue("kineto_trailing_data").first_at == f"byte {len(text) - 7}"


def test_the_events_of_another_trace_behind_the_trace_are_counted_as_lost(read_kineto: Read) -> None:
    reading = read_kineto(trace(event(0)) + trace(event(1), event(2)))
    assert reading.names == ["op 0"]
    assert reading.issue("kineto_trailing_data").lost_events == 2
    assert counted(reading)


def test_a_damaged_header_does_not_cost_the_events(read_kineto: Read) -> None:
    reading = read_kineto('{"schemaVersion": 1, "odd": nope, "traceEvents": [' + event(0) + FOOT)
    assert reading.names == ["op 0"]
    assert reading.codes == ["kineto_unreadable_metadata"]
    assert reading.rows("profile")[0]["schema_version"] == 1


def test_a_nested_list_of_the_same_name_is_not_the_list_of_events(read_kineto: Read) -> None:
    reading = read_kineto({"other": {"traceEvents": [1, 2]}, "traceEvents": [json.loads(event(0))]})
    assert reading.names == ["op 0"]
    assert json.loads(reading.rows("profile")[0]["metadata"]) == {"other": {"traceEvents": [1, 2]}}


def test_texts_that_look_like_boundaries_are_no_boundaries(read_kineto: Read) -> None:
    tricky = {"ph": "X", "name": '"},  {"', "ts": 1, "args": {"a": [{"b": 1}, {"c": '\\"},{'}], "d": {"e": [{}, {}]}}}
    events = [{**tricky, "ts": number} for number in range(20)]
    for unit_bytes in range(1, 300, 7):
        reading = read_kineto({"traceEvents": events}, unit_bytes=unit_bytes)
        assert [row["raw_start_ns"] for row in reading.events] == [1000 * number for number in range(20)]
        assert reading.summary.issues == ()


def test_one_event_larger_than_many_units_is_read(read_kineto: Read) -> None:
    large = {"ph": "X", "name": "large", "ts": 1, "args": {"list": [{"a": number} for number in range(5000)]}}
    reading = read_kineto([json.loads(event(0)), large, json.loads(event(2))], unit_bytes=1000)
    assert reading.names == ["op 0", "large", "op 2"]
    assert reading.summary.issues == ()


def test_one_event_of_50_mb_is_read(read_kineto: Read) -> None:
    large = json.dumps({"ph": "X", "name": "large", "ts": 1, "args": {"Call stack": "x" * 50_000_000}})
    reading = read_kineto("[" + event(0) + "," + large + "," + event(2) + "]")
    assert reading.names == ["op 0", "large", "op 2"]
    assert reading.summary.issues == ()


@pytest.mark.parametrize(
    "bomb",
    ["[" * 500_000, '{"ph":"X","args":' + '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000],
    ids=["lists", "objects", "closed lists"],
)
def test_nesting_without_an_end_is_passed_over_in_little_time(read_kineto: Read, bomb: str) -> None:
    reading = read_kineto("[" + event(0) + "," + bomb)
    assert reading.names == ["op 0"]
    assert reading.summary.issues
    assert counted(reading)
