"""Which durations of work count as on time. In: nothing. Out: the rules that a user may choose from.

Kept in meta.analysis; `reference` applies it. Transfers are held against their first quartile by every rule, since
contention only ever adds to them.
"""

from enum import StrEnum


class ReferenceRule(StrEnum):
    """What the work at a place of the program takes where nothing is late.

    Attributes:
        MEDIAN: its median over ranks of their medians over iterations; half of the ranks may be late before it moves.
        FIRST_QUARTILE: its first quartile; where more than half of the ranks or iterations are slow.
        BEST_RANK: the medians of the rank that has the least work in its median iteration, as if all were like it.
    """

    MEDIAN = "median"
    FIRST_QUARTILE = "first_quartile"
    BEST_RANK = "best_rank"
