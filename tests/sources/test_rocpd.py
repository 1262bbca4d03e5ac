"""`rocpd` databases: by the schema that rocprofiler-sdk writes, made by hand."""

import sqlite3
from pathlib import Path

import pytest

from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.rocpd import SOURCE

SCHEMA = """
CREATE TABLE rocpd_string{u} (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
CREATE TABLE rocpd_info_node{u} (id INTEGER PRIMARY KEY, guid TEXT, hostname TEXT);
CREATE TABLE rocpd_info_agent{u} (id INTEGER PRIMARY KEY, guid TEXT, type TEXT, product_name TEXT);
CREATE TABLE rocpd_info_kernel_symbol{u} (id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, display_name TEXT);
CREATE TABLE rocpd_event{u} (id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER);
CREATE TABLE rocpd_region{u} (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, "end" BIGINT,
  name_id INTEGER, event_id INTEGER);
CREATE TABLE rocpd_kernel_dispatch{u} (id INTEGER PRIMARY KEY, tid INTEGER, agent_id INTEGER, kernel_id INTEGER,
  queue_id INTEGER, stream_id INTEGER, start BIGINT, "end" BIGINT, event_id INTEGER);
CREATE TABLE rocpd_memory_copy{u} (id INTEGER PRIMARY KEY, tid INTEGER, start BIGINT, "end" BIGINT, name_id INTEGER,
  dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER);
"""
ROWS = """
INSERT INTO rocpd_string{u} VALUES (1, '', 'HIP_RUNTIME_API_EXT'), (2, '', 'hipLaunchKernel'), (3, '', 'RCCL_API'),
  (4, '', 'ncclAllReduce'), (5, '', 'MEMORY_COPY_HOST_TO_DEVICE'), (6, '', 'MARKER_CORE_API'), (7, '', 'step 3');
INSERT INTO rocpd_info_node{u} VALUES (1, '', 'node7');
INSERT INTO rocpd_info_agent{u} VALUES (1, '', 'CPU', 'EPYC'), (2, '', 'GPU', 'MI300X'), (3, '', 'GPU', 'MI300X');
INSERT INTO rocpd_info_kernel_symbol{u} VALUES (1, '', '_Z4gemm.kd', 'gemm(float*)');
INSERT INTO rocpd_event{u} VALUES (1, '', 1, 50), (2, '', 3, 51), (3, '', 6, 52), (4, '', NULL, 50), (5, '', NULL, 53);
INSERT INTO rocpd_region{u} VALUES (1, 1, 1, 9, 100, 110, 2, 1), (2, 1, 1, 9, 120, 130, 4, 2),
  (3, 1, 1, 9, 0, 900, 7, 3);
INSERT INTO rocpd_kernel_dispatch{u} VALUES (1, 9, 3, 1, 4, 2, 150, 190, 4);
INSERT INTO rocpd_memory_copy{u} VALUES (1, 9, 10, 14, 5, 3, 1, 64, NULL, 2, 5);
"""
# The same rows as schema 4.1 holds them: places stand in tracks, categories in a table of their own.
TRACKS = """
CREATE TABLE rocpd_info_process{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER);
CREATE TABLE rocpd_info_category{u} (id INTEGER PRIMARY KEY, guid TEXT, name TEXT);
CREATE TABLE rocpd_track{u} (id INTEGER PRIMARY KEY, tid INTEGER, agent_id INTEGER, queue_id INTEGER,
  stream_id INTEGER);
INSERT INTO rocpd_info_process{u} VALUES (1, '', 1, 4711);
INSERT INTO rocpd_info_category{u} SELECT id, guid, string FROM rocpd_string{u} WHERE id IN (1, 3, 6);
UPDATE rocpd_string{u} SET string = 'no category' WHERE id IN (1, 3, 6);
INSERT INTO rocpd_track{u} VALUES (1, 9, NULL, NULL, NULL), (2, 9, 3, 4, 2);
ALTER TABLE rocpd_region{u} ADD COLUMN track_id INTEGER DEFAULT 1;
ALTER TABLE rocpd_region{u} DROP COLUMN tid;
ALTER TABLE rocpd_kernel_dispatch{u} ADD COLUMN track_id INTEGER DEFAULT 2;
ALTER TABLE rocpd_kernel_dispatch{u} DROP COLUMN agent_id;
ALTER TABLE rocpd_kernel_dispatch{u} DROP COLUMN stream_id;
ALTER TABLE rocpd_memory_copy{u} ADD COLUMN track_id INTEGER DEFAULT 2;
ALTER TABLE rocpd_memory_copy{u} DROP COLUMN stream_id;
"""
# And as schema 4.0 does: a time is a row of a table of times; some are missing there.
TIMES = TRACKS + """
CREATE TABLE rocpd_timestamp{u} (id INTEGER PRIMARY KEY, guid TEXT, value BIGINT);
""" + "".join(f"""
ALTER TABLE rocpd_{table}{{u}} ADD COLUMN start_id INTEGER;
ALTER TABLE rocpd_{table}{{u}} ADD COLUMN end_id INTEGER;
UPDATE rocpd_{table}{{u}} SET start_id = {n} + 2 * id, end_id = {n} + 2 * id + 1;
INSERT INTO rocpd_timestamp{{u}} SELECT start_id, '', start FROM rocpd_{table}{{u}};
INSERT INTO rocpd_timestamp{{u}} SELECT end_id, '', "end" FROM rocpd_{table}{{u}};
ALTER TABLE rocpd_{table}{{u}} DROP COLUMN start;
ALTER TABLE rocpd_{table}{{u}} DROP COLUMN "end";
""" for n, table in ((100, "region"), (200, "kernel_dispatch"), (300, "memory_copy")))  # fmt: skip


def database(path: Path, *suffixes: str, more: str = "") -> Path:
    connection = sqlite3.connect(path)
    for suffix in suffixes:
        connection.executescript((SCHEMA + ROWS + more).replace("{u}", suffix))
    connection.close()
    return path


def read(path: Path, part: str | None = None) -> Reading:
    batches: list[Batch] = []
    return Reading(SOURCE.read(path, batches.append, ReadOptions(part=part)), batches)


@pytest.mark.parametrize("more", ["", TRACKS, TIMES], ids=["schema 3", "schema 4.1", "schema 4.0"])
def test_calls_kernels_and_copies_are_joined_under_their_names(tmp_path: Path, more: str) -> None:
    reading = read(database(tmp_path / "a.db", "_018f", more=more))

    said = [
        (e["category"], e["name"], e["raw_start_ns"], e["duration_ns"], e["correlation"], e["device"], e["stream"])
        for e in reading.events
    ]
    assert said == [
        ("cuda_runtime", "hipLaunchKernel", 100, 10, 50, None, None),
        ("cpu_op", "ncclAllReduce", 120, 10, 51, None, None),
        ("user_annotation", "step 3", 0, 900, 52, None, None),
        ("kernel", "gemm(float*)", 150, 40, 50, 1, 2),
        ("gpu_memcpy", "Memcpy HtoD", 10, 4, 53, 1, 2),
    ]
    tracks = {row["track_id"]: (row["process"], row["thread"]) for row in reading.rows("track")}
    assert set(tracks.values()) == {("host", "9"), ("1", "stream 2")}
    assert reading.summary.host == "node7"
    assert reading.codes == []


def test_a_time_that_stands_in_no_row_of_the_table_of_times_is_none(tmp_path: Path) -> None:
    reading = read(database(tmp_path / "a.db", "", more=TIMES + "DELETE FROM rocpd_timestamp{u} WHERE value = 100;"))

    assert reading.issue("rocpd_event_without_timestamp").lost_events == 1
    assert [event["name"] for event in reading.events][:2] == ["ncclAllReduce", "step 3"]


def test_a_database_of_rocm_profile_data_is_refused_with_the_command_that_records(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "trace.rpd") as connection:
        connection.execute("CREATE TABLE rocpd_op (id INTEGER, gpuId INTEGER, start INTEGER, end INTEGER)")

    with pytest.raises(InputUnusableError, match="rocmProfileData") as caught:
        read(tmp_path / "trace.rpd")
    assert "rocprofv3 --kernel-trace" in str(caught.value.hint)


def test_a_marker_of_pytorch_is_an_operation_by_its_plain_name(tmp_path: Path) -> None:
    more = "UPDATE rocpd_string{u} SET string = 'aten::mm, seq = 3, op_id = 17' WHERE string = 'step 3';"

    reading = read(database(tmp_path / "a.db", "", more=more))

    assert ("cpu_op", "aten::mm") in [(event["category"], event["name"]) for event in reading.events]
    assert not [event for event in reading.events if event["category"] == "user_annotation"]


def test_each_process_is_a_part(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", "_018f", "_018e")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE rocpd_info_node_018f SET hostname = 'node8'")

    parts: list[str] = SOURCE.parts(path)  # type: ignore[attr-defined]

    assert [(part, read(path, part).summary.host) for part in parts] == [("_018e", "node7"), ("_018f", "node8")]
    assert len(read(path, "_018e").events) == 5


def test_what_has_no_times_is_counted_and_what_runs_backwards_lasts_nothing(tmp_path: Path) -> None:
    more = "INSERT INTO rocpd_region{u} VALUES (4, 1, 1, 9, NULL, 3, 2, 1), (5, 1, 1, 9, 30, 20, 2, 1);"

    reading = read(database(tmp_path / "a.db", "", more=more))

    assert reading.issue("rocpd_event_without_timestamp").lost_events == 1
    assert reading.issue("rocpd_negative_duration").count == 1
    assert [event["duration_ns"] for event in reading.events if event["raw_start_ns"] == 30] == [0]
    assert (reading.summary.event_count, reading.summary.stored_count) == (7, 6)


def test_what_does_not_fit_its_column_becomes_nothing_and_is_counted(tmp_path: Path) -> None:
    # given a text in the place of a number, and a stream that is too large
    more = "INSERT INTO rocpd_kernel_dispatch{u} VALUES (2, 9, 'x', 1, 4, 99999999999, 1, 2, 4);"

    reading = read(database(tmp_path / "a.db", "", more=more))

    event = reading.events[4]
    assert (event["name"], event["device"], event["stream"]) == ("gemm(float*)", None, None)
    assert reading.issue("rocpd_out_of_range").count == 2


def test_a_table_without_the_columns_that_are_needed_is_counted(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", "_1", more="ALTER TABLE rocpd_region{u} RENAME COLUMN event_id TO other_id;")

    reading = read(path)

    assert reading.issue("rocpd_not_read").count == 3
    assert "rocpd_region_1 3" in reading.issue("rocpd_not_read").detail
    assert [event["category"] for event in reading.events] == ["kernel", "gpu_memcpy"]


def test_another_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE rocpd_kernel_dispatch_1 (id INTEGER, start_id INTEGER, end_id INTEGER)")
    connection.close()

    with pytest.raises(InputUnusableError, match="schemas 3 and 4"):
        read(tmp_path / "a.db")


@pytest.mark.parametrize("cut", [200, 5_000, 20_000])
def test_a_damaged_file_is_refused_or_read_in_part(tmp_path: Path, cut: int) -> None:
    path = database(tmp_path / "a.db", "_018f")
    path.write_bytes(path.read_bytes()[:cut])

    assert SOURCE.recognises(database(tmp_path / "b.db", "_018f").read_bytes())
    with pytest.raises(InputUnusableError):
        read(path)


def test_a_range_without_a_text_keeps_its_category(tmp_path: Path) -> None:
    # given a marker whose text is bytes, as only a damaged database has it
    more = "UPDATE rocpd_string{u} SET string = x'00ff' WHERE id = 7;"

    reading = read(database(tmp_path / "a.db", "", more=more))

    assert ("user_annotation", None) in [(event["category"], event["name"]) for event in reading.events]
    assert len(reading.events) == 5
