"""The pipeline. In: trace files or a trace database. Out: a database with every stage built, or a report.

`STAGES` is the whole order of work after ingest; each stage reads tables and adds its own schema. The command line
is a shell around the functions here.
"""

import fnmatch
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from traceforge.errors import InputUnusableError, PluginError, UsageError
from traceforge.files import as_text, find_files, find_special, shown_names
from traceforge.records import ReadLimits, ReadOptions, Source
from traceforge.redaction import Redaction
from traceforge.registry import discover
from traceforge.replay.assumptions import are_assumed, assume
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store
from traceforge.store.folder import is_folder_database, is_writable
from traceforge.store.opening import hint_of_folder
from traceforge.store.stage import build_stage, stage_documents
from traceforge.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from traceforge.align.stated_racks import StatedRacks
    from traceforge.check import LimitResult, MetricLimit
    from traceforge.compare import Comparison
    from traceforge.doctor import Examination, Inventory
    from traceforge.report import Report
    from traceforge.report.cost import Price
    from traceforge.store.ingest import IngestResult
    from traceforge.store.meter import OnProgress
    from traceforge.store.stage import OnTable

STAGES = ("align", "timeline", "operation", "fabric", "graph", "replay", "attribute", "forecast")

_FACTS_HASH = "SELECT COALESCE(STRING_AGG(run_id || content_hash, ',' ORDER BY source_id), '') FROM meta.source"


def open_store(path: Path | str) -> Store:
    """A trace database, for reading.

    Raises:
        InputUnusableError: there is no such file, or it is no trace database.
    """
    return Store(Path(path), read_only=True)


def ingest(
    paths: Sequence[Path],
    store: Store,
    *,
    run: str | None = None,
    jobs: int | None = None,
    keep_all_args: bool = False,
    limits: ReadLimits | None = None,
    executor: "Executor | None" = None,
    on_progress: "OnProgress | None" = None,
    on_table: "OnTable | None" = None,
    rank_regex: str | None = None,
    reference: ReferenceRule | None = None,
    rates: Mapping[str, float] | None = None,
    racks: "StatedRacks | None" = None,
) -> "IngestResult":
    """Add trace files to a database and build every stage.

    Args:
        paths: files or folders; kinds are recognised by content.
        run: name of the run; the name of the first folder when None.
        jobs: processes that read files and make what follows from single ranks; when None as many as there are cores,
            or one where the files are read sooner than processes start.
        keep_all_args: keep the arguments of every event, not only of communication.
        limits: what reading one file may cost before it is left out; those of `ReadLimits` when None.
        executor: runs these in place of processes of our own (one job runs in this process).
        on_progress: called now and then with the bytes consumed so far and the memory of all readers.
        on_table: called before each table of a stage is made.
        rank_regex: finds the rank, its only group, in the paths of files that do not state it.
        reference: which durations count as on time; None keeps what the database has, at first the median.
        rates: what the hardware can do, per second (see `operation.stated_rates`); None keeps what the database has.
        racks: which host is in which rack; None keeps what the database has.

    Raises:
        InputUnusableError: a path does not exist, or nothing of it is a usable trace.
        UsageError: `rank_regex` is no pattern with a group.
    """
    from traceforge.align.runs import split_runs
    from traceforge.store.ingest import ingest_files
    from traceforge.store.naming import rank_pattern
    from traceforge.store.workers import readers

    files = _files_of(paths)
    name = run_name(run, paths)
    with readers(executor, jobs, files) as workers:
        result = ingest_files(
            store,
            files,
            sources(),
            run_name=name,
            executor=workers,
            options=ReadOptions(keep_all_args=keep_all_args, limits=limits or ReadLimits()),
            on_progress=on_progress,
            rank_pattern=rank_pattern(rank_regex) if rank_regex else None,
            shown=shown_names(paths),
            skipped=find_special(paths),
        )
        split_runs(store, result.run_id)
        assume(store, reference, rates, racks)
        analyze(store, on_table, workers)
    return result


def _files_of(paths: Sequence[Path]) -> list[Path]:
    files = find_files(paths)
    if not files:
        hint = "give the folder that holds the files that torch.profiler wrote"
        raise InputUnusableError("there are no files", where=", ".join(map(str, paths)), hint=hint)
    return files


def sources() -> Mapping[str, Source]:
    """All input formats by name.

    Raises:
        PluginError: a file of `sources/` exposes something else.
    """
    found: dict[str, Source] = {}
    for name, plugin in discover("traceforge.sources", "SOURCE").items():
        if not (hasattr(plugin, "recognises") and hasattr(plugin, "read")):
            raise PluginError("SOURCE does not recognise and read files", where=f"traceforge.sources.{name}")
        found[name] = plugin  # type: ignore[assignment]  # checked by its two methods
    return found


def analyze(store: Store, on_table: "OnTable | None" = None, executor: "Executor | None" = None) -> None:
    """Build every stage from the facts, unless this version has built them from the same facts already.

    Args:
        on_table: called before each table is made.
        executor: makes what follows from single ranks, some ranks at once; None makes all here.
    """
    from traceforge.store.part_workers import part_workers

    if is_current(store):
        return
    documents = {package: stage_documents(package) for package in (f"traceforge.{stage}" for stage in STAGES)}
    with part_workers(store, [one for stage in documents.values() for one in stage], executor) as workers:
        for package, of_stage in documents.items():
            build_stage(store, package, on_table, workers, of_stage)
    with store.transaction():
        store.execute("DELETE FROM meta.build")
        store.execute("INSERT INTO meta.build VALUES (?, ?)", [_build_version(), _facts_hash(store)])


def is_current(store: Store) -> bool:
    """Whether the derived schemas are those of this version and of the facts in the database."""
    built = store.rows("SELECT traceforge_version, facts_hash FROM meta.build")
    return built == [(_build_version(), _facts_hash(store))]


_READING = ("archives.py", "files.py", "inflate.py", "records.py"), ("reading", "sources", "store")
_BUILDING = ("stats.py",), (*STAGES, "thresholds")
_BOTH = ("vocabulary.py", "vocabulary.toml")


@cache
def _build_version() -> str:
    """The version and a hash of the stages' sources."""
    return _code_version((*_BUILDING[0], *_BOTH), _BUILDING[1])


@cache
def reading_version() -> str:
    """The version and a hash of what reads files."""
    return _code_version((*_READING[0], *_BOTH), _READING[1])


@cache
def worker_version() -> str:
    """The version and a hash of what workers run: they read files and make tables."""
    return _code_version((*_READING[0], *_BUILDING[0], *_BOTH), (*_READING[1], *_BUILDING[1]))


def _code_version(names: Sequence[str], folders: Sequence[str]) -> str:
    """The version and a hash of code: who runs from a checkout changes it without a new version."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for name in names:
        digest.update((root / name).read_bytes())
    for folder in (root / name for name in folders):
        for parts in sorted(_sources_below(folder)):
            digest.update("/".join(parts).encode() + folder.joinpath(*parts).read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _sources_below(folder: Path) -> Iterator[tuple[str, ...]]:
    """Parts of the path of each source file below a folder."""
    for where, _, names in os.walk(folder):
        above = Path(where).parts[len(folder.parts) :]
        yield from ((*above, name) for name in names if name.endswith((".sql", ".py", ".toml")))


def _facts_hash(store: Store) -> str:
    return hashlib.sha256(str(store.value(_FACTS_HASH)).encode()).hexdigest()


def open_built(
    path: Path,
    reference: ReferenceRule | None = None,
    on_table: "OnTable | None" = None,
    rates: Mapping[str, float] | None = None,
    racks: "StatedRacks | None" = None,
) -> Store:
    """A database for reading, its stages rebuilt first where they are not current.

    Args:
        reference: which durations are to count as on time; None keeps what the database has.
        on_table: called before each table is made that has to be.
        rates, racks: as of `ingest`.

    Raises:
        InputUnusableError: it is no trace database, or must be rebuilt and cannot be written.
    """
    store = Store(path, read_only=True)
    if is_current(store) and are_assumed(store, reference, rates, racks):
        return store
    store.close()
    if not is_writable(path):
        hint = "copy it to where you may write, and ask the copy; or use the version that built it"
        what = "its stages were built in another way, and they cannot be rebuilt here: it is write-protected"
        raise InputUnusableError(what, where=str(path), hint=hint)
    with Store(path) as writable:
        assume(writable, reference, rates, racks)
        analyze(writable, on_table)
    return Store(path, read_only=True)


def pack(folder: Path, file: Path) -> None:
    """Make one file of a folder database; the folder stays.

    Raises:
        InputUnusableError: there is no such folder, or the file cannot be made.
    """
    if not is_folder_database(folder):
        hint = hint_of_folder(folder) or "`traceforge ingest TRACES --db FOLDER/` makes one"
        raise InputUnusableError("this is no database that is a folder", where=str(folder), hint=hint)
    _convert(folder, file, Store)


def unpack(file: Path, folder: Path) -> None:
    """Make a folder database of a file; the file stays.

    Raises:
        InputUnusableError: there is no such file, or the folder cannot be made.
    """
    if file.is_dir():
        raise InputUnusableError("this is a folder already", where=str(file), hint="name a database that is a file")
    _convert(file, folder, lambda place: Store(f"{place}{os.sep}"))


def _convert(source: Path, target: Path, make: Callable[[Path], Store]) -> None:
    from traceforge.store.pack import copy_database
    from traceforge.store.targets import new_place

    with new_place(target) as place, open_built(source) as old, make(place) as new:
        copy_database(old, new, [f"traceforge.{stage}" for stage in STAGES])


def report(
    store: Store,
    *,
    run: str | None = None,
    command: str | None = None,
    baseline: "Comparison | None" = None,
    price: "Price | None" = None,
    redact: bool = False,
    as_fragment: bool = False,
) -> "Report":
    """The report of one run of a database.

    Args:
        run: name of the run; may be None where the database holds one.
        command: the command that makes the report, shown in its appendix.
        baseline: what `compare` found against an earlier run, shown in a section of its own.
        price: what a GPU costs an hour; without it costs are in GPU-hours only.
        redact: replace the names of hosts, files, users and the job.
        as_fragment: HTML for another page to hold, which executes nothing, instead of a page.

    Raises:
        UsageError: there is no such run, or several and none was named.
        InputUnusableError: the database holds no run.
    """
    from traceforge.report import build_report

    number = run_id(store, run)
    return build_report(
        store,
        run_id=number,
        versions=versions(),
        command=command,
        comparison=baseline,
        price=price,
        redaction=Redaction.of(store) if redact else None,
        as_fragment=as_fragment,
    )


def compare(
    before: Store, after: Store, *, run_before: str | None = None, run_after: str | None = None, force: bool = False
) -> "Comparison":
    """What changed between two runs, and whether it is more than their scatter.

    Args:
        before: holds the baseline; may be the same store as `after`.
        run_before, run_after: names of the runs; may be None where a database holds one.
        force: compare although the numbers of ranks differ.

    Raises:
        UsageError: the runs are not comparable (the message names the field), or there is no such run.
    """
    from traceforge.compare import Side, compare_runs

    sides = Side(before, run_id(before, run_before)), Side(after, run_id(after, run_after))
    return compare_runs(*sides, force=force)


def summary(store: Store, *, run: str | None = None) -> dict[str, object]:
    """The summary of one run for machines, as `report` has it, without making the page."""
    from traceforge.report import build_summary

    return build_summary(store, run_id=run_id(store, run))


def check(store: Store, limits: "Sequence[MetricLimit]", *, run: str | None = None) -> "list[LimitResult]":
    """Whether a run keeps limits; see `traceforge.check.parse_limit` and `against_baseline`."""
    from traceforge.check import check_limits
    from traceforge.check.measured import measure

    return check_limits(measure(store, run_id(store, run)), limits)


def doctor(store: Store, *, run: str | None = None) -> "list[Examination]":
    """What the traces of a run lack for each question, the most valuable first."""
    from traceforge.doctor import examine

    return examine(store, run_id(store, run))


def info(store: Store) -> "Inventory":
    """What a database holds: runs, files, versions, iterations, issues."""
    from traceforge.doctor import take_inventory

    return take_inventory(store, STAGES)


def run_id(store: Store, name: str | None) -> int:
    """Identifier of a run by name or by a pattern that one name matches, or of the only run."""
    runs = dict(store.rows("SELECT run_name, run_id FROM meta.run ORDER BY run_id"))
    name = name and as_text(name)
    if not runs:
        raise InputUnusableError("the database holds no run", where=str(store.path), hint="ingest traces first")
    # Runs that a folder was divided into are named after the one that kept its name.
    whole = [one for one in runs if all(other == one or other.startswith(f"{one} [") for other in runs)]
    if name is None and whole:
        return int(runs[whole[0]])
    if name is not None and name not in runs and len(matching := fnmatch.filter(runs, name)) == 1:
        return int(runs[matching[0]])
    if name not in runs:
        what = "the database holds several runs" if name is None else f"there is no run `{name}`"
        raise UsageError(what, where=str(store.path), hint=f"name one with --run: {', '.join(runs)}")
    return int(runs[name])


def divided_runs(store: Store, number: int) -> dict[int, str]:
    """The run and those that the same folder was divided into (see `align.runs`), by identifier, with their names."""
    runs = dict(store.rows("SELECT run_id, run_name FROM meta.run ORDER BY run_id"))
    name = str(runs[number]).partition(" [")[0]
    return {other: text for other, text in runs.items() if text == name or text.startswith(f"{name} [")}


def versions() -> dict[str, str]:
    """Versions of traceforge and of the libraries that its answers depend on."""
    from importlib.metadata import version

    libraries = ("altair", "duckdb", "numpy", "polars", "vl-convert-python")
    return {"traceforge": __version__, **{name: version(name) for name in libraries}}


def run_name(given: str | None, paths: Sequence[Path]) -> str:
    """The name of a run: the one that it was given, or else that of the first folder."""
    first = paths[0].resolve()
    return as_text(given or (first if first.is_dir() else first.parent).name) or "run"
