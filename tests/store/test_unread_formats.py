"""Files of formats that are known and not read are refused by one sentence that names what to use instead."""

import gzip
import pickle
from pathlib import Path

import pytest

from tests.given import rows_of
from traceforge import api
from traceforge.errors import NotATraceError
from traceforge.store.database import Store
from traceforge.store.unread_formats import unread_hint

COMMANDS = {
    "traces.zip": (b"PK\x03\x04", "unpack traces.zip first"),
    "rank0.json": (b"PK\x03\x04\x14\0", "unpack rank0.json first"),
    "rank0.json.bz2": (b"BZh91AY&SY", "unpack rank0.json.bz2 first"),
    "traces.tar.xz": (b"\xfd7zXZ\0\0\x04", "unpack traces.tar.xz first"),
    "rank0.json.lz4": (b"\x04\x22\x4d\x18\x64", "unpack rank0.json.lz4 first"),
    "twice.json.gz": (gzip.compress(gzip.compress(b"{}")), "unpack twice.json.gz first"),
    "job.log": ("\ufeff# Collective".encode("utf-16-le"), "iconv -f UTF-16"),
    "job.nsys-rep": (b"\x00closed", "nsys export --type sqlite job.nsys-rep"),
    "old.qdrep": (b"", "nsys export --type sqlite old.qdrep"),
    "NVTX_EVENTS.parquet": (b"PAR1", "the whole folder"),
    "report.arrows": (b"\xff\xff\xff\xff", "nsys export --type sqlite report.nsys-rep"),
    "export": (b"ARROW1\0\0", "nsys export --type sqlite report.nsys-rep"),
    "export.h5": (b"\x89HDF\r\n", "nsys export --type sqlite report.nsys-rep"),
    "events.json": (b'{"Type":48,"CudaEvent":{"startNs":"17"}}', "nsys export --type sqlite report.nsys-rep"),
    "stream": (b"\xff\xff\xff\xff\x10\x01\x00\x00\x10", "nsys export --type sqlite report.nsys-rep"),
    "lines.json": (b'{"data":["[Unknown]","' + b"x" * 5000, "nsys export --type sqlite report.nsys-rep"),
    "tables.json": (b'{"StringIds":[],"NVTX_EVENTS":[]}', "nsys export --type sqlite report.nsys-rep"),
    "908_kernel_trace.csv": (b'"Kind","Agent_Id","Start_Timestamp","End_Timestamp"\n', "--output-format json"),
    "results.csv": (b'"Index","KernelName","gpu-id","BeginNs","EndNs"\n', "--output-format json"),
    "1-of-8.json": (b'{"attempt": "a"}', "`traceforge merge FOLDER`"),
    "traces.otf2": (b"", "--output-format json"),
    "908_results.pftrace": (b"\x0a\x05abc", "--output-format json"),
    "host.trace.json": (b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[]}', ".xplane.pb"),
    "trace_view.json": (
        b'[{"name": "process_name", "pid": 7, "args": {"name": "Ascend Hardware"}, "ph": "M"}]',
        "traceforge.live",
    ),
    "nccl_profiler-7.json": (
        b'[\n{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": 7, "tid": 1, "ts": 14.5},',
        "NCCL's Inspector",
    ),
    "timeline.json": (b'[\n{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1},', "torch.profiler"),
    "pp_rank_0.json": (
        b'{"1": {"total": 20.5, "memory": 84.3, "fwd_start": [0.1], "fwd_end": [9.5]}}',
        "torch.profiler",
    ),
    "snapshot.pickle": (pickle.dumps({"segments": [], "device_traces": [[]]}, protocol=4), "torch.profiler"),
    "snapshot.json": (b'{"segments": [{"device": 0, "address": 1}], "device_traces": [[]]}', "torch.profiler"),
    "settings.json": (b'{"allocator_settings": {}, "device_traces": [[]], "segments": []}', "torch.profiler"),
    "mem.raw.json": (b"[[-1, 0, 1024, 0], [17000, 1, 2048, 1]]", "timelines of memory"),
    "old.json": (
        b'[{"name": "aten::add", "ph": "X", "ts": 1.5, "dur": 2.0, "tid": 1, "pid": "CPU functions", "args": {}}]',
        "shows no kernels",
    ),
    "cuda.json": (b'[{"name": "add", "ph": "X", "ts": 1.5, "tid": 0, "pid": "CUDA functions"}]', "shows no kernels"),
    "session.json": (b'[\n{"cat" : "Session","pid" :7,"ts" :5,"ph" : "X","name" :"session_run"}', "ONNX Runtime"),
    "pointer.json": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "git lfs pull"),
    "py.json": (b'{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{}}', "speedscope"),
    "ras.json": (b'{\n  "nccl_version": "2.29.1",\n  "communicators_count": 1,\n', "flight recorder"),
    "table.txt": (b"-" * 55 + b"  " + b"-" * 12 + b"  \n" + b" " * 40 + b"Name    Self CPU %", "export_chrome_trace"),
    "dmon.txt": (b"# gpu    pwr  gtemp  mtemp     sm\n# Idx      W      C\n    0     61     38", "--query-gpu"),
    "smi.xml": (b'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "x.dtd">\n', "--query-gpu"),
    "smi.txt": (b"Tue Nov 24\n+-----+\n| NVIDIA-SMI 550.90 |\n", "--query-gpu"),
    "noheader.csv": (b"2026/09/11 04:19:41.982, 0, 1410 MHz\n", "--query-gpu"),
    "heads.log": (b"[lib] load RCCL\nnode [0] NCCL INFO Kernel version: 6.8\n", "host:pid:tid"),
    "warnings.log": (b"\n[2026-08-23 09:56:59] node [1] src/p2p.cc:256 NCCL WARN call failed\n", "host:pid:tid"),
    "bare.log": (b"training begins\nNCCL INFO Using network Socket\n", "host:pid:tid"),
    "metrics": (b"# HELP DCGM_FI_DEV_SM_CLOCK SM clock\n", "query_range"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_told_by_name_or_content(tmp_path: Path, name: str) -> None:
    data, command = COMMANDS[name]
    (tmp_path / name).write_bytes(data)

    assert command in unread_hint([tmp_path / name])


def test_files_of_no_known_format_and_those_that_are_gone_get_no_advice(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a, b\n1, 2\n# gpus are slow\nlines = grep('NCCL INFO Using network')")

    assert unread_hint([tmp_path / "notes.txt", tmp_path / "none"]) == ""


def test_each_format_is_told_once(tmp_path: Path) -> None:
    for name in ("a.nsys-rep", "b.nsys-rep", "c.otf2"):
        (tmp_path / name).write_bytes(b"x")

    hint = unread_hint(sorted(tmp_path.iterdir()))

    assert (hint.count("nsys export"), hint.count("a.nsys-rep"), hint.count("OTF2")) == (1, 1, 1)


def test_alone_they_end_the_command_and_beside_traces_they_are_an_issue(tmp_path: Path) -> None:
    (tmp_path / "a.nsys-rep").write_bytes(b"\x00closed")
    with Store(None, is_kept=False) as store:
        with pytest.raises(NotATraceError) as refused:
            api.ingest([tmp_path], store, jobs=1)

        (tmp_path / "rank0.json.gz").write_bytes(
            gzip.compress(b'{"traceName": "a", "traceEvents": [{"ph": "X", "name": "a", "ts": 1}]}')
        )
        api.ingest([tmp_path], store, jobs=1)
        details = rows_of(store, "SELECT detail FROM meta.issue WHERE code = 'file_not_recognised'")

    assert "nsys export --type sqlite a.nsys-rep" in str(refused.value.hint)
    assert "nsys export --type sqlite a.nsys-rep" in str(details)


def test_a_trace_of_another_tool_beside_a_rank_s_is_left_out_and_is_no_damage(tmp_path: Path) -> None:
    of_compiler = b'{"traceEvents": [{"ph": "X", "name": "Source", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
    (tmp_path / "a.json").write_bytes(of_compiler)
    (tmp_path / "rank0.json").write_bytes(of_compiler.replace(b'"name"', b'"cat": "cpu_op", "name"'))

    with Store(None, is_kept=False) as store:
        api.ingest([tmp_path], store, jobs=1)
        issues = rows_of(store, "SELECT code, severity, lost_events FROM meta.issue WHERE stage = 'ingest'")
        paths = rows_of(store, "SELECT path FROM meta.source")

    assert issues == [("file_of_no_rank", "info", 0)]
    assert len(paths) == 1
    assert "rank0.json" in paths[0][0]
