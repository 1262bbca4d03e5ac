"""Every number that decides what is said. In: nothing. Out: named limits with unit, meaning and what they decide.

One module a stage, so that `from traceforge.thresholds import attribute as thresholds` reads well where a number is
used. A limit is a plain constant whose annotation says the rest:

    LEAST_SHARE: Annotated[float, Meaning("share of the mean iteration", "a smaller change is scatter",
                                          "Change.is_significant")] = 0.005

`traceforge thresholds` prints them, and `meta.threshold` holds them for SQL:
`(SELECT value FROM meta.threshold WHERE name = 'compare.LEAST_SHARE')`.
Not here: sizes of buffers, limits that keep a program safe, layout of pages, constants of nature.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a limit is.

    Attributes:
        unit: of the value, such as `share of the mean iteration`, `ns`, `iterations`, `probability`.
        meaning: what the limit means, as a sentence a reader of a report understands.
        decides: table, column or answer that depends on it.
    """

    unit: str
    meaning: str
    decides: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit; `name` is the module and the constant, such as `compare.LEAST_SHARE`."""

    name: str
    value: float
    unit: str
    meaning: str
    decides: str


@cache
def all_thresholds() -> tuple[Threshold, ...]:
    """Every limit, by module and in the order of its file."""
    found = []
    for module in sorted(entry.name for entry in pkgutil.iter_modules(__path__)):
        constants = importlib.import_module(f"{__name__}.{module}")
        for name, hint in get_type_hints(constants, include_extras=True).items():
            meanings = [part for part in get_args(hint) if isinstance(part, Meaning)]
            for meaning in meanings:
                value = float(getattr(constants, name))
                found.append(Threshold(f"{module}.{name}", value, meaning.unit, meaning.meaning, meaning.decides))
    return tuple(found)
