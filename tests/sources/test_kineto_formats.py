"""What PyTorch wrote from 1.8 to 2.13, and what other tools made of it, reads to the same rows."""

import gzip
import json
from pathlib import Path

import pytest

from tests.sources.reading import Read
from traceforge.errors import InputUnusableError, NotATraceError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.kineto import SOURCE

KERNEL = {
    "ph": "X", "cat": "kernel", "name": "ncclKernel", "pid": 0, "tid": 7, "ts": 100, "dur": 25,
    "args": {"External id": 5, "device": 0, "stream": 7, "correlation": 11},
}  # fmt: skip
OP = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 42, "tid": 43, "ts": 90.5, "dur": 3}


def test_an_event_becomes_a_row_with_typed_columns(read_kineto: Read) -> None:
    reading = read_kineto({"schemaVersion": 1, "traceEvents": [KERNEL]})
    assert reading.events == [
        {
            "event_id": 0,
            "correlation": 11,
            "external_id": 5,
            "stream": 7,
            "device": 0,
            "size_bytes": None,
            "record_function_id": None,
            "flow_id": None,
            "raw_start_ns": 100_000,
            "duration_ns": 25_000,
            "phase": "X",
            "category": "kernel",
            "name": "ncclKernel",
            "track_id": 0,
        }
    ]
    assert reading.summary.event_count == reading.summary.stored_count == 1
    assert reading.summary.issues == ()


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("unit_bytes", [1, 7, 64, 100_000])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"schemaVersion": 1, "traceEvents": [KERNEL, OP], "traceName": "a"}),
        json.dumps({"traceEvents": [KERNEL, OP], "schemaVersion": 1}, indent=4),
        json.dumps({"traceEvents": [KERNEL, OP]}, separators=(",", ":")),
        json.dumps([KERNEL, OP]),
        "\n\n" + json.dumps([KERNEL, OP], indent=1) + "\n",
        "\ufeff" + json.dumps({"traceEvents": [KERNEL, OP]}),
        json.dumps(
            {"deviceProperties": [{"id": 0}, {"id": 1}], "traceEvents": [KERNEL, OP], "more": [{"a": 1}, {"b": 2}]}
        ),
    ],
    ids=["metadata first", "metadata last", "dense", "list", "indented list", "byte order mark", "objects around"],
)
def test_layout_compression_and_unit_size_change_nothing(
    read_kineto: Read, text: str, unit_bytes: int, compress: bool
) -> None:
    reading = read_kineto(text, compress=compress, unit_bytes=unit_bytes)
    assert reading.names == ["ncclKernel", "aten::add"]
    assert [event["raw_start_ns"] for event in reading.events] == [100_000, 90_500]
    assert reading.summary.issues == ()


def test_batches_are_bounded_and_keep_their_order(read_kineto: Read) -> None:
    events = [{"ph": "i", "name": f"mark {number}", "ts": number} for number in range(1000)]
    reading = read_kineto({"traceEvents": events}, unit_bytes=500, batch_rows=100)
    sizes = [batch.rows.height for batch in reading.batches if batch.table == "raw.occurrence"]
    assert len(sizes) > 5
    assert max(sizes) < 120
    assert reading.names == [event["name"] for event in events]
    assert [event["event_id"] for event in reading.events] == list(range(1000))


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("base_stands", ["first", "last"])
def test_the_base_time_is_added_wherever_it_stands(read_kineto: Read, base_stands: str, compress: bool) -> None:
    base = {"displayTimeUnit": "ms", "baseTimeNanoseconds": 1_711_964_646_000_000_000}
    events = {"traceEvents": [{"ph": "X", "name": "a", "ts": 4458676983543.183, "dur": 1.25}]}
    trace = {**base, **events} if base_stands == "first" else {**events, **base}
    reading = read_kineto(trace, compress=compress)
    assert reading.events[0]["raw_start_ns"] == 1_711_964_646_000_000_000 + 4_458_676_983_543_183
    assert reading.events[0]["duration_ns"] == 1250
    assert reading.rows("profile")[0]["base_time_ns"] == 1_711_964_646_000_000_000


def test_a_base_time_inside_an_event_is_none_of_the_file(read_kineto: Read) -> None:
    event = {"ph": "X", "name": "a", "ts": 5, "args": {"baseTimeNanoseconds": 1000}}
    reading = read_kineto({"traceEvents": [event]})
    assert reading.events[0]["raw_start_ns"] == 5000
    assert reading.rows("profile")[0]["base_time_ns"] == 0


def test_starts_since_the_epoch_need_no_base_time(read_kineto: Read) -> None:
    reading = read_kineto('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1712195495505582.988}]}')
    assert reading.events[0]["raw_start_ns"] == 1_712_195_495_505_582_988


def test_the_file_row_holds_what_the_file_says_about_itself(read_kineto: Read) -> None:
    # given the header of PyTorch 2.13 and members behind the events
    reading = read_kineto(
        {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
            "distributedInfo": {
                "backend": "nccl", "rank": 3, "world_size": 8, "nccl_version": "2.29.7", "pg_count": 2,
                "pg_config": [
                    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "gl", "pg_size": 8, "ranks": [0, 1, 2]},
                    {"pg_name": "1", "pg_desc": "mesh_dp", "backend_config": "nccl", "pg_size": 2, "ranks": "[0, 4]"},
                ],
            },
            "host_name": "node-7",
            "trace_id": "ABC",
            "traceEvents": [OP],
            "traceName": "x.json",
        }
    )  # fmt: skip
    # then the summary, the file's row and its process groups repeat it
    assert (reading.summary.kind, reading.summary.rank, reading.summary.world_size) == ("kineto", 3, 8)
    assert reading.summary.host == "node-7"
    (file,) = reading.rows("profile")
    assert file["schema_version"] == 1
    assert (file["backend"], file["nccl_version"], file["device_name"]) == ("nccl", "2.29.7", "NVIDIA H100")
    assert (file["rank"], file["world_size"], file["host_name"], file["trace_id"]) == (3, 8, "node-7", "ABC")
    metadata = json.loads(file["metadata"])
    assert "traceEvents" not in metadata
    assert metadata["traceName"] == "x.json"
    assert metadata["distributedInfo"]["pg_count"] == 2
    assert [group["description"] for group in reading.rows("process_group")] == ["default_pg", "mesh_dp"]
    assert [group["ranks"] for group in reading.rows("process_group")] == ["[0, 1, 2]", "[0, 4]"]


def test_a_list_of_events_knows_nothing_about_itself(read_kineto: Read) -> None:
    reading = read_kineto([OP])
    assert (reading.summary.rank, reading.summary.world_size, reading.summary.host) == (None, None, None)
    assert reading.rows("profile")[0]["metadata"] == "{}"


def test_pytorch_1_8_reads_with_texts_as_threads_and_lower_case_keys(read_kineto: Read) -> None:
    reading = read_kineto(
        [
            {"ph": "X", "cat": "Operator", "name": "a", "pid": 67844, "tid": "4093687616", "ts": "13", "dur": "7"},
            {
                "ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 1,
                "args": {"external id": 4, "stream": 7, "correlation": 9},
            },
        ]
    )  # fmt: skip
    assert [event["category"] for event in reading.events] == ["Operator", "Kernel"]
    assert [event["raw_start_ns"] for event in reading.events] == [13_000, 20_000]
    assert [event["external_id"] for event in reading.events] == [None, 4]
    assert [track["thread"] for track in reading.rows("track")] == ["4093687616", "stream 7"]
    assert reading.summary.issues == ()


def test_every_phase_is_a_row(read_kineto: Read) -> None:
    phases = ["X", "M", "s", "f", "t", "C", "i", "B", "E", None]
    events = [{"ph": phase, "name": "n", "ts": 1} if phase else {"name": "n", "ts": 1} for phase in phases]
    reading = read_kineto({"traceEvents": events})
    assert [event["phase"] for event in reading.events] == phases


def test_flow_ids_are_read_from_numbers_and_texts_but_only_for_flows(read_kineto: Read) -> None:
    reading = read_kineto(
        [
            {"ph": "s", "id": 246, "ts": 1},
            {"ph": "f", "id": "246", "ts": 1},
            {"ph": "t", "id": "0xf6", "ts": 1},
            {"ph": "b", "id": "anything", "ts": 1},
            {"ph": "X", "id": 5, "ts": 1},
        ]
    )
    assert [event["flow_id"] for event in reading.events] == [246, 246, 246, None, None]
    assert reading.summary.issues == ()


def test_bytes_of_copies_and_of_memory_events_share_a_column(read_kineto: Read) -> None:
    reading = read_kineto([{"ph": "X", "ts": 1, "args": {"bytes": 8}}, {"ph": "i", "ts": 1, "args": {"Bytes": -512}}])
    assert [event["size_bytes"] for event in reading.events] == [8, -512]


def test_cupti_s_mark_for_no_stream_is_null_without_an_issue(read_kineto: Read) -> None:
    reading = read_kineto([{"ph": "X", "name": "Context Sync", "ts": 1, "args": {"stream": 4294967295}}])
    assert reading.events[0]["stream"] is None
    assert reading.summary.issues == ()


def test_metadata_events_name_tracks_wherever_they_stand(read_kineto: Read) -> None:
    # given names that follow the events they concern
    reading = read_kineto(
        [
            {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 5},
            {"ph": "X", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 5},
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "args": {"labels": "CPU"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "thread 2 (python)"}},
            {"ph": "M", "name": "process_sort_index", "pid": 1, "tid": 0, "args": {"sort_index": 5}},
            {"ph": "i", "name": "c", "ts": 6},
        ]
    )
    # then every track carries its names, metadata events are rows too, and an event without a track has none
    assert reading.rows("track") == [
        {"track_id": 0, "process": "1", "thread": "2", "process_name": "python", "process_labels": "CPU",
         "thread_name": "thread 2 (python)"},
        {"track_id": 1, "process": "Spans", "thread": "PyTorch Profiler", "process_name": None, "process_labels": None,
         "thread_name": None},
        {"track_id": 2, "process": "1", "thread": "0", "process_name": "python", "process_labels": "CPU",
         "thread_name": None},
    ]  # fmt: skip
    assert [event["track_id"] for event in reading.events] == [0, 1, 2, 2, 0, 2, None]
    assert reading.summary.issues == ()


def test_progress_adds_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps([OP] * 20_000).encode(), mtime=0))
    reported: list[int] = []
    SOURCE.read(path, lambda _batch: None, ReadOptions(report_progress=reported.append))
    assert sum(reported) == path.stat().st_size


def test_a_file_with_a_huge_number_of_different_names_keeps_them_all(read_kineto: Read) -> None:
    events = [{"ph": "X", "name": f"step {number}", "pid": 1, "tid": 1, "ts": number} for number in range(40_000)]
    reading = read_kineto({"traceEvents": events}, batch_rows=10_000)
    assert reading.names == [event["name"] for event in events]
    assert len(reading.rows("track")) == 1


def test_the_source_reads_a_file_by_its_public_border(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [OP]}))
    batches: list[Batch] = []
    summary = SOURCE.read(path, batches.append, ReadOptions())
    assert summary.event_count == 1
    assert [batch.table for batch in batches] == [
        "raw.event_kind",
        "raw.occurrence",
        "raw.profile",
        "raw.track",
    ]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", InputUnusableError, "the file is empty"),
        (b"   \n", InputUnusableError, "the file is empty"),
        ("[{}]".encode("utf-16"), InputUnusableError, "the text is UTF-16; a trace is UTF-8"),
        (b"step 1 loss 0.3\n", NotATraceError, "not JSON: it begins with neither { nor ["),
        (b'{"schema": "1.0.1", "nodes": []}', NotATraceError, "without `traceEvents`"),
        (b'{"traceEvents": null}', NotATraceError, "without `traceEvents`"),
        (b'{"schemaVersion": 1, "deviceProp', NotATraceError, "the file ends at byte 32 without `traceEvents`"),
    ],
)  # fmt: skip
def test_a_file_without_events_to_read_is_refused_with_a_hint(
    read_kineto: Read, content: bytes, error: type[InputUnusableError], message: str
) -> None:
    with pytest.raises(error) as caught:
        read_kineto(content)
    assert message in caught.value.what
    assert caught.value.where
    assert caught.value.hint


def test_an_empty_list_of_events_is_reported(read_kineto: Read) -> None:
    reading = read_kineto({"schemaVersion": 1, "distributedInfo": {"rank": 2}, "traceEvents": []})
    assert (reading.summary.event_count, reading.summary.rank) == (0, 2)
    assert reading.codes == ["kineto_no_events"]
    assert len(reading.rows("profile")) == 1


@pytest.mark.parametrize(
    "events",
    [
        [{"ph": "X", "cat": "devtools.timeline", "name": "RunTask", "pid": 1, "tid": 1, "ts": 5, "dur": 1}],
        [{"ph": "X", "name": "Source", "pid": 1, "tid": 1, "ts": 5, "dur": 1}],
        [OP, {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "Ascend Hardware"}}],
    ],
    ids=["other categories", "no category", "a device without categories"],
)
def test_what_another_tool_wrote_is_no_trace(tmp_path: Path, events: list[dict[str, object]]) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))

    with pytest.raises(NotATraceError, match=r"of another tool|Ascend"):
        SOURCE.read(path, lambda _batch: None, ReadOptions())


def test_events_that_begin_and_end_apart_are_kept_and_said_to_have_no_duration(read_kineto: Read) -> None:
    apart = [{**OP, "ph": "B"}, {**OP, "ph": "E", "ts": 95}, {**OP, "ph": "B", "cat": "of_another"}]

    reading = read_kineto([OP, *apart, *apart])

    assert reading.summary.stored_count == 7
    assert [(issue.code, issue.count, issue.lost_events) for issue in reading.summary.issues] == [
        ("kineto_begin_and_end", 1, 0)
    ]


def test_ranks_that_were_merged_into_one_file_are_not_taken_for_one(tmp_path: Path) -> None:
    # given what SGLang writes beside the traces of its ranks
    events = []
    for rank in range(2):
        pid = f"[TP{rank:02d}] {700 + rank}"
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": "CPU"}})
        events.append({**OP, "pid": pid})
    path = tmp_path / "merged.trace.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0, "world_size": 2}}))

    with pytest.raises(InputUnusableError, match="of 2 processes were merged into one file"):
        SOURCE.read(path, lambda _batch: None, ReadOptions())


def test_ascend_s_layers_of_one_process_are_not_taken_for_merged_ranks(tmp_path: Path) -> None:
    # given the timeline of one rank, in which PyTorch and CANN both are labelled as of the CPU
    layers = [(1, "Python", "CPU"), (2, "CANN", "CPU"), (3, "Ascend Hardware", "NPU")]
    events = [OP]
    for pid, name, label in layers:
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}})
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events))

    with pytest.raises(InputUnusableError, match="Ascend's timeline is not read"):
        SOURCE.read(path, lambda _batch: None, ReadOptions())


@pytest.mark.parametrize("beside", [{}, {"traceName": "a"}], ids=["a known category", "a key of the header"])
def test_one_sign_of_the_profiler_makes_it_a_trace(tmp_path: Path, beside: dict[str, object]) -> None:
    path = tmp_path / "trace.json"
    own = {"ph": "X", "name": "forward", "ts": 1, "dur": 1}
    path.write_text(json.dumps({"traceEvents": [own] if beside else [own, OP], **beside}))

    assert SOURCE.read(path, lambda _batch: None, ReadOptions()).stored_count == (1 if beside else 2)
