"""Work that came and work that went, told as one. In: `OperationChange`s of a level. Out: a sentence; cleaned.

Fusion puts one kernel in the place of several, and another version of a library calls its kernels by other names: each
row by itself is a large change, and only their sum says what it costs.
"""

from collections.abc import Sequence

from traceforge.compare import OperationChange
from traceforge.report.formatting import clean, listed, signed

_MOST_NAMED = 3
_MOST_LETTERS = 30
_CAME_OR_WENT = ("new", "gone")


def is_replaced(changes: Sequence[OperationChange]) -> bool:
    """Whether some work came and some went, of which any stands out."""
    of_all = _of_all_ranks(changes)
    return {one.kind for one in of_all} == set(_CAME_OR_WENT) and any(one.is_significant for one in of_all)


def replaced(changes: Sequence[OperationChange]) -> str:
    """What all that came and went, large or small, costs together, then each with its names."""
    of_all = _of_all_ranks(changes)
    parts = [_of_kind(kind, [one for one in of_all if one.kind == kind]) for kind in _CAME_OR_WENT]
    return f"{signed(sum(one.difference_ns for one in of_all))} together, of {' and '.join(parts)}"


def kept(changes: Sequence[OperationChange]) -> list[OperationChange]:
    """The significant changes of what both runs do; all significant ones where nothing was replaced."""
    significant = [one for one in changes if one.is_significant]
    if not is_replaced(changes):
        return significant
    of_all = _of_all_ranks(changes)
    return [one for one in significant if one not in of_all]


def _of_all_ranks(changes: Sequence[OperationChange]) -> list[OperationChange]:
    return [one for one in changes if one.kind in _CAME_OR_WENT and one.rank is None]


def _of_kind(kind: str, changes: Sequence[OperationChange]) -> str:
    largest = sorted(changes, key=lambda one: -abs(one.difference_ns))
    names = listed([clean(one.name, _MOST_LETTERS) for one in largest], _MOST_NAMED)
    return f"{len(changes)} {kind} {signed(sum(one.difference_ns for one in changes))} ({names})"
