"""Progress on a terminal. In: bytes that were read, tables that are made. Out: a bar on stderr, none elsewhere.

While files are read: bytes, speed, memory, time left. While stages are built: the table, and the time left as far as
the usual shares of the stages tell it. Not handled: how far a table is that takes long by itself.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from traceforge.cli.loudness import is_quiet, turn_to, watched

if TYPE_CHECKING:
    from traceforge.store.meter import OnProgress
    from traceforge.store.stage import OnTable

# Usual shares of the analysis, as tests/bench/whole_job.py measures them at 1,024 ranks.
_USUAL_SHARES = MappingProxyType(
    {
        "align": 0.21,
        "timeline": 0.24,
        "operation": 0.15,
        "fabric": 0.02,
        "graph": 0.21,
        "replay": 0.06,
        "attribute": 0.09,
        "forecast": 0.02,
    }
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What to call so that a bar follows; None where there is no terminal.

    Attributes:
        on_progress: with bytes read and memory.
        on_table: with the table that is made next.
    """

    on_progress: "OnProgress | None" = None
    on_table: "OnTable | None" = None


def done_share(table: str, share_of_stage: float) -> float:
    """Which share of the analysis is usually done when a table is next.

    Args:
        table: with its schema.
        share_of_stage: of its stage's tables, those that are made already.
    """
    stages = list(_USUAL_SHARES)
    stage = table.partition(".")[0]
    if stage not in _USUAL_SHARES:
        return 0.0
    before = sum(_USUAL_SHARES[one] for one in stages[: stages.index(stage)])
    return before + share_of_stage * _USUAL_SHARES[stage]


@contextmanager
def progress(files: Sequence[Path] = ()) -> Iterator[Shown]:
    """A bar on stderr while files are read and then while stages are built, where stderr is a terminal.

    Under `--quiet` there is none; under `--verbose` each stage is timed.
    """
    turn_to("reading" if files else "opening")
    with _bars(files) as shown:
        yield replace(shown, on_table=watched(shown.on_table))
    turn_to("answer")


@contextmanager
def _bars(files: Sequence[Path]) -> Iterator[Shown]:
    if is_quiet() or not sys.stderr.isatty():
        yield Shown()
        return
    with ExitStack() as bars:
        building: list[OnTable] = []

        def turn_to_table(table: str, share_of_stage: float) -> None:
            if not building:
                bars.close()
                building.append(bars.enter_context(_building()))
            building[0](table, share_of_stage)

        yield Shown(bars.enter_context(_reading(files)) if files else None, turn_to_table)


@contextmanager
def _reading(files: Sequence[Path]) -> "Iterator[OnProgress]":
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from traceforge.files import size_bytes

    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[memory_mb]} MB memory"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(size_bytes(path) for path in files), memory_mb=0)
        yield lambda count, memory_bytes: bar.update(task, completed=count, memory_mb=memory_bytes // 1_000_000)


@contextmanager
def _building() -> "Iterator[OnTable]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("analysing"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("about"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda table, share: bar.update(task, completed=done_share(table, share), description=table)
