"""How long a rank waited, as far as it can know alone. In: durations of its collectives. Out: its mean wait, ns.

Idea: a collective lasts for the wait for the last rank and the transfer; the shortest of its kind that this rank ever
saw is the transfer, for then it came last itself. A rank that is always early would never see that, so that in a few
steps before the first block ranks hold back on purpose: in turn those whose number has a bit, and those who have not.
Any two ranks differ in a bit, so that each comes once after the one that is late. Not handled: transfers that take
longer than they did then, for good or while arrivals are spread: the late rank takes that for a wait, too, so that a
policy's threshold should lie above it.
"""

from collections.abc import Iterable

FIRST_PROBE = 4
"""Step before which the first ranks hold back; those before it tell how long a step is."""


class WaitEstimate:
    """Keeps the shortest duration of each kind."""

    def __init__(self) -> None:
        self._shortest_ns: dict[int, int] = {}

    def mean_wait_ns(self, met: Iterable[tuple[int, int]]) -> int:
        """Mean wait over the collectives of a step: kind and duration of each; 0 where there are none."""
        total = count = 0
        for kind, duration_ns in met:
            shortest = min(self._shortest_ns.get(kind, duration_ns), duration_ns)
            self._shortest_ns[kind] = shortest
            total += duration_ns - shortest
            count += 1
        return total // count if count else 0


def probe_count(ranks: int) -> int:
    """Steps before which some ranks hold back on purpose."""
    return 2 * max(ranks - 1, 0).bit_length()


def is_probed(step: int, rank: int, ranks: int) -> bool:
    """Whether a rank holds back on purpose before a step."""
    bit, side = divmod(step - FIRST_PROBE, 2)
    return 0 <= step - FIRST_PROBE < probe_count(ranks) and rank >> bit & 1 == side
