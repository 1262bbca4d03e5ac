"""Text for a terminal. In: text that may come from a trace. Out: printable text on stdout or stderr.

Trace content is hostile: control characters are shown as escapes, and nothing is taken for markup.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

_MAX_TABLE_ROWS = 200


def printable(text: str) -> str:
    """The text with control characters (but for line breaks) and invisible format characters escaped."""
    return "".join(
        character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()
        for character in text
    )


def print_error(text: str) -> None:
    """An error on stderr."""
    print(f"error: {printable(text)}", file=sys.stderr)


def note(text: str) -> None:
    """A remark on stderr."""
    print(printable(text), file=sys.stderr)


def print_table(frame: "pl.DataFrame", *, max_rows: int = _MAX_TABLE_ROWS) -> None:
    """A frame on stdout, as a table; further rows are cut and counted on stderr."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in frame.columns:
        table.add_column(Text(printable(name)), justify="right" if frame[name].dtype.is_numeric() else "left")
    for row in frame.head(max_rows).iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    is_terminal = sys.stdout.isatty()
    Console(markup=False, highlight=False, width=None if is_terminal else 10_000).print(table)
    if frame.height > max_rows:
        note(f"{frame.height - max_rows} more rows; use --format csv, json or parquet to get all")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


@contextmanager
def progress(files: Sequence[Path]) -> "Iterator[Callable[[Path], None]]":
    """A bar over files on stderr while they are read, by size; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _path: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from traceforge.files import size_bytes

    sizes = {path: size_bytes(path) for path in files}
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(sizes.values()))
        yield lambda path: bar.advance(task, sizes[path])
