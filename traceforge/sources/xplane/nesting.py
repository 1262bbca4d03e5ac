"""Operations that contain others. In: a line of operations. Out: the same line, each instant once, with the innermost.

Idea: a loop or a branch of XLA (`while`, `conditional`, `call`) is one event that lasts as long as all that runs in it,
on the same line. What is left of it is the time in which nothing within it runs, in as many pieces as there are.
Not handled: operations that overlap without one containing the other, which stay as they are.
"""

import numpy as np

from traceforge.sources.xplane.space import Int64s, Line


def innermost(line: Line) -> tuple[Line, int]:
    """The line with pieces in the place of operations that contain others, and how many of these there are.

    Events that last no time are contained by nothing, and contain nothing.
    """
    lasting = np.flatnonzero(line.ends_ns > line.starts_ns)
    order = lasting[np.lexsort((-line.ends_ns[lasting], line.starts_ns[lasting]))]
    starts, ends = line.starts_ns[order], line.ends_ns[order]
    if len(order) < 2 or not (starts[1:] < np.maximum.accumulate(ends)[:-1]).any():
        return line, 0
    pieces = _pieces(starts.tolist(), ends.tolist())
    if not pieces:
        return line, 0
    kept = np.ones(len(line.names), np.bool_)
    kept[order[list(pieces)]] = False
    places = [*np.flatnonzero(kept).tolist(), *(int(order[one]) for one, own in pieces.items() for _ in own)]
    times = np.array([piece for own in pieces.values() for piece in own], np.int64).reshape(-1, 2)
    return _placed(line, places, times), len(pieces)


def _pieces(starts: list[int], ends: list[int]) -> dict[int, list[tuple[int, int]]]:
    """Of each event that contains others, the stretches in which none of them runs.

    Args:
        starts, ends: sorted by start, of equal ones the longest first.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    free: dict[int, int] = {}
    open_events: list[int] = []
    for one, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while open_events and ends[open_events[-1]] <= start:
            open_events.pop()
        if open_events and end <= ends[parent := open_events[-1]]:
            if start > (since := free.get(parent, starts[parent])):
                found.setdefault(parent, []).append((since, start))
            found.setdefault(parent, [])
            free[parent] = max(end, free.get(parent, 0))
            open_events.append(one)
        elif not open_events:
            open_events.append(one)
    for parent, since in free.items():
        if since < ends[parent]:
            found[parent].append((since, ends[parent]))
    return found


def _placed(line: Line, places: list[int], times: Int64s) -> Line:
    """Events of a line by place, the last of them with other times."""
    kept = np.array(places, np.int64)
    starts, ends = line.starts_ns[kept], line.ends_ns[kept]
    if len(times):
        starts[-len(times) :], ends[-len(times) :] = times[:, 0], times[:, 1]
    names = [line.names[place] for place in places]
    return Line(line.name, names, starts, ends, line.correlation[kept], line.steps[kept])
