"""Telemetry of devices beside traces. In: output of nvidia-smi, dcgmi or Prometheus. Out: raw.telemetry_* rows.

Idea: whatever the tool, a file is series of one quantity of one device (or NIC) each, under the same names and units.
Text may be UTF-16, as PowerShell writes it. Seen: CSV of `nvidia-smi --query-gpu`, tables of `dcgmi dmon` and answers
of Prometheus to range queries, as their documents and sources describe them. Not handled: XML of nvidia-smi,
`nvidia-smi dmon`, ROCm's tools, and answers of Prometheus to expressions, which do not say what they measure.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_MOST_HEAD_BYTES = 4096


class TelemetrySource:
    """The source `telemetry`."""

    name = "telemetry"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes are those of one of the three tools."""
        return _tool(head) is not None

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file.

        Raises:
            InputUnusableError: nothing of the file can be used.
        """
        from traceforge.files import read_head
        from traceforge.sources.telemetry.dcgm import read_dmon
        from traceforge.sources.telemetry.nvidia_smi import read_query
        from traceforge.sources.telemetry.prometheus import read_answer

        readers = {"nvidia_smi": read_query, "dcgm": read_dmon, "prometheus": read_answer}
        return readers[_tool(read_head(path)) or "prometheus"](path, emit, options)


SOURCE: Source = TelemetrySource()


def _tool(head: bytes) -> str | None:
    """Which tool wrote a file, by its first bytes."""
    from traceforge.reading.encoding import utf8_of

    text = utf8_of(head[:_MOST_HEAD_BYTES]).lstrip()
    if text.startswith(b"{"):
        is_answer = b'"resultType"' in text and b'"result"' in text and b'"data"' in text
        return "prometheus" if is_answer and b'"traceEvents"' not in text else None
    if text.startswith((b"#Entity", b"# Entity")):
        return "dcgm"
    first = text.partition(b"\n")[0].decode(errors="replace")
    from traceforge.sources.telemetry.metrics import is_query_header

    return "nvidia_smi" if is_query_header(first) else None
