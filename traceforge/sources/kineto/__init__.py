"""Kineto traces: the JSON files of the PyTorch profiler. In: a file. Out: rows of raw.profile and raw.event.

Idea: the file is read once, in units of some 256 KiB cut at event boundaries, each decoded into typed structs and
turned into columns at once, so that memory does not grow with the file; times keep every digit.
Seen: PyTorch 1.8 to 2.13 on CUDA, ROCm, MTIA and CPU, and what other tools made of such traces.
Not handled: execution traces (`nodes`), traces split over several files. Ascend's `trace_view.json`, Horovod's
timeline, what NCCL's example of a profiler plug-in, ONNX Runtime and PyTorch's profiler before 1.8 write are refused,
where their first bytes tell them; Chrome traces of any other tool where no event has a category of PyTorch's.

Modules in the order in which bytes pass them: opening, splitter (native where text is plain; else decode, or lenient,
elements where it is damaged), kinds, columns (exact_time), collectives, tracks, document, others;
issues counts what was lost.
"""

import re
from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_KEYS = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
_OTHER_FORMAT = re.compile(rb'"(?:nodes|workload_graph)"\s*:\s*\[|"schema"\s*:\s*"[^"]*(?:chakra|\d\.)')
# What JAX and TensorFlow write beside XPlane files: a copy of some events, without what tells their kinds.
_COPY_OF_XPLANE = re.compile(
    rb'\{\s*"displayTimeUnit"\s*:\s*"ns"\s*,\s*"(?:metadata"\s*:\s*\{\s*"highres-ticks"'
    rb'|traceEvents"\s*:.{0,2000}"/(?:host:CPU|device:[GT]PU:\d+)")',
    re.DOTALL,
)
# Ascend's events have no category that tells the device's from the host's, Horovod's timeline is of one process, and
# NCCL's example of a profiler plug-in writes a list of events that begin and end, on a clock of each process. PyTorch's
# profiler before 1.8 times operations on a device, which may rest in them; ONNX Runtime's kernels are of no training.
_OF_OTHERS = re.compile(
    rb'"name"\s*:\s*"(?:Ascend Hardware|NEGOTIATE_[A-Z]+)"'
    rb'|"cat"\s*:\s*"(?:GROUP|GROUP_API|COLL|P2P|PROXY)"\s*,\s*"ph"\s*:\s*"[be]"'
    rb'|"pid"\s*:\s*"(?:[CGNX]PU|CUDA) functions"|"cat"\s*:\s*"Session"'
)
_FIRST_OBJECT = re.compile(rb"\[\s*(\{.{0,4096})", re.DOTALL)
_PHASE = re.compile(rb'"ph"\s*:\s*"')
_TIME_OR_NAME = re.compile(rb'"(?:ts|name)"\s*:')


class KinetoSource:
    """The source `kineto`."""

    name = "kineto"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes are those of a Kineto or Chrome trace.

        An object with `traceEvents`, or with keys of Kineto's header before it; or a list of objects with `ph`.
        """
        if head.startswith(_UTF_16):
            head = head.decode("utf-16", "replace").encode()  # taken for what it is, to be refused with the reason
        text = head.removeprefix(_BOM).lstrip()
        if _OF_OTHERS.search(text):
            return False
        if text[:1] == b"{":
            if _COPY_OF_XPLANE.match(text):
                return False
            if _EVENTS.search(text):
                return True
            return bool(_HEADER_KEYS.search(text)) and not _OTHER_FORMAT.search(text)
        first = _FIRST_OBJECT.match(text)
        return bool(first and _PHASE.search(first[1]) and _TIME_OR_NAME.search(first[1]))

    def read(
        self, path: Path, emit: Callable[[Batch], None], options: ReadOptions, *, native: bool = True
    ) -> SourceSummary:
        """Read a file; batches hold some 120,000 events.

        Args:
            path: plain or compressed JSON.
            emit: takes each batch.
            options: what to keep, and what to call as it goes on.
            native: read plain events with the scanner in C, where it is installed; the result does not depend on it.

        Raises:
            InputUnusableError: nothing of the file can be used.
            NoRanksTraceError: another tool wrote it, or it holds several ranks.
        """
        from traceforge.sources.kineto.reader import read_file

        return read_file(path, emit, options, native=native, of_any_tool=False)


SOURCE: Source = KinetoSource()
