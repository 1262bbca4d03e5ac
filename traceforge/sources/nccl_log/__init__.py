"""Debug logs of NCCL and RCCL, and what shares their stream. In: a file. Out: rows of raw.nccl_*.

Idea: the grammar is a table of rules, one for each kind of message, found by its first word; whatever no rule reads is
counted by template, so nothing is lost. Lines of collective calls and algorithm choices, nearly all of a large log, are
read many at once, counted from their end; both ways give the same rows. nccl-tests tables, PyTorch watchdog lines,
banners and reports of NCCL's RAS stand in the same output and are read with it.
Seen: NCCL 2.4 to 2.32, RCCL 2.8 to 2.27; prefixes of srun, mpirun, torchrun, Ray, Kubernetes; any strftime stamps.
Not handled: messages that span lines, logs in UTF-16; several files of one job are joined by the fabric stage.

Modules in the order in which bytes pass them: stream, reader; canonical_lines (byte_words, prefixes) and many_rows for
the fast way; line_reader (framing, launchers, stamps), interpreter (grammar, rules, *_rows), neighbours for the slow
way; communicators, calls, processes, templates, issues, state for what outlives a line; tables for what leaves.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.sources.nccl_log.recognition import recognises


class NcclLogSource:
    """The source `nccl_log`."""

    name = "nccl_log"
    marks = (
        b"NCCL INFO ", b"NCCL WARN ", b"NCCL version ", b"NCCL error in: ", b": NCCL error: ",
        b"Watchdog caught collective operation timeout: Work",
    )  # fmt: skip
    """Texts of a first line, which in the output of a job may stand far behind the first bytes."""

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes hold records of NCCL; see recognition."""
        return recognises(head)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a log; batches hold some 120,000 rows.

        Raises:
            InputUnusableError: the file cannot be opened.
        """
        from traceforge.sources.nccl_log.reader import read_file

        return read_file(path, emit, options)


SOURCE: Source = NcclLogSource()
