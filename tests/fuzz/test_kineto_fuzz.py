"""A short fuzz run, the same each time; `tests/fuzz/kineto.py` is run by hand or weekly for a long one."""

import gc
from pathlib import Path

from tests.fuzz.kineto import Judge, run_alone, watched_functions

EXECUTIONS = 300


def test_seeds_and_their_mutations_break_no_promise(tmp_path: Path) -> None:
    judge = Judge(tmp_path)

    run_alone(judge.judge, EXECUTIONS, seed=1)

    assert judge.executions == EXECUTIONS
    # Most inputs are read, not refused: else nothing was tried.
    assert judge.refused < EXECUTIONS / 2


def test_a_guided_run_watches_the_readers_in_python() -> None:
    # Once the collector had forgotten them before, and 200,000 inputs were made blindly: each was refused.
    gc.unfreeze()  # what was collected as tests is known again, as it is in a process of its own
    watched = {f"{function.__module__}.{function.__name__}" for function in watched_functions()}

    assert "traceforge.sources.kineto.reader.read_file" in watched
