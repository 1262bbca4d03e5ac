"""Workers of a cluster killed while they work. In: how many kills. Out: tables that are not those of one process.

`python -m tests.fuzz.cluster_kills --kills 30 --seed 1` starts a Dask cluster of two workers and has it read every
sample and jobs in other formats and make their tables, one rank at a time, one set after another and again, until so
many workers died by SIGKILL, in the middle of files or of parts of tables that were drawn by lot. Each time all
tables are compared row by row with those that one process makes of the same files, all ranks at once. It ends with 1 if
a table differs or a kill did not happen, and writes what it found.
"""

import argparse
import itertools
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from unittest import mock

from tests.bench.results_file import keep_results
from tests.conftest import ROOT
from tests.local_cluster import Dying, started
from tests.store.folders import write_job
from tests.store.tables import differing, tables_of
from traceforge import api, cluster
from traceforge.align.rank_batches import planned_batches
from traceforge.store.database import Store
from traceforge.store.part_task import PartTask
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Cluster, Scenario

_RESULTS = ROOT / "tests/bench/results/cluster_kills.json"
_PACKAGES = ("dask", "distributed", "duckdb", "polars", "traceforge")
_NOT_READ = {"PROVENANCE.md", "scenario.toml", "truth.json", "notes.txt", "copy.json", "rank9.json"}
_MOST_AT_ONCE = 3  # in the files of one set, and in its parts
_PARTS = 16  # four ranks, and four stages that have tables in parts


@dataclass(frozen=True)
class Round:
    """One set read once: who died of what, and what differs.

    Attributes:
        traces: name of the set.
        killed: files, and parts of tables, in the middle of which a worker died.
        spared: what was drawn, and of which none died.
        tables: number of tables compared.
        rows: in all of them.
        differing: names of the tables that are not those of one process.
    """

    traces: str
    killed: list[str]
    spared: list[str]
    tables: int
    rows: int
    differing: list[str]


def write_sets(scratch: Path) -> list[Path]:
    """Every sample; jobs in other formats; one with damaged files."""
    scenario = Scenario(iterations=3, cluster=Cluster(nodes=1, devices=4))
    for kind in ("nsys", "pftrace"):
        write_scenario(scenario, scratch / kind, trace_format=kind)
    samples = sorted(path.parent for path in (ROOT / "sample_traces").glob("*/truth.json"))
    return [*samples, scratch / "nsys", scratch / "pftrace", write_job(scratch / "damaged", ranks=8)]


@dataclass(frozen=True)
class DyingPart(PartTask):
    """A part of tables in which the first worker dies, once it has begun to write.

    Attributes:
        mark: made when it dies.
    """

    mark: Path

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name == "documents" and object.__getattribute__(self, "folder").exists() and not self.mark.exists():
            self.mark.touch()
            time.sleep(1)  # a nanny that has not quite begun would give up a worker that dies so early
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def sent_to_die(readers: cluster.ClusterReaders, drawn: set[int], marks: Path) -> Callable[..., Any]:
    """`submit` of a cluster, by which workers die of the parts of these numbers."""
    submit, count = readers.submit, itertools.count()

    def submit_or_kill(work: Callable[[Any], Any], task: Any) -> Any:
        if isinstance(task, PartTask) and (number := next(count)) in drawn:
            given = {field.name: getattr(task, field.name) for field in fields(PartTask)}
            task = DyingPart(**given, mark=marks / f"part {number}")
        return submit(work, task)

    return submit_or_kill


def read_once(traces: Path, place: Path, address: str, files: list[str], parts: set[int]) -> Round:
    """Read a set on the cluster while workers die of files and parts, and compare it."""
    marks, sources = place / "marks", api.sources()
    marks.mkdir(parents=True)
    dying = {name: Dying(source, dict.fromkeys(files, 1), marks) for name, source in sources.items()}
    with Store(f"{place / 'job'}/", is_kept=False) as folder, Store(None, is_kept=False) as file:
        with (
            cluster.readers_at(address) as readers,
            mock.patch.object(api, "sources", return_value=dying),
            mock.patch.object(readers, "submit", sent_to_die(readers, parts, marks)),
            mock.patch.object(planned_batches, "__defaults__", (1,)),
        ):
            api.ingest([traces], folder, executor=readers)
        api.ingest([traces], file, jobs=1)
        drawn = {f"{name}-0" for name in files} | {f"part {number}" for number in parts}
        died = {path.name for path in marks.iterdir()}
        tables = tables_of(file)
        rows = sum(map(len, tables.values()))
        unlike = [name for name in differing(file, folder) if name != "align.rank_batch"]
        return Round(traces.name, sorted(died), sorted(drawn - died), len(tables), rows, unlike)


def read_until(kills: int, seed: int, scratch: Path, say: Callable[[Round], None]) -> list[Round]:
    """Read set after set until so many workers were killed."""
    lot, rounds, left = random.Random(seed), list[Round](), kills  # noqa: S311 - no secret is drawn
    sets = write_sets(scratch)
    with started(scratch / "dask") as (address, _):
        while left > 0:
            traces = sets[len(rounds) % len(sets)]
            names = sorted(path.name for path in traces.iterdir() if path.name not in _NOT_READ)
            drawn = lot.sample(names, min(lot.randint(1, _MOST_AT_ONCE), left, len(names)))
            parts = set(lot.sample(range(_PARTS), min(lot.randint(1, _MOST_AT_ONCE), left - len(drawn))))
            rounds.append(read_once(traces, scratch / str(len(rounds)), address, drawn, parts))
            say(rounds[-1])
            left -= len(rounds[-1].killed)
            if not rounds[-1].killed:
                break  # nobody dies any more: what is left would go on for ever
    return rounds


def judged(rounds: list[Round], kills: int) -> dict[str, Any]:
    """What came of all rounds together."""
    return {
        "kills_asked": kills,
        "kills": sum(len(one.killed) for one in rounds),
        "rounds": len(rounds),
        "sets": len({one.traces for one in rounds}),
        "tables_compared": sum(one.tables for one in rounds),
        "rows_compared": sum(one.rows for one in rounds),
        "tables_that_differ": sum(len(one.differing) for one in rounds),
        "by_round": [asdict(one) for one in rounds],
    }


def main() -> None:
    """Kill as many as the command line asks for, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="traceforge-kills-") as scratch:
        rounds = read_until(options.kills, options.seed, Path(scratch), lambda one: print(one, flush=True))
    found = judged(rounds, options.kills)
    command = f"python -m tests.fuzz.cluster_kills --kills {options.kills} --seed {options.seed}"
    keep_results(options.output, command, _PACKAGES, found)
    if found["tables_that_differ"] or found["kills"] < options.kills:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
