"""A short fuzz run of every format, the same each time; `tests/fuzz/formats.py` is run by hand for a long one."""

import random
from pathlib import Path

import pytest

from tests.fuzz.formats import Judge, one_database
from tests.fuzz.mutation import changed
from tests.fuzz.samples import sound
from traceforge.api import sources

EXECUTIONS = 4


def test_every_format_is_fuzzed() -> None:
    assert {*sound(), "kineto"} == sources().keys()


@pytest.mark.parametrize("name", sorted(sound()))
def test_changed_files_of_every_format_break_no_promise(name: str, tmp_path: Path) -> None:
    judge, source = Judge(tmp_path, sources()[name]), random.Random(1)  # noqa: S311 - to be repeated

    for data in sound()[name]:
        before = judge.events
        judge.judge(data)
        assert judge.events > before
    assert judge.refused == 0
    for number in range(EXECUTIONS):
        judge.judge(changed(source, sound()[name][number % len(sound()[name])], name))

    # Some are read, not refused: else nothing was tried.
    assert judge.refused < judge.executions


def test_tables_read_through_one_open_database_say_what_each_says_alone(tmp_path: Path) -> None:
    source = random.Random(2)  # noqa: S311 - to be repeated
    files = [changed(source, data, "operation_table") for data in sound()["operation_table"] * 4]
    alone, together = (Judge(tmp_path, sources()["operation_table"]) for _ in range(2))

    for data in files:
        alone.judge(data)
    with one_database(tmp_path):
        for data in files:
            together.judge(data)

    assert (together.refused, together.events) == (alone.refused, alone.events)
    assert 0 < alone.refused < len(files)
