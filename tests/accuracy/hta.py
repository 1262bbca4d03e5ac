"""What Holistic Trace Analysis names, on the same files. `python -m tests.accuracy.hta PYTHON [CASES]` prints a table.

PYTHON is an interpreter with HolisticTraceAnalysis; its straggler finder is asked for one rank and told nothing else.
It knows NCCL kernels by the prefix that NCCL had before 2.19, so each run is given to it twice: as written, and with
the kernels under their former names. Run by hand, since it needs an environment of its own.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.accuracy.case import Case
from tests.accuracy.grid import grid
from traceforge.synth.fault import faults
from traceforge.synth.folder import write_scenario

_FIND = """
import sys, logging
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
folder, ranks = sys.argv[1], int(sys.argv[2])
analysis = TraceAnalysis(trace_files={r: f"{folder}/rank{r}.pt.trace.json" for r in range(ranks)}, trace_dir="")
print("ranks", *analysis.get_potential_stragglers(num_candidates=1))
"""
_MODERN, _FORMER = "ncclDevKernel_", "ncclKernel_"


def named(python: str, folder: Path, ranks: int) -> str:
    """The rank that it names, `fails` where it ends with an error, `nobody` where it names none."""
    command = [python, "-c", _FIND, str(folder), str(ranks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    answers = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ranks")]
    if done.returncode or not answers:
        return "fails"
    return answers[0][0] if answers[0] else "nobody"


def judged(python: str, case: Case) -> Iterator[tuple[str, str]]:
    """For each way of naming kernels: the way, and what became of the answer."""
    injected = case.scenario.faults
    culprit = str(injected[0].place) if injected and faults()[injected[0].fault].target == "rank" else None
    with TemporaryDirectory(prefix="hta-") as name:
        folder = Path(name)
        write_scenario(case.scenario, folder, compressed=False)
        for way in ("as written", "former names"):
            answer = named(python, folder, case.scenario.cluster.ranks)
            if answer in {"fails", "nobody"}:
                yield way, answer
            elif culprit is None:
                yield way, "names a rank where none is at fault"
            else:
                yield way, "right" if answer == culprit else "another rank"
            for path in folder.glob("*.json"):
                path.write_text(path.read_text(encoding="utf-8").replace(_MODERN, _FORMER), encoding="utf-8")


def main() -> None:
    """Judge the first cases of the grid with eight ranks, no rank missing."""
    python, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    cases = [case for case in grid() if case.scenario.cluster.ranks == 8 and not case.left_out]
    cases = [case for case in cases if len(case.scenario.faults) < 2][:count]
    found: Counter[tuple[str, str, str]] = Counter()
    for case in cases:
        kind = "a rank" if _targets_rank(case) else "no rank"
        for way, outcome in judged(python, case):
            found[kind, way, outcome] += 1
            print(case.scenario.name, way, outcome, file=sys.stderr, flush=True)
    print("| at fault | kernels | its answer | runs |", "|---|---|---|---|", sep="\n")
    for (kind, way, outcome), runs in sorted(found.items()):
        print(f"| {kind} | {way} | {outcome} | {runs} |")


def _targets_rank(case: Case) -> bool:
    return bool(case.scenario.faults) and faults()[case.scenario.faults[0].fault].target == "rank"


if __name__ == "__main__":
    main()
