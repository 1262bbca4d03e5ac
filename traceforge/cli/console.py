"""Text for a terminal. In: text that may come from a trace. Out: printable text on stdout or stderr.

Trace content is hostile: control characters are shown as escapes, and nothing is taken for markup.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING

from traceforge.cli.loudness import is_quiet
from traceforge.store.preview import COUNTED

if TYPE_CHECKING:
    import polars as pl

MAX_TABLE_ROWS = 200
_LEAST_WIDTH = 5  # of a folded column
_VERDICT = re.compile(r"^(VERDICT[^:]*:)")
_LABEL = re.compile(r"^(  [a-z ]+:)")


def printable(text: str) -> str:
    """The text with control characters (but for line breaks) and invisible format characters escaped."""
    return "".join(
        character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()
        for character in text
    )


def print_error(text: str) -> None:
    """An error on stderr."""
    print(f"error: {printable(text)}", file=sys.stderr)


def print_unwritten(error: OSError) -> None:
    """On stderr, that stdout takes no more of the answer."""
    print_error(f"the answer cannot be written to standard output: {error.strerror}\n\nhint: make room there")


def note(text: str) -> None:
    """A remark on stderr, of one line: a name with a line break in it cannot begin another one."""
    if not is_quiet():
        print(printable(text).replace("\n", "\\n"), file=sys.stderr)


_STYLES = {"finding": "1;31", "nothing_significant": "1;32", "unsure": "1;33", "cannot_be_known": "1;33"}


def print_verdict(lines: Sequence[str], state: str) -> None:
    """The verdict on stdout; on a terminal that shows colours its first words in that of its state, labels dim."""
    shown = [printable(line) for line in lines]
    if _shows_colours():
        style = _STYLES.get(state, "1")
        shown = [_LABEL.sub("\x1b[2m\\1\x1b[0m", line) for line in shown]
        shown[0] = _VERDICT.sub(f"\x1b[{style}m\\1\x1b[0m", shown[0])
    print("\n".join(shown))


def print_frame(frame: "pl.DataFrame", *, max_rows: int = MAX_TABLE_ROWS) -> None:
    """A frame on stdout, as a table; further rows are cut and counted on stderr."""
    print_table(frame.columns, frame.head(max_rows).rows(), further=max(0, frame.height - max_rows))


def print_table(names: Sequence[str], rows: Sequence[Sequence[object]], *, further: int = 0) -> None:
    """Rows on stdout, as a table, numbers to the right; how many `further` ones there are on stderr."""
    heads = [printable(name) for name in names]
    cells = [[_cell(value) for value in row] for row in rows]
    are_numbers = []
    for place in range(len(names)):
        kinds = {type(row[place]) for row in rows} - {type(None)}
        are_numbers.append(bool(kinds) and kinds <= {int, float, Decimal})
    lines = _table_lines([heads, *cells], are_numbers)
    is_terminal = sys.stdout.isatty()
    if is_terminal and max(map(_width, lines)) > shutil.get_terminal_size().columns:
        _print_folded(heads, cells, are_numbers)
    else:
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m" if _shows_colours() else lines[0]
        print("\n".join(lines))
    if further:
        count = f"more than {COUNTED}" if further > COUNTED else str(further)
        note(f"{count} more rows; use --format csv, json or parquet to get all")


def _table_lines(rows: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> list[str]:
    """Rows as lines whose columns are as wide as they need; a text of several lines takes several."""
    parts = [[cell.split("\n") for cell in row] for row in rows]
    widths = [max(_width(line) for cell in column for line in cell) for column in zip(*parts, strict=True)]
    found = []
    for row in parts:
        for line in zip_longest(*row, fillvalue=""):
            placed = zip(line, widths, are_numbers, strict=True)
            padded = ((text, " " * (width - _width(text)), is_number) for text, width, is_number in placed)
            found.append("  ".join(blank + text if right else text + blank for text, blank, right in padded))
    return found


def _width(text: str) -> int:
    """Columns that a text takes on a terminal: those of East Asia are two wide, marks on letters none."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Me") for character in text)


def _print_folded(heads: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> None:
    """A table that is wider than the terminal, its cells folded."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, is_number, column in zip(heads, are_numbers, zip(*cells, strict=True), strict=True):
        if is_number:  # one that is cut in two is another one
            shown = _broken(head, max(map(_width, column)))
            table.add_column(Text(shown), justify="right", no_wrap=True)
        else:
            table.add_column(Text(head), overflow="fold", min_width=_LEAST_WIDTH)
    for row in cells:
        table.add_row(*map(Text, row))
    Console(markup=False, highlight=False).print(table)


def _broken(name: str, width: int) -> str:
    """A name in lines of such a width where its underscores allow it."""
    lines = [""]
    for part in re.findall(r"[^_]+_*|_+", name):
        if len(lines[-1]) + len(part) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _shows_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))
