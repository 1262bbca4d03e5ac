"""The limits that a database was built with. In: a connection. Out: `meta.threshold` holds those of this version."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from functools import cache
from typing import Any

from traceforge.thresholds import Threshold, all_thresholds


def keep_thresholds(
    ask: Callable[[str], list[tuple[Any, ...]]], execute: Callable[[str, Sequence[object]], None], *, is_new: bool
) -> None:
    """Have `meta.threshold` hold the limits of this version, which every stage is built with.

    Args:
        ask: gives the rows of a query.
        execute: runs a statement with its parameters.
        is_new: whether it was made just now.
    """
    rows = _threshold_rows()
    if not is_new and ask("SELECT * FROM meta.threshold ORDER BY name") == rows:
        return
    execute("DELETE FROM meta.threshold", [])
    names = [field.name for field in fields(Threshold)]
    listed = f"SELECT {', '.join('UNNEST(?)' for _ in names)}"
    execute(f"INSERT INTO meta.threshold ({', '.join(names)}) {listed}", list(zip(*rows, strict=True)))


@cache
def _threshold_rows() -> list[tuple[Any, ...]]:
    """The limits of this version as `meta.threshold` holds them, by name."""
    return sorted(astuple(threshold) for threshold in all_thresholds())
