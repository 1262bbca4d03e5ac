"""`rocpd` databases of rocprofv3. In: a job that was run. Out: `rankR_results.db`, a file a rank.

By the schema that rocprofiler-sdk 1.0 to 1.1 writes (schema 3), as no public file was known: the tables of a process
share a suffix, names are numbers of a table of strings. Not written: views, counters, allocations.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from traceforge.synth.rocm_records import COPY, DISPATCH, RocmRecord, records_of
from traceforge.synth.scenario import SimulatedJob

_SCHEMA = """
CREATE TABLE rocpd_string{u} (id INTEGER PRIMARY KEY, guid TEXT, string TEXT NOT NULL);
CREATE TABLE rocpd_info_node{u} (id INTEGER PRIMARY KEY, guid TEXT, hostname TEXT);
CREATE TABLE rocpd_info_process{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER);
CREATE TABLE rocpd_info_agent{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, type TEXT, product_name TEXT);
CREATE TABLE rocpd_info_kernel_symbol{u} (id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, display_name TEXT);
CREATE TABLE rocpd_event{u} (id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER);
CREATE TABLE rocpd_region{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER,
  start BIGINT NOT NULL, "end" BIGINT NOT NULL, name_id INTEGER, event_id INTEGER);
CREATE TABLE rocpd_kernel_dispatch{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER,
  agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER,
  start BIGINT NOT NULL, "end" BIGINT NOT NULL, event_id INTEGER);
CREATE TABLE rocpd_memory_copy{u} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER,
  start BIGINT NOT NULL, "end" BIGINT NOT NULL, name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER,
  size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER);
"""
_CPU = 1
_NODE, _QUEUE = 1, 1
_PID = 900


def write_rocpd(job: SimulatedJob, rank: int, path: Path) -> None:
    """Write the file of one rank."""
    path.unlink(missing_ok=True)
    suffix, guid = f"_{rank:08x}", f"{rank:08x}"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_SCHEMA.replace("{u}", suffix))
        process = _ProcessTables(connection, suffix, guid, _PID + rank)
        process.add_node(job.scenario.cluster.host_of(rank), job.scenario.cluster.devices)
        process.add_records(records_of(job, rank))
        connection.commit()


class _ProcessTables:
    def __init__(self, connection: sqlite3.Connection, suffix: str, guid: str, pid: int) -> None:
        self._connection = connection
        self._suffix, self._guid, self._pid = suffix, guid, pid

    def _insert(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        numbered = [(number, self._guid, *row) for number, row in enumerate(rows, start=1)]
        if numbered:
            marks = ", ".join("?" * len(numbered[0]))
            self._connection.executemany(f"INSERT INTO rocpd_{table}{self._suffix} VALUES ({marks})", numbered)

    def add_node(self, host: str, devices: int) -> None:
        self._insert("info_node", [(host,)])
        self._insert("info_process", [(_NODE, self._pid)])
        agents = [("CPU", "CPU"), *([("GPU", "AMD Instinct MI300X")] * devices)]
        self._insert("info_agent", [(_NODE, *agent) for agent in agents])

    def add_records(self, records: list[RocmRecord]) -> None:
        strings = _numbered(text for one in records for text in (one.kind, one.name))
        kernels = _numbered(one.name for one in records if one.kind == DISPATCH)
        self._insert("string", [(text,) for text in strings])
        self._insert("info_kernel_symbol", [(f"{name.partition('(')[0]}.kd", name) for name in kernels])
        self._insert("event", [(strings[one.kind], one.correlation) for one in records])
        regions, dispatches, copies = [], [], []
        place = (_NODE, self._pid, self._pid)
        for event, one in enumerate(records, start=1):
            times, gpu = (one.start_ns, one.end_ns), _CPU + 1 + one.device
            if one.kind == DISPATCH:
                ran = (gpu, kernels[one.name], event, _QUEUE, one.stream)
                dispatches.append((*place, *ran, *times, event))
            elif one.kind == COPY:
                to_and_from = (_CPU, gpu) if one.name.endswith("TO_HOST") else (gpu, _CPU)
                moved = (one.size_bytes, _QUEUE, one.stream)
                copies.append((*place, *times, strings[one.name], *to_and_from, *moved, event))
            else:
                regions.append((*place, *times, strings[one.name], event))
        self._insert("region", regions)
        self._insert("kernel_dispatch", dispatches)
        self._insert("memory_copy", copies)


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts), start=1)}
