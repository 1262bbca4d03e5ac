"""Changes between generated runs: `python -m tests.accuracy.comparisons` writes COMPARISONS.md.

In: pairs of one job, recorded twice with other noise, the second with a fault or without. Out: per kind of change, in
how many pairs the first change that `compare` names is that of the culprit by its cause, and how many null pairs show
any. `--minutes` stops the run and writes what there is.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from time import monotonic

from traceforge import api
from traceforge.compare import Comparison
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, faults
from traceforge.synth.folder import write_scenario
from traceforge.synth.load import Noise
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

TABLE = Path(__file__).with_name("COMPARISONS.md")
TEMPLATE = Path(__file__).with_name("comparisons.template.md")
FRESH, DEVELOPMENT = 200_000, 0
ITERATIONS = 16
RANKS = 4

_TIMES = {
    "intermittent": {"every": 3},
    "episodic": {"first": 6, "last": 13},
    "persistent": {},
}
_FAULTS = ("launch_stall", "compute_straggler", "input_stall", "gc_pause")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a job; `fault` is None where nothing changed."""

    kind: str
    before: Scenario
    after: Scenario
    fault: Injection | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What `compare` said of a pair.

    Attributes:
        is_right: whether the first change is the culprit's by its cause; of a null pair, whether none was named.
        said: the first change, in short.
    """

    kind: str
    is_right: bool
    said: str


def pairs(first_seed: int, count: int) -> Iterator[Pair]:
    """So many rounds of one pair of each kind and a null pair; any first part holds about as many of each."""
    for seed in range(first_seed, first_seed + count):
        noise = Noise(kernel=0.02 + 0.01 * (seed % 4))
        job = Scenario("before", 2 * seed, ITERATIONS, cluster=Cluster(2, RANKS // 2), workload=Workload(layers=2))
        job = replace(job, noise=noise)
        again = replace(job, name="after", seed=2 * seed + 1)
        yield Pair("null", job, again, None)
        for number, (kind, when) in enumerate(_TIMES.items()):
            fault = _FAULTS[(seed + number) % len(_FAULTS)]
            injection = Injection(fault, place=seed % RANKS, severity=0.3, **when)
            yield Pair(kind, job, replace(again, faults=(injection,)), injection)


def judged(pair: Pair) -> Judged:
    """What `compare` says of a pair."""
    with Store(None, threads=1, is_kept=False) as store:
        for scenario in (pair.before, pair.after):
            with tempfile.TemporaryDirectory() as folder:
                write_scenario(scenario, Path(folder), compressed=False)
                files = find_files([Path(folder)])
                ingest_files(store, files, api.sources(), run_name=scenario.name, executor=None, options=ReadOptions())
        api.analyze(store)
        found = api.compare(store, store, run_before="before", run_after="after")
    return _judged(pair, found)


def _judged(pair: Pair, found: Comparison) -> Judged:
    told = [one for one in found.findings if one.turn != "same"]
    rows = [one for one in found.changes if one.is_significant]
    if pair.fault is None:
        said = [f"{one.turn} {one.cause} of {one.subject}" for one in told]
        said += [f"{one.family} {one.name}" for one in rows]
        return Judged(pair.kind, not said, ", ".join(said))
    if not told:
        return Judged(pair.kind, False, f"no finding; {len(rows)} rows")
    first = told[0]
    is_culprit = first.turn == "new" and first.subject_kind == "rank" and first.subject == str(pair.fault.place)
    is_cause = first.cause == faults()[pair.fault.fault].cause
    said = f"{first.turn} {first.cause} of {first.subject_kind} {first.subject}"
    return Judged(pair.kind, is_culprit and is_cause, said)


def table(results: Sequence[Judged]) -> list[str]:
    """Rows of a table in Markdown, one a kind of change."""
    rows = []
    for kind in dict.fromkeys(one.kind for one in results):
        own = [one for one in results if one.kind == kind]
        wrong = "; ".join(one.said for one in own if not one.is_right)
        rows.append(f"| {kind} | {sum(one.is_right for one in own)} of {len(own)} | {wrong} |")
    return rows


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=("fresh", "development"), default="fresh")
    parser.add_argument("--rounds", type=int, default=40, help="of four pairs each: null and three kinds of change")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and write what there is")
    given = parser.parse_args()
    until_s = monotonic() + 60 * given.minutes
    first = FRESH if given.seeds == "fresh" else DEVELOPMENT
    rows = table(list(takewhile(lambda _: monotonic() < until_s, map(judged, pairs(first, given.rounds)))))
    print("\n".join(rows))
    if given.seeds == "fresh":
        TABLE.write_text(TEMPLATE.read_text(encoding="utf-8").replace("{rows}", "\n".join(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
