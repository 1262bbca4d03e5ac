"""A short fuzz run of the scanner in C, the same each time; `tests/fuzz/scanner.py` is run by hand for millions."""

import random

import pytest

from tests.fuzz.scanner import Judge, changed_unit, units
from traceforge.sources.kineto import native

EXECUTIONS = 2_000


@pytest.mark.skipif(native.Scanner is None, reason="no C compiler was at hand")
def test_changed_units_have_as_many_rows_as_events_or_are_declined() -> None:
    judge, source = Judge(native.Scanner), random.Random(1)  # noqa: S311 - to be repeated, not to be secret

    for unit in units():
        judge.judge(unit)
    assert judge.read == len(units())
    for _ in range(EXECUTIONS):
        judge.judge(changed_unit(source, units()))

    # Some are read, not declined: else nothing was tried.
    assert judge.read > EXECUTIONS / 20
