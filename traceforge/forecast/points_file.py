"""Throughputs that somebody already has. In: a CSV or TOML file. Out: scale points; no traces needed.

CSV: a header line and one line a scale; lines that begin with # are remarks. TOML: a table `[[point]]` a scale.
Columns: `ranks` (or `nodes`) and `throughput` (samples a second) are needed; `cv` (variation of the iteration time),
`error` (standard error of the throughput, relative) and `name` may be there, as may what must be equal for points to
compare: `batch` (samples per rank), `dtype`, `algorithm`, `nccl_version`, `size_bytes`.
"""

import csv
import io
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from traceforge.errors import InputUnusableError
from traceforge.forecast.comparison import FIELDS
from traceforge.forecast.scale_point import ScalePoint

_ALIASES = {"nodes": "ranks", "gpus": "ranks", "samples_per_s": "throughput"}
_MOST_BYTES = 10_000_000
_HINT = "a first line such as `ranks,throughput,cv`, then one line a scale: `8,1980,0.04`"


def read_points(path: Path) -> list[ScalePoint]:
    """The points of a file, in its order.

    Raises:
        InputUnusableError: not readable, no point in it, or a value that is none; with file and line.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputUnusableError("too large for a table of throughputs", where=str(path))
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputUnusableError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputUnusableError("is no text", where=str(path), hint=_HINT) from error
    rows = _toml_rows(text, path) if path.suffix.lower() == ".toml" else _csv_rows(text, path)
    points = [_point(row, where) for where, row in rows]
    if not points:
        raise InputUnusableError("holds no point", where=str(path), hint=_HINT)
    return points


def _csv_rows(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = text.splitlines()
    reader = csv.DictReader(io.StringIO("\n".join(lines)), skipinitialspace=True)
    try:
        for row in reader:
            if str(next(iter(row.values()), "")).startswith("#"):
                continue
            yield f"{path}, line {reader.line_num}", {_column(name): value for name, value in row.items() if name}
    except csv.Error as error:
        raise InputUnusableError(f"no CSV: {error}", where=f"{path}, line {reader.line_num}", hint=_HINT) from error


def _toml_rows(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        tables = tomllib.loads(text).get("point")
    except tomllib.TOMLDecodeError as error:
        raise InputUnusableError(f"no TOML: {error}", where=str(path)) from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputUnusableError("holds no tables [[point]]", where=str(path), hint="ranks and throughput in each")
    for number, table in enumerate(tables, start=1):
        yield f"{path}, [[point]] {number}", {_column(name): value for name, value in table.items()}


def _column(name: str) -> str:
    plain = name.strip().lower().replace(" ", "_")
    return _ALIASES.get(plain, plain)


def _point(row: Mapping[str, Any], where: str) -> ScalePoint:
    ranks, throughput = _number(row, "ranks", where), _number(row, "throughput", where)
    if ranks is None or throughput is None:
        missing = "ranks" if ranks is None else "throughput"
        raise InputUnusableError(f"the column `{missing}` is absent or empty", where=where, hint=_HINT)
    if ranks < 1 or ranks != int(ranks) or throughput <= 0:
        raise InputUnusableError("ranks must be whole and 1 or more, throughput above 0", where=where)
    numeric = {name: _number(row, name, where) for name in ("batch", "size_bytes")}
    facts: dict[str, str | float] = {name: value for name, value in numeric.items() if value is not None}
    facts |= {
        name: str(row[name]).strip().lower()
        for name in FIELDS
        if name not in numeric and row.get(name) is not None and str(row[name]).strip()
    }
    name = str(row.get("name") or f"{ranks:.0f}")
    return ScalePoint(
        name, int(ranks), throughput, _number(row, "error", where), _number(row, "cv", where), facts=facts
    )


def _number(row: Mapping[str, Any], name: str, where: str) -> float | None:
    value = row.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or isinstance(value, bool):
        raise InputUnusableError(f"`{name}` is no number: {str(value)[:40]}", where=where)
    return number
