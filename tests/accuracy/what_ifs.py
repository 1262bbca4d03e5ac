"""What-ifs against generated jobs run again: `python -m tests.accuracy.what_ifs` writes WHAT_IFS.md.

In: traces of generated jobs (see `edited_jobs`). Out: a row an edit. The edit is replayed from the traces alone; the
truth is the generator's own job with the same draws and that one change. `--seeds development` prints the table only.
"""

import argparse
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median
from time import monotonic

from tests.accuracy.edited_jobs import FAMILIES, EditedRun, runs
from tests.given import add_facts, built
from traceforge.replay.edit import parse_edit
from traceforge.replay.places import load_places
from traceforge.replay.replay_input import load_replay_input
from traceforge.replay.what_if import job_of, try_edits
from traceforge.store.database import Store
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import run

TABLE = Path(__file__).with_name("WHAT_IFS.md")
TEMPLATE = Path(__file__).with_name("what_ifs.template.md")
FRESH, DEVELOPMENT = 3_000, 0
JOBS_A_FAMILY = 12


@dataclass(frozen=True, slots=True)
class Case:
    """An edit of a job.

    Attributes:
        truth: throughput with the edit over that without.
        ratio: the same as replayed; None where it is refused.
        low, high: its interval.
    """

    family: str
    edit: str
    truth: float
    ratio: float | None
    low: float = 0.0
    high: float = 0.0

    @property
    def error(self) -> float:
        """Replayed over true throughput, less 1."""
        return 0.0 if self.ratio is None else self.ratio / self.truth - 1

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds the truth."""
        return self.ratio is not None and self.low <= self.truth <= self.high


def cases_of(edited: Sequence[EditedRun]) -> Iterator[Case]:
    """Edits of one job."""
    scenario = edited[0].scenario
    job = run(scenario)
    recorded_ns = float(job.events.iteration_ends_ns()[-1])
    with Store(None, threads=1, is_kept=False) as store, tempfile.TemporaryDirectory() as folder:
        write_scenario(scenario, Path(folder), compressed=False)
        add_facts(store, Path(folder))
        replayed = load_replay_input(built(store, "timeline", "graph", "replay"), 0)
        assert replayed is not None
        known = job_of(replayed, load_places(store, 0, replayed.model))
        for one in edited:
            truth = one.samples_share * recorded_ns / float(one.ends_ns(job)[-1])
            found = try_edits(replayed, known, [parse_edit(one.edit)])
            ends = found.throughput_ratio_low or 0.0, found.throughput_ratio_high or 0.0
            yield Case(one.family, one.edit, truth, found.throughput_ratio, *ends)


def all_cases(first_seed: int, count: int, families: Collection[str] = FAMILIES) -> Iterator[Case]:
    """Edits of so many jobs of each family; any first part holds about as many of each."""
    for seed in range(first_seed, first_seed + count):
        for family in families:
            yield from cases_of(runs(family, seed))


def table(cases: Sequence[Case]) -> list[str]:
    """Rows of a table in Markdown: by edit, by kind of job, and of all."""
    rows = []
    for part in (_name_of, lambda case: case.family, lambda _: "**all**"):
        of_part: Callable[[Case], str] = part
        names = dict.fromkeys(map(of_part, cases))
        rows += [_row(name, [case for case in cases if of_part(case) == name]) for name in names]
    return rows


def _name_of(case: Case) -> str:
    return case.edit.partition(":")[0]


def _row(name: str, cases: Sequence[Case]) -> str:
    said = [case for case in cases if case.ratio is not None]
    refused = len(cases) - len(said)
    if not said:
        return f"| {name} | {len(cases)} | {refused} | | | | |"
    inside = sum(case.is_inside for case in said)
    errors = sorted(abs(case.error) for case in said)
    width = median((case.high - case.low) / (2 * (case.ratio or 1.0)) for case in said)
    return (
        f"| {name} | {len(cases)} | {refused} | {inside} of {len(said)} | {100 * median(errors):.2f} % |"
        f" {100 * errors[-1]:.1f} % | {100 * width:.2f} % |"
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=("fresh", "development"), default="fresh")
    parser.add_argument("--jobs", type=int, default=JOBS_A_FAMILY, help="of each family")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and write what there is")
    given = parser.parse_args()
    first = FRESH if given.seeds == "fresh" else DEVELOPMENT
    until_s, cases = monotonic() + 60 * given.minutes, list[Case]()
    for case in takewhile(
        lambda _: monotonic() < until_s, all_cases(first, given.jobs, tuple(given.family or FAMILIES))
    ):
        cases.append(case)
        if given.verbose:
            print(
                f"{case.family} {case.edit} truth {case.truth:.4f} error {100 * case.error:+.2f} %"
                f" [{case.low:.4f}, {case.high:.4f}] {'inside' if case.is_inside else 'OUT'}",
                flush=True,
            )
    rows = table(cases)
    print("\n".join(rows))
    if given.seeds == "fresh" and not given.family:
        TABLE.write_text(TEMPLATE.read_text(encoding="utf-8").replace("{rows}", "\n".join(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
