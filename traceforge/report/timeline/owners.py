"""Lost time by iteration and owner, for the strip. In: rows of sections/timeline_delays. Out: plain lists for the page.

The owners of most time are named; what the others own is summed.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from traceforge.report.context import Row
from traceforge.report.formatting import capital, clean, spaced

_MOST_OWNERS = 4
_LONGEST_SUBJECT = 40
_UNEXPLAINED = "unexplained"
_OTHERS = ("Others", "muted")

Owner = tuple[str, str]
"""What an owner is called, and the colour: that of its failure mode, or of words that matter less."""


def owners_of(rows: Sequence[Row], judged: Collection[int]) -> dict[str, list[list[object]]]:
    """Owners with their colours, and the time each owns in an iteration, µs.

    Args:
        judged: numbers of the iterations by which owners are ranked, so that all strips of a page colour them alike.
    """
    totals: Counter[Owner] = Counter()
    for row in rows:
        totals[_owner(row)] += row["delay_ns"] if row["iteration"] in judged else 0
    named = [owner for owner, _ in totals.most_common(_MOST_OWNERS)]
    order = {owner: place for place, owner in enumerate(_ordered(rows, named, totals))}
    cells: Counter[tuple[int, Owner]] = Counter()
    for row in rows:
        cells[row["iteration"], _shown(row, named)] += row["delay_ns"]
    return {
        "names": [[label, mode] for label, mode in order],
        "cells": [[number, order[owner], round(delay_ns / 1_000)] for (number, owner), delay_ns in cells.items()],
    }


def _owner(row: Row) -> Owner:
    if row["mode"] == _UNEXPLAINED or row["cause"] == _UNEXPLAINED:
        return "Unexplained", _UNEXPLAINED
    cause = spaced(row["cause"])
    if row["subject"] is not None:
        return f"{capital(clean(row['subject'], _LONGEST_SUBJECT))}: {cause}", row["mode"]
    if row["rank"] is not None:
        return f"Rank {row['rank']}: {cause}", row["mode"]
    return capital(cause), row["mode"]


def _shown(row: Row, named: Sequence[Owner]) -> Owner:
    owner = _owner(row)
    return owner if owner in named or owner[1] == _UNEXPLAINED else _OTHERS


def _ordered(rows: Sequence[Row], named: Sequence[Owner], totals: Counter[Owner]) -> list[Owner]:
    """Named owners by time, then the others, then what nobody owns."""
    shown = {_shown(row, named) for row in rows}
    return sorted(shown, key=lambda owner: (owner[1] == _UNEXPLAINED, owner not in named, -totals[owner], owner))
