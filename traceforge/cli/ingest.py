"""`traceforge ingest PATH... --db FILE`: trace files into a database, every stage built."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note
from traceforge.cli.files_used import files_used
from traceforge.cli.progress import progress
from traceforge.cli.standard_input import STANDARD_INPUT, without_standard_input
from traceforge.errors import PartialDataError, UsageError
from traceforge.records import ReadLimits
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.units import plural

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from traceforge.align.stated_racks import StatedRacks
    from traceforge.store.database import Store
    from traceforge.store.ingest import IngestResult

_MOST_NAMES = 10
_MIB = 1024 * 1024
_WARNINGS = """
SELECT code, SUM(count) AS count FROM meta.issue
WHERE run_id = ? AND severity <> 'info'
GROUP BY code ORDER BY code
"""

Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Processes that read files and ranks; by default one a core, of small jobs one."
    ),
]
RankRegex = Annotated[
    str | None,
    typer.Option(help="Finds the rank in the path of a file that does not state it, such as 'gpu(\\d+)'."),
]
Reference = Annotated[
    ReferenceRule | None,
    typer.Option(
        metavar="RULE",
        help="What counts as on time: median durations (median, the default), their first quartile (first_quartile), "
        "or those of the best rank (best_rank). A database keeps the rule that it was last given.",
    ),
]
Peaks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="What a device can do at most, before what is known of it: bf16, tf32, fp32, fp8 in dense TFLOP/s, memory "
        "in GB/s. Repeatable.",
    ),
]
LineRates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="What each rank can send in one direction, GB/s: link to its host, nic to other hosts. Repeatable.",
    ),
]
Racks = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Which rack each host stands in: lines of host,rack, or a JSON object."),
]
RackPattern = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Finds the rack, its only group, in the names of hosts, such as '^r(\\d+)n'."),
]
FileSeconds = Annotated[
    float | None,
    typer.Option(min=0, metavar="S", help="CPU time after which a file is left out, as an issue of it (600)."),
]
FileMemory = Annotated[
    int | None,
    typer.Option(min=1, metavar="MIB", help="Memory above which a file is left out, as an issue of it (2048)."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail (exit 4) if anything was skipped or repaired.")]


def ingest(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Trace files, or folders that hold them; - for standard input.")
    ],
    db: Annotated[
        str, typer.Option(metavar="DB", help="Database to create or extend: a DuckDB file, or a folder (ends in /).")
    ],
    run: Annotated[str | None, typer.Option(help="Name of the run; by default the folder's name.")] = None,
    jobs: Jobs = None,
    rank_regex: RankRegex = None,
    reference: Reference = None,
    peak: Peaks = None,
    line_rate: LineRates = None,
    racks: Racks = None,
    rack_pattern: RackPattern = None,
    args: Annotated[str, typer.Option(help="Event arguments to keep: communication or all.")] = "communication",
    file_seconds: FileSeconds = None,
    file_memory_mib: FileMemory = None,
    strict: Strict = False,
    part: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Read part I of N alone, as a job array does; `merge` makes a database."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="dask://HOST:PORT", help="Have the workers of a Dask cluster read (extra `cluster`)."),
    ] = None,
) -> None:
    """Read traces into a database and analyse them. Files it already holds are not read again.

    A database is a DuckDB file, or a folder of Parquet partitions with a catalogue, which all workers write at once.
    """
    from traceforge.align.stated_racks import parsed_racks
    from traceforge.files import find_files, size_bytes
    from traceforge.operation.stated_rates import parsed_rates
    from traceforge.store.database import Store
    from traceforge.store.folder_advice import folder_advice

    if args not in ("communication", "all"):
        raise typer.BadParameter("must be `communication` or `all`", param_hint="--args")
    limits = limits_of(file_seconds, file_memory_mib)
    rates = parsed_rates(peak or (), line_rate or ())
    stated = parsed_racks(racks, rack_pattern)
    options = ShownOptions(run, jobs, rank_regex, args == "all", reference, limits, rates, stated)
    if executor is not None:
        _check_shared(paths, db, part, jobs)
    if part is not None:
        _ingest_part(paths, db, part, options, strict=strict)
        return
    with without_standard_input(paths) as given, _readers(executor) as readers, Store(db) as store:
        if store.folder is None and (advice := folder_advice(Path(db), sum(map(size_bytes, find_files(given))))):
            note(advice)
        result = ingest_shown(given, store, options, readers)
        say_result(store, result, db, strict=strict)


def _check_shared(paths: list[Path], db: str, part: str | None, jobs: int | None) -> None:
    """Refuse what the machines of a cluster cannot do together."""
    from traceforge.store.folder import is_folder_name

    if part is not None or jobs is not None:
        raise UsageError("--executor and --part or --jobs exclude one another", hint="a cluster has workers of its own")
    if not is_folder_name(db):
        hint = f"name a folder that all machines share: --db {Path(db).with_suffix('')}/"
        raise UsageError("--executor needs a database that is a folder, which all workers write", where=db, hint=hint)
    if STANDARD_INPUT in paths:
        raise UsageError("workers of a cluster read files, not standard input", hint="name the folder of all traces")


def _readers(executor: str | None) -> "AbstractContextManager[Executor | None]":
    if executor is None:
        return nullcontext()
    from traceforge.cluster import readers_at

    return readers_at(executor)


def _ingest_part(paths: list[Path], db: str, text: str, options: "ShownOptions", *, strict: bool) -> None:
    """Read one part of a job array, and say what of it could not be used."""
    from traceforge import job_array
    from traceforge.files import find_files
    from traceforge.store.array_manifest import part_of
    from traceforge.store.folder import is_folder_name

    part = part_of(text)
    if not is_folder_name(db):
        hint = f"name a folder: --db {Path(db).with_suffix('')}/"
        raise UsageError("--part needs a database that is a folder, which all parts can write", where=db, hint=hint)
    if options.reference is not None or options.rates or options.racks or strict:
        what = "--reference, --peak, --line-rate, --racks, --rack-pattern and --strict are not of a part"
        raise UsageError(what, hint="give them to `traceforge merge`")
    if STANDARD_INPUT in paths:
        raise UsageError("--part reads files, not standard input", hint="name the folder that holds all traces")
    of_stages = ("reference", "rates", "racks")
    given = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in of_stages}
    with progress(part.of(sorted(find_files(paths)))) as shown:
        manifest = job_array.ingest_part(paths, Path(db), part, **given, on_progress=shown.on_progress)
    for one in manifest.files:
        if one.found.error is not None:
            note(f"warning: {Path(one.path).name}: {one.found.error.what}")
    note(f"part {part}: {plural(manifest.read_count, 'trace')} of {plural(len(manifest.files), 'file')} read")
    note(f"when all parts are there: traceforge merge {db}")


def say_result(store: "Store", result: "IngestResult", db: str, *, strict: bool) -> None:
    """Say on stderr what a database was made of.

    Raises:
        PartialDataError: something was skipped or repaired, and `strict` is set.
    """
    for line in files_used(store, result.run_id, in_all_runs=True):
        note(line)
    note(f"{plural(len(result.read), 'file')} read, {len(result.unchanged)} unchanged; database: {db}")
    if result.unrecognised:
        names = ", ".join(path.name for path in result.unrecognised[:_MOST_NAMES])
        more = " …" if len(result.unrecognised) > _MOST_NAMES else ""
        note(f"{plural(len(result.unrecognised), 'file')} of no known kind left out: {names}{more}")
    check_complete(store, result.run_id, strict=strict)


@dataclass(frozen=True, slots=True)
class ShownOptions:
    """What a user may say of an ingest; see `api.ingest`."""

    run: str | None = None
    jobs: int | None = None
    rank_regex: str | None = None
    keep_all_args: bool = False
    reference: ReferenceRule | None = None
    limits: ReadLimits | None = None
    rates: Mapping[str, float] | None = None
    racks: "StatedRacks | None" = None


def limits_of(file_seconds: float | None, file_memory_mib: int | None) -> ReadLimits:
    """What reading a file may cost, as far as it is given on the command line."""
    limits = ReadLimits()
    if file_seconds is not None:
        limits = replace(limits, cpu_seconds=file_seconds)
    return limits if file_memory_mib is None else replace(limits, memory_bytes=file_memory_mib * _MIB)


def ingest_shown(
    paths: list[Path], store: "Store", options: ShownOptions, executor: "Executor | None" = None
) -> "IngestResult":
    """Ingest with a progress bar, and say on stderr what could not be used."""
    from traceforge import api
    from traceforge.files import find_files

    with progress(find_files(paths)) as shown:
        given = {field.name: getattr(options, field.name) for field in fields(options)}
        result = api.ingest(
            paths, store, **given, executor=executor, on_progress=shown.on_progress, on_table=shown.on_table
        )
    for path, error in result.failed:
        note(f"warning: {path.name}: {error.what}")
    return result


def check_complete(store: "Store", run_id: int, *, strict: bool) -> None:
    """Say which warnings there are; under `--strict` fail because of them.

    Raises:
        PartialDataError: something was skipped or repaired, and `strict` is set.
    """
    issues = store.rows(_WARNINGS, [run_id])
    for code, count in issues:
        note(f"warning: {code}: {count} (see meta.issue)")
    if issues and strict:
        raise PartialDataError(
            "data is incomplete, and --strict was given", hint="FROM meta.issue lists what and where"
        )
