"""Chakra execution traces: protobuf (`.et`), jsonizer's JSON, the feeder's JSON. In: a file. Out: raw.chakra_* rows.

Idea: a graph of operations that one rank ran, or that a generator made, one node an operation; all three forms are the
same facts in other spellings and end in the same tables. Binary traces are decoded without a protobuf library, all
messages of a block in step.
Seen: MLCommons Chakra schema 0.0.4 and 1.0.0 as written by its PyTorch, text and custom-collective converters, by
generators and by forks. Not handled: schemas before August 2023 (refused); several files of one rank.

Modules in the order in which bytes pass them: stream, recognition, reader; then binary (framing, judge, wire; texts,
attributes, values; nodes, communication, arguments, process_groups) or json_trace (json_elements;
documents, document_rows); file_facts, tables, batches. schema says what numbers and names mean, issues what was lost.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.sources.chakra.recognition import form_of


class ChakraSource:
    """The source `chakra`."""

    name = "chakra"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes are those of a Chakra trace in one of its three forms."""
        return form_of(head) is not None

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a file; batches hold some 120,000 rows.

        Raises:
            InputUnusableError: nothing of the file can be used.
        """
        from traceforge.sources.chakra.reader import read_file

        return read_file(path, emit, options)


SOURCE: Source = ChakraSource()
