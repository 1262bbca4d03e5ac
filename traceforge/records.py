"""Typed rows that cross folders. In: nothing. Out: the small types that sources hand to the store.

A source turns bytes into `Batch`es (rows of one raw table) and says with `Issue`s what it skipped, repaired or
guessed. It never sees SQL; the store never sees formats.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one raw table, without `source_id`, which the store adds.

    Attributes:
        table: such as `raw.event`.
        rows: columns named and typed as the table's; missing columns become NULL.
    """

    table: str
    rows: "pl.DataFrame"


@dataclass(frozen=True, slots=True)
class Issue:
    """Something skipped, repaired or guessed; becomes a row of `meta.issue`.

    Attributes:
        code: stable, such as `kineto_event_without_timestamp`.
        severity: `info`, `warning` or `error`.
        count: how many rows or bytes of the input it concerns.
        first_at: place of the first one (`event 17`, `byte 93312`), or None.
        detail: one sentence for a person.
        lost_events: how many of the file's events are not stored because of it.
    """

    code: str
    severity: str
    count: int
    first_at: str | None
    detail: str
    lost_events: int = 0


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What one file said about itself, after it was read.

    Attributes:
        kind: name of the source that read it.
        rank: global rank stated inside the file, or None.
        host: host name stated inside the file, or None.
        world_size: number of ranks of the job stated inside the file, or None.
        event_count: events (records, nodes) seen in the file, kept or not.
        stored_count: events handed over as rows.
        issues: everything skipped, repaired or guessed.
    """

    kind: str
    rank: int | None
    host: str | None
    world_size: int | None
    event_count: int
    stored_count: int
    issues: tuple[Issue, ...] = ()


def _ignore_progress(_byte_count: int) -> None:
    """Progress nobody asked for. A function of the module, so that options travel to other processes."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may cost before it is left out.

    Attributes:
        cpu_seconds: CPU time of the thread that reads.
        memory_bytes: by which its process may grow.
        may_end_process: whether that process may be ended where nothing else helps.
    """

    cpu_seconds: float = 600.0
    memory_bytes: int = 2 * 1024**3
    may_end_process: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a user may ask of a source.

    Attributes:
        keep_all_args: store the arguments of every event, not only of communication.
        limits: of what reading may cost.
        report_progress: called with the number of input bytes consumed since the last call.
        part: which part of the file to read, of a source that has parts (see `Parted`); None where there is one.
    """

    keep_all_args: bool = False
    limits: ReadLimits = ReadLimits()
    report_progress: Callable[[int], None] = _ignore_progress
    part: str | None = None


class Source(Protocol):
    """An input format: one file in `traceforge/sources/` exposing `SOURCE`."""

    @property
    def name(self) -> str:
        """The kind written to `meta.source.kind`."""

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes of a file (decompressed, up to 256 KiB) are of this format."""

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file, handing over batches of bounded size as they come.

        Raises:
            InputUnusableError: nothing of the file can be used.
        """


@runtime_checkable
class Parted(Protocol):
    """A source whose files hold several ranks: each part becomes a row of meta.source of its own."""

    def may_recognise(self, start: bytes) -> bool:
        """Whether `recognises` is worth asking, by the first 64 bytes."""

    def parts(self, path: Path) -> list[str]:
        """Names of the parts of a file, in order; `ReadOptions.part` asks for one of them.

        Raises:
            InputUnusableError: nothing of the file can be used.
        """
