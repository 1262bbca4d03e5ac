"""PyTorch execution traces: JSON of its ExecutionTraceObserver, and ET+ made of it. In: a file. Out: raw.chakra_* rows.

Idea: one rank's operations of the host with their callers, arguments and process groups, in the order in which they
ended; no times, unless a linker added them together with the device's operations (ET+). The file is decoded in units of
some hundred nodes, so that memory does not grow with it.
Seen: schemas 1.0.1 to 1.1.1 (PyTorch 2.1 to 2.13), ET+ of 2023 and since 2024; other 1.x versions are read like the
nearest known one, with a warning. Not handled: archives; several files of one rank.

Modules in the order in which bytes pass them: stream, recognition, reader; json_elements by layout (text_repair where
text is damaged), decode, lenient; units, nodes, microseconds; communication (calls by positional, operators by schema),
arguments, tensors, process_groups; file_facts, tables, batches. issues counts what was lost.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.sources.pytorch_et.recognition import is_execution_trace


class PytorchEtSource:
    """The source `pytorch_et`."""

    name = "pytorch_et"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes are those of a PyTorch execution trace."""
        return is_execution_trace(head)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a file; batches hold some 120,000 rows.

        Raises:
            InputUnusableError: nothing of the file can be used.
        """
        from traceforge.sources.pytorch_et.reader import read_file

        return read_file(path, emit, options)


SOURCE: Source = PytorchEtSource()
