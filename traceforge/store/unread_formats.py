"""Files of formats that are known and not read. In: files that no source recognised. Out: what to do instead.

Idea: most have a sibling that is read, which the same tool writes by another command; it is named. A format is known by
its name where it is closed, else by its first bytes. To add one: a row of `_FORMATS`.
Not handled: files of any other kind, of which nothing is said.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from traceforge.errors import InputUnusableError
from traceforge.files import read_head

_HEAD_BYTES = 4096
_MOST_FILES = 200
_ROCPROF = "rocprofv3 --kernel-trace --hip-trace --rccl-trace --marker-trace --output-format json --"
_SMI = "nvidia-smi --query-gpu=timestamp,index,uuid,clocks.sm,power.draw,temperature.gpu --format=csv -lms 100"


class _UnreadFormat(NamedTuple):
    """What to do with files of a format (`{name}` is one of them), and what tells it: its name, or how it begins."""

    hint: str
    named: str = ""
    begins: bytes = b""
    inside: str = ""  # how the folder above one of that name is called

    def fits(self, path: Path) -> bool:
        """Whether a file is of this format."""
        if self.named and re.search(self.named, path.name) and re.search(self.inside, path.parent.name):
            return True
        return bool(self.begins) and re.match(self.begins, _head(path), re.DOTALL) is not None


_FORMATS = (
    _UnreadFormat(
        "export reports of Nsight Systems first: nsys export --type sqlite {name}",
        named=r"\.(?:nsys-rep|qdrep|qdstrm)$",
    ),
    _UnreadFormat(
        "give the whole folder that nsys export --type parquetdir wrote, with StringIds.parquet",
        named=r"^(?:CUPTI_|NVTX_|StringIds).*\.parquet$",
    ),
    _UnreadFormat(
        "of Nsight Systems' exports SQLite and folders of Parquet are read: nsys export --type sqlite report.nsys-rep",
        named=r"\.(?:arrows?|h5|hdf5?)$|^(?:CUPTI_|NVTX_|StringIds).*\.jsonl$",
        # Arrow as file and as stream, HDF5, JSON by its events or by its first line, a list of all texts, or by tables.
        begins=rb'ARROW1|\xff{4}.{2}\0\0|\x89HDF|\s*\{\s*"data"\s*:\s*\[\s*"\[Unknown\]"'
        rb'|\s*[\[{].*"(?:CudaEvent|NvtxEvent|TraceProcessEvent|OsrtEvent|CUPTI_ACTIVITY_KIND_\w+|NVTX_EVENTS)"',
    ),
    _UnreadFormat(
        "these are parts that `ingest --part` read: `traceforge merge FOLDER` makes a database of them",
        named=r"^\d+-of-\d+\.json$",
    ),
    _UnreadFormat(
        "these are rows of a folder database that lacks its catalogue: copy it again as a whole, or ingest the traces",
        named=r"^[0-9a-f]{16}-\d{6}\.parquet$",
        inside=r"^source_id=\d+$",
    ),
    _UnreadFormat(
        f"CSV of rocprofv3 is not read: {_ROCPROF}",
        begins=rb'"?(?:Kind|Domain)"?,[^\n]*Start_Timestamp"?,|[^\n]*\bBeginNs"?,"?EndNs\b',
    ),
    _UnreadFormat(f"OTF2 is not read: {_ROCPROF}", named=r"\.otf2$"),
    _UnreadFormat(
        f"of Perfetto's files those of PyTorch's profiler are read; of AMD's, JSON: {_ROCPROF}",
        named=r"\.(?:pftrace|perfetto-trace)$",
    ),
    _UnreadFormat(
        "the JSON that JAX and TensorFlow write beside XPlane files lacks most of them: give the .xplane.pb files",
        begins=rb'\s*\{\s*"displayTimeUnit"\s*:\s*"ns"\s*,',
    ),
    _UnreadFormat(
        "Ascend's {name} is not read, as its device events have no category: record the steps with traceforge.live",
        begins=rb'\s*[\[{].*"name"\s*:\s*"Ascend Hardware"',
    ),
    _UnreadFormat(
        "what NCCL's example of a profiler plug-in wrote ({name}) has a clock of each process: use NCCL's Inspector",
        begins=rb'\s*\[.*"cat"\s*:\s*"(?:GROUP|GROUP_API|COLL|P2P|PROXY)"\s*,\s*"ph"\s*:\s*"[be]"',
    ),
    _UnreadFormat(
        "what NCCL's RAS says as JSON ({name}) is not read: give dumps of PyTorch's flight recorder",
        begins=rb'\s*\{\s*"nccl_version"\s*:.*"communicators_count"\s*:',
    ),
    _UnreadFormat(
        "Horovod's timeline ({name}) is what one process saw: record the steps on every rank with torch.profiler",
        begins=rb'\s*\[.*"name"\s*:\s*"NEGOTIATE_[A-Z]+"',
    ),
    _UnreadFormat(
        "passes of a pipeline whose ranks share no clock ({name}) are not read: record steps with torch.profiler",
        begins=rb'\s*\{\s*"\d+"\s*:\s*\{.*"fwd_start"\s*:\s*\[',
    ),
    _UnreadFormat(
        "PyTorch's snapshots of memory ({name}) tell of no time: record the steps with torch.profiler",
        begins=rb"\x80[\x02-\x05].{0,16}(?:X.{4}|\x8c.)(?:segments|device_traces)"
        rb'|\s*\{.*"(?:device_traces|allocator_settings|external_annotations)"\s*:'
        rb'|\s*\{\s*"segments"\s*:\s*\[\s*\{\s*"(?:device|address)"\s*:',
    ),
    _UnreadFormat(
        "PyTorch's timelines of memory ({name}) tell of no work: record the steps with torch.profiler",
        begins=rb"\s*\[\s*\[-?\d+, \d+, -?\d+, \d+\]",
    ),
    _UnreadFormat(
        "what PyTorch's profiler wrote before 1.8 or without Kineto ({name}) shows no kernels: use torch.profiler",
        begins=rb'\s*\[.*"pid"\s*:\s*"(?:[CGNX]PU|CUDA) functions"',
    ),
    _UnreadFormat(
        "ONNX Runtime's profile ({name}) is of one process: record the steps on every rank with torch.profiler",
        begins=rb'\s*\[.*"cat"\s*:\s*"Session"',
    ),
    _UnreadFormat(
        "{name} is a pointer of Git LFS, not the file itself: git lfs pull",
        begins=rb"version https://git-lfs\.github\.com/spec/v1\n",
    ),
    _UnreadFormat(
        "unpack {name} first, and give the folder",
        named=r"\.(?:zip|7z|rar)$",
        # zip, 7-Zip, bzip2, xz, lz4, and gzip within gzip.
        begins=rb"PK\x03\x04|7z\xbc\xaf\x27\x1c|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x04\x22\x4d\x18|\x1f\x8b\x08",
    ),
    _UnreadFormat(
        "{name} is text of UTF-16, as PowerShell's > writes: iconv -f UTF-16 -t UTF-8",
        begins=rb"\xff\xfe[^\0]\0|\xfe\xff\0",
    ),
    _UnreadFormat(
        "stacks for speedscope ({name}) tell of no device: record the steps on every rank with torch.profiler",
        begins=rb'\s*\{.*"https://www\.speedscope\.app/file-format-schema\.json"',
    ),
    _UnreadFormat(
        "the table that torch.profiler prints holds sums: prof.export_chrome_trace('rank0.pt.trace.json')",
        begins=rb"-{20,}[- ]*\n\s*Name\s+Self (?:CPU|CUDA|XPU)",
    ),
    _UnreadFormat(
        f"of nvidia-smi's output, CSV with its header is read: {_SMI}",
        begins=rb"\s*#\s*gpu\b|\s*<\?xml[^>]*>\s*<!DOCTYPE nvidia_smi_log|.{0,200}\| NVIDIA-SMI"
        rb"|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, ",
    ),
    _UnreadFormat(
        "a scrape tells of one moment: ask Prometheus for a range (/api/v1/query_range) and keep its JSON",
        begins=rb"# (?:HELP|TYPE) (?:DCGM_FI_|node_)",
    ),
    _UnreadFormat(
        "NCCL's lines in {name} lost their heads (host:pid:tid [device] NCCL INFO), which say whose they are: give the "
        "log as NCCL wrote it (NCCL_DEBUG_FILE), with other names for the hosts where theirs are secret",
        begins=rb"(?:.*\n)?(?:\[[^\]\n]*\] )?(?:[\w.-]+ )?(?:\[\d+\] )?(?:\S+:\d+ )?NCCL (?:INFO|WARN) \w",
    ),
)


def unread_hint(paths: Sequence[Path]) -> str:
    """What to do about files of formats that are known and not read, once for each; empty where there are none."""
    found: dict[_UnreadFormat, str] = {}
    for path in paths[:_MOST_FILES]:
        kind = next((one for one in _FORMATS if one.fits(path)), None)
        if kind is not None:
            found.setdefault(kind, kind.hint.format(name=path.name))
    return "; ".join(found.values())


def _head(path: Path) -> bytes:
    try:
        return read_head(path, _HEAD_BYTES)
    except (InputUnusableError, OSError):
        return b""
