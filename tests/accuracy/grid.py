"""The whole grid. In: the number of the first seed. Out: families of cases by name, and the parts of them that are run.

Seeds from 0 are for development; those from `FRESH` are of the results and are used for nothing else.
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from typing import Final

from tests.accuracy import cases, edited, files, healthy, layouts, moments, sets, unusual, varied
from tests.accuracy.case import Case, Family

FRESH: Final = 600_000
DEVELOPMENT: Final = 0

FAMILIES: dict[str, Family] = {
    **cases.FAMILIES, **sets.FAMILIES, **moments.FAMILIES, **files.FAMILIES, **healthy.FAMILIES, **layouts.FAMILIES,
    **edited.FAMILIES, **unusual.FAMILIES, **varied.FAMILIES,
}  # fmt: skip


def grid(first_seed: int = FRESH, families: Sequence[str] = ()) -> list[Case]:
    """All cases of some families (by default of all), from a first seed.

    Up to 16 ranks come first, in an order of which any part is a fair sample, so that a run may be stopped.
    """
    chosen = chain.from_iterable(FAMILIES[name].cases(first_seed) for name in families or FAMILIES)
    return sorted(chosen, key=_order)


def quick() -> list[Case]:
    """The part that runs with the other tests: about half a minute."""
    seeds = range(1)
    return [
        *cases.single(seeds, (8,)),
        *list(cases.pairs(seeds, (8,)))[:3],
        *cases.healthy(range(2), (4,)),
    ]


def _order(case: Case) -> tuple[bool, bytes]:
    return case.scenario.cluster.ranks > 16, sha256(case.scenario.name.encode()).digest()
