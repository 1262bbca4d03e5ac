"""Forecasts against what generated jobs do: `python -m tests.accuracy.forecasts` writes FORECASTS.md.

In: jobs at several scales (see `scaled_jobs`). Out: a row a family. A case is one job at one larger scale; the truth
is the generator's own job there, of many iterations. `--seeds development` prints the table only: tune on that.
"""

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np

from tests.accuracy.scaled_jobs import FAMILIES, ScaledJob, jobs
from traceforge.forecast.ensemble import fit_ensemble

TABLE = Path(__file__).with_name("FORECASTS.md")
TEMPLATE = Path(__file__).with_name("forecasts.template.md")
FRESH, DEVELOPMENT = 5_000, 0
JOBS_A_FAMILY = 11


@dataclass(frozen=True, slots=True)
class Case:
    """A forecast and the truth.

    Attributes:
        factor: ranks over the largest measured ones.
        error: log of forecast over true throughput; None where the forecast is refused.
        miss: distance of the truth from the value over that of the band's end on its side; above 1 it lies outside.
        width: half of the band, as a logarithm.
    """

    family: str
    factor: int
    error: float | None
    miss: float = 0.0
    width: float = 0.0


def cases_of(job: ScaledJob) -> Iterator[Case]:
    """The cases of a job."""
    points = job.points()
    ensemble = fit_ensemble(points)
    assert ensemble is not None
    for ranks in job.targets:
        factor = ranks // points[-1].ranks
        found = ensemble.predict(np.array([float(ranks)]))
        if np.isnan(found.value[0]):
            yield Case(job.family, factor, None)
            continue
        value, low, high = (float(np.log(one[0])) for one in (found.value, found.low, found.high))
        truth = float(np.log(job.truth(ranks)))
        end = high if truth > value else low
        yield Case(job.family, factor, value - truth, (truth - value) / (end - value), (high - low) / 2)


def table(cases: Sequence[Case]) -> list[str]:
    """Rows of a table in Markdown, one a family and one of all."""
    families = dict.fromkeys(case.family for case in cases)
    rows = [_row(name, [case for case in cases if case.family == name]) for name in families]
    return [*rows, _row("**all**", cases)]


def _row(name: str, cases: Sequence[Case]) -> str:
    said = [case for case in cases if case.error is not None]
    refused = len(cases) - len(said)
    if not said:
        return f"| {name} | {len(cases)} | {refused} | | | | | |"
    inside = sum(case.miss <= 1 for case in said)
    errors = [abs(case.error or 0.0) for case in said]
    far = [case.width for case in said if case.factor > 2] or [case.width for case in said]
    near = [case.width for case in said if case.factor <= 2] or far
    return (
        f"| {name} | {len(cases)} | {refused} | {inside} of {len(said)} | {100 * median(errors):.1f} % |"
        f" {100 * max(errors):.1f} % | {max(case.miss for case in said):.2f} |"
        f" {100 * median(near):.1f} %, {100 * median(far):.1f} % |"
    )


def all_cases(first_seed: int, count: int, families: Collection[str] = tuple(FAMILIES)) -> Iterator[Case]:
    """Cases of so many jobs of each family; any first part holds as many of each."""
    for seed in range(first_seed, first_seed + count):
        for name in families:
            for job in jobs(name, range(seed, seed + 1)):
                yield from cases_of(job)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=("fresh", "development"), default="fresh")
    parser.add_argument("--jobs", type=int, default=JOBS_A_FAMILY, help="of each family; two cases each")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and write what there is")
    given = parser.parse_args()
    first = FRESH if given.seeds == "fresh" else DEVELOPMENT
    until_s = monotonic() + 60 * given.minutes
    cases = all_cases(first, given.jobs, tuple(given.family or FAMILIES))
    rows = table(list(takewhile(lambda _: monotonic() < until_s, cases)))
    print("\n".join(rows))
    if given.seeds == "fresh" and not given.family:
        TABLE.write_text(TEMPLATE.read_text(encoding="utf-8").replace("{rows}", "\n".join(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
