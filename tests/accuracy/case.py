"""What a case of the grid is. In: nothing. Out: the types that families of cases are made of.

A case names its scenario and what of the scenario's files is there. Whom the answer must name follows from the
scenario's troubles (`traceforge.synth.trouble`), and whom it must not name is everyone else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.accuracy.edit import Edit
from traceforge.synth.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Case:
    """One run to be judged.

    Attributes:
        group: the family it belongs to.
        left_out: ranks whose traces are missing.
        cut: ranks whose traces end early, each with the share of its bytes that is left.
        edit: a recording that takes the place of the scenario's simulation, which then only names it.
    """

    group: str
    scenario: Scenario
    left_out: frozenset[int] = frozenset()
    cut: tuple[tuple[int, float], ...] = ()
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Cases that ask one question.

    Attributes:
        why: why it matters, in one sentence.
        cases: makes them, from the number of the first seed.
    """

    why: str
    cases: Callable[[int], Iterator[Case]]
