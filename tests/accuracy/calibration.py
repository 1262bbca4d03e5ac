"""How well couplings are measured where they are known: `python -m tests.accuracy.calibration` writes CALIBRATION.md.

In: nothing. Out: for runs simulated as arrays, how often intervals hold the truth, and how often a coupling is found
that is not there. Seeds are 1000 and above; those that the method was tried on while it was made lie below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np

from tests.replay.calibration.runs import Run, plain_slope, simulate
from tests.replay.test_calibration_beside import job
from traceforge.replay.calibration.arrival_spread import spread_coupling
from traceforge.replay.calibration.contention import slow_downs
from traceforge.replay.calibration.measurement import Measurement
from traceforge.replay.calibration.predictability import predictability

TABLE = Path(__file__).with_name("CALIBRATION.md")
TEMPLATE = Path(__file__).with_name("calibration.template.md")
FIRST_SEED = 1000

_CALM = Run(iterations=100)
_EPISODES = Run(iterations=100, episodes=0.05)
RUNS = {
    "calm, 20 iterations": replace(_CALM, iterations=20),
    "calm, 30 iterations": replace(_CALM, iterations=30),
    "calm, 100 iterations": _CALM,
    "fabric episodes, 30 iterations": replace(_EPISODES, iterations=30),
    "fabric episodes, 100 iterations": _EPISODES,
    "fabric episodes, 300 iterations": replace(_EPISODES, iterations=300),
    "lasting episodes and lateness, 100 iterations": replace(_EPISODES, lasting=0.8),
    "heavy tail of transfers, 60 iterations": replace(_CALM, iterations=60, tail=True),
    "2 ranks, lasting lateness, 60 iterations": replace(_CALM, iterations=60, ranks=2, lasting=0.9),
    "8 ranks, 4 places, 60 iterations": replace(_CALM, iterations=60, ranks=8, places=4),
    "8 ranks, clocks off by 0.1 ms, 60 iterations": replace(_CALM, iterations=60, ranks=8, clock_ns=1e5),
}


@dataclass(frozen=True, slots=True)
class Score:
    """What came of many seeds of one run with a known coupling."""

    truth: float
    found: Sequence[Measurement]
    plain: float | None = None

    def cells(self) -> list[str]:
        """Columns of the table, from `measured` on."""
        judged = [one for one in self.found if one.coefficient is not None]
        held = [float(one.low or 0) <= self.truth <= float(one.high or 0) for one in judged]
        values = [float(one.coefficient or 0) for one in judged]
        above = sum(one.surely_low is not None and one.surely_low > 0 for one in self.found)
        widths = [float(one.high or 0) - float(one.low or 0) for one in judged]
        return [
            f"{len(judged)} of {len(self.found)}",
            f"{fmean(values):+.3f} ± {pstdev(values):.3f}",
            f"{100 * fmean(held):.1f} %",
            f"{float(np.median(widths)):.3f}",
            f"{100 * above / len(self.found):.1f} %",
        ]


def line(*cells: str) -> str:
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"


def spread_lines(seeds: int) -> list[str]:
    """Rows of the table of kappa."""
    lines = []
    for name, run in RUNS.items():
        for kappa in (0.0, 0.5):
            runs = [simulate(replace(run, kappa=kappa), FIRST_SEED + seed) for seed in range(seeds)]
            score = Score(kappa, [spread_coupling(one) for one in runs])
            lines.append(line(name, f"{kappa:g}", f"{fmean(map(plain_slope, runs)):+.3f}", *score.cells()))
    return lines


def scored(truths: Sequence[float], seeds: int, measure: Callable[[float, int], Measurement], name: str) -> list[str]:
    """Rows of one of the other tables."""
    return [
        line(name, f"{truth:g}", *Score(truth, [measure(truth, FIRST_SEED + n) for n in range(seeds)]).cells())
        for truth in truths
    ]


def slow_down(eta: float, seed: int, *, iterations: int) -> Measurement:
    """Of one simulated job."""
    return slow_downs(job(eta, seed, iterations=iterations), ("a wait",))[0]


def follows(correlation: float, seed: int, *, iterations: int) -> Measurement:
    """Of waits of eight ranks that follow those before by a correlation."""
    rng = np.random.default_rng(seed)
    wait = rng.standard_normal((iterations, 8))
    for i in range(1, iterations):
        wait[i] = correlation * wait[i - 1] + np.sqrt(1 - correlation**2) * wait[i]
    return predictability(wait, 0.0)


def table(seeds: int) -> str:
    """CALIBRATION.md."""
    beside = [
        row
        for iterations in (20, 60)
        for row in scored(
            (0.0, 0.1, 0.5), seeds // 2, partial(slow_down, iterations=iterations), f"{iterations} iterations"
        )
    ]
    followed = [
        row
        for iterations in (30, 100)
        for row in scored((0.0, 0.3, 0.8), seeds, partial(follows, iterations=iterations), f"{iterations} iterations")
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        seeds=seeds,
        half=seeds // 2,
        spread="\n".join(spread_lines(seeds)),
        beside="\n".join(beside),
        follows="\n".join(followed),
    )


if __name__ == "__main__":
    TABLE.write_text(table(200), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
