"""The grid: `python -m tests.accuracy [--family NAME]... [--seeds fresh|development] [--cases N] [--jobs N]`.

In: nothing. Out: of the whole grid on fresh seeds RESULTS.md, else a table on the terminal; 1 where a threshold is
missed or a case could not be judged. While one tunes, one looks at development seeds only. Results so far are written
after every tenth case; `--marks FILE` keeps each mark, from which a run that had to be stopped goes on.
"""

import argparse
import pickle
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.accuracy.case import Case
from tests.accuracy.grid import DEVELOPMENT, FAMILIES, FRESH, grid
from tests.accuracy.judging import Mark, judge_case
from tests.accuracy.recorded import recorded
from tests.accuracy.table import scores, shortfalls, table

_KEPT_EVERY = 10
RESULTS = Path(__file__).with_name("RESULTS.md")
_SEEDS = {"fresh": FRESH, "development": DEVELOPMENT}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what is asked for; 1 where a threshold is missed."""
    asked = _parser().parse_args(arguments)
    is_whole = not asked.family and asked.seeds == "fresh" and asked.cases is None
    cases = grid(_SEEDS[asked.seeds], asked.family)[: asked.cases]
    marks = kept_marks(asked.marks, cases)
    done = {mark.case.scenario.name for mark in marks}
    failed: list[str] = []
    for outcome in judged([case for case in cases if case.scenario.name not in done], asked.jobs):
        (marks if isinstance(outcome, Mark) else failed).append(outcome)  # type: ignore[arg-type]  # told by its type
        if asked.marks and isinstance(outcome, Mark):
            with asked.marks.open("ab") as file:
                pickle.dump(outcome, file)
        print(f"\r{len(marks) + len(failed)} of {len(cases)}", end="", file=sys.stderr, flush=True)
        if is_whole and len(marks) % _KEPT_EVERY == 0:
            RESULTS.write_text(table(marks, len(cases)), encoding="utf-8")
    if is_whole:
        RESULTS.write_text("\n".join([table(marks, len(cases)), *recorded()]) + "\n", encoding="utf-8")
    else:
        print(table(marks))
    missed = [*failed, *shortfalls(scores(marks))]
    print("", *(missed or ["all thresholds are reached"]), sep="\n", file=sys.stderr)
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    families = "\n".join(f"  {name}: {family.why}" for name, family in FAMILIES.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy",
        description="Judge generated jobs whose faults are known.",
        epilog=f"families:\n{families}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--family", action="append", choices=list(FAMILIES), default=[], help="may be repeated")
    parser.add_argument("--seeds", choices=list(_SEEDS), default="fresh", help="fresh ones are for results only")
    parser.add_argument("--cases", type=int, help="only so many, a fair sample; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--marks", type=Path, help="a file of one's own that keeps marks; those in it are not run again"
    )
    return parser


def kept_marks(path: Path | None, cases: Sequence[Case]) -> list[Mark]:
    """Marks of these cases from a run that was stopped."""
    names, found = {case.scenario.name for case in cases}, []
    if path and path.exists():
        with path.open("rb") as file:
            while file.peek(1):
                found.append(pickle.load(file))  # noqa: S301  # written by this program
    return [mark for mark in found if mark.case.scenario.name in names]


def judged(cases: Sequence[Case], jobs: int) -> Iterator[Mark | str]:
    """The mark of each case, or why it has none."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(judge_case, case): case for case in cases}
        for done in as_completed(waiting):
            error = done.exception()
            name = waiting[done].scenario.name
            yield done.result() if error is None else f"{name} could not be judged: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
