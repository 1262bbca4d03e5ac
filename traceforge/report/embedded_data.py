"""Data inside the page. In: plain Python values. Out: JSON text that no HTML parser can take for markup.

Names from traces are untrusted: `</script>` inside a string would end the element it sits in. `<`, `>` and `&` are
therefore written as escapes that JSON.parse undoes, and everything beyond ASCII as well. Tables travel by column, and
columns that repeat their values travel as a dictionary and codes. Intervals that follow one another travel as runs: a
code and a length each. Not handled: NaN and infinity, which JSON lacks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

Columns = Mapping[str, Sequence[object]]

_GAP = "-"


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """Intervals of one row in order of time, in whole steps; `codes` holds a digit each."""

    label: str
    codes: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IntervalTable:
    """A table of intervals, a row of the table each, kept by row of the picture.

    Attributes:
        row, code, start, end: the columns of the table.
        names: what the digits of `codes` stand for.
        step: what a start or end is multiplied with.
    """

    row: str
    code: str
    start: str
    end: str
    names: tuple[str, ...]
    step: float
    rows: tuple[IntervalRow, ...]


Dataset = Columns | IntervalTable

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def embedded_json(value: object) -> Markup:
    """A value as JSON text that is safe between `<script type="application/json">` and `</script>`.

    Raises:
        ValueError: the value holds NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return Markup(text)  # noqa: S704  # the escapes above leave no sign that means anything to HTML


def packed(dataset: Dataset) -> dict[str, object]:
    """A table in the form the page's script unpacks."""
    if isinstance(dataset, IntervalTable):
        columns = [dataset.row, dataset.code, dataset.start, dataset.end]
        return {"runs": [columns, dataset.names, dataset.step, [_packed_row(row) for row in dataset.rows]]}
    return {name: _packed_column(values) for name, values in dataset.items()}


def _packed_row(row: IntervalRow) -> list[object]:
    """Label, codes, and the lengths between the edges from 0 on; what lies between intervals has a code of its own."""
    codes, lengths, reached = [], [], 0
    for code, start, end in zip(row.codes, row.starts, row.ends, strict=True):
        if start > reached:
            codes.append(_GAP)
            lengths.append(start - reached)
        codes.append(code)
        lengths.append(end - max(start, reached))
        reached = end
    return [row.label, "".join(codes), lengths]


def _packed_column(values: Sequence[object]) -> object:
    distinct = list(dict.fromkeys(values))
    texts = all(isinstance(value, str) for value in distinct)
    if not texts or 2 * len(distinct) > len(values):
        return list(values)
    codes = {value: code for code, value in enumerate(distinct)}
    return {"values": distinct, "codes": [codes[value] for value in values]}


def row_count(dataset: Dataset) -> int:
    """Number of rows of a table."""
    if isinstance(dataset, IntervalTable):
        return sum(len(run.codes) for run in dataset.rows)
    return len(next(iter(dataset.values()), ()))
