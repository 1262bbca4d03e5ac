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
_NAMING = ("mode", "cause", "subject", "rank")

Owner = tuple[str, str]
"""What an owner is called, and the colour: that of its failure mode, or of words that matter less."""


def owners_of(rows: Sequence[Row], judged: Collection[int]) -> dict[str, list[list[object]]]:
    """Owners with their colours, and the time each owns in an iteration, µs.

    Args:
        judged: numbers of the iterations by which owners are ranked, so that all strips of a page colour them alike.
    """
    # Rows are many, what they name is few.
    names: dict[tuple[object, ...], Owner] = {}
    owners = []
    for row in rows:
        key = tuple(map(row.__getitem__, _NAMING))
        if key not in names:
            names[key] = _owner(row)
        owners.append(names[key])
    totals: Counter[Owner] = Counter()
    for row, owner in zip(rows, owners, strict=True):
        totals[owner] += row["delay_ns"] if row["iteration"] in judged else 0
    named = [owner for owner, _ in totals.most_common(_MOST_OWNERS)]
    shown = {owner: _shown(owner, named) for owner in totals}
    order = {owner: place for place, owner in enumerate(_ordered(set(shown.values()), named, totals))}
    cells: Counter[tuple[int, Owner]] = Counter()
    for row, owner in zip(rows, owners, strict=True):
        cells[row["iteration"], shown[owner]] += row["delay_ns"]
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


def _shown(owner: Owner, named: Sequence[Owner]) -> Owner:
    return owner if owner in named or owner[1] == _UNEXPLAINED else _OTHERS


def _ordered(shown: Collection[Owner], named: Sequence[Owner], totals: Counter[Owner]) -> list[Owner]:
    """Named owners by time, then the others, then what nobody owns."""
    return sorted(shown, key=lambda owner: (owner[1] == _UNEXPLAINED, owner not in named, -totals[owner], owner))
