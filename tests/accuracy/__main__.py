"""The whole grid by one command: `python -m tests.accuracy [JOBS]`; writes RESULTS.md, fails below a threshold.

Results so far are written after every tenth case, so that a run that has to be stopped is not lost.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.accuracy.cases import full
from tests.accuracy.judging import judge_case
from tests.accuracy.recorded import recorded
from tests.accuracy.table import scores, shortfalls, table

_KEPT_EVERY = 10
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    """Judge everything; 1 where a threshold is missed."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    cases = full()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        marks = []
        for mark in pool.map(judge_case, cases):
            marks.append(mark)
            print(f"\r{len(marks)} of {len(cases)}", end="", file=sys.stderr, flush=True)
            if len(marks) % _KEPT_EVERY == 0:
                RESULTS.write_text(table(marks), encoding="utf-8")
    RESULTS.write_text("\n".join([table(marks), *recorded()]) + "\n", encoding="utf-8")
    missed = shortfalls(scores(marks))
    print("", *(missed or ["all thresholds are reached"]), sep="\n", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
