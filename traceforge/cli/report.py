"""`traceforge report (DIR|DB)`: the verdict on the terminal, and the whole report as one HTML file."""

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note, printable
from traceforge.cli.ingest import Jobs, RankRegex, ShownOptions, Strict, check_complete, ingest_shown
from traceforge.errors import InputUnusableError

if TYPE_CHECKING:
    from traceforge.store.database import Store

_DUCKDB_MAGIC = b"DUCK"


def report(
    target: Annotated[Path, typer.Argument(help="Folder of traces, a trace file, or a database made by `ingest`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("report.html"),
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the summary as JSON; - for stdout.")
    ] = None,
    price_per_gpu_hour: Annotated[
        float | None, typer.Option(min=0, help="What one GPU costs an hour; the report then tells losses in money too.")
    ] = None,
    currency: Annotated[str, typer.Option(help="Currency of that price.")] = "USD",
    run: Annotated[str | None, typer.Option(help="Run to report, where the database holds several.")] = None,
    jobs: Jobs = None,
    rank_regex: RankRegex = None,
    strict: Strict = False,
) -> None:
    """Say why the job scales badly, what it costs and what would help."""
    from traceforge import api
    from traceforge.report.cost import Price

    with _database(target, ShownOptions(run, jobs, rank_regex)) as store:
        command = f"traceforge report {shlex.quote(_shown(target))}"
        price = None if price_per_gpu_hour is None else Price(price_per_gpu_hour, currency)
        made = api.report(store, run=run, command=command, price=price)
        check_complete(store, api.run_id(store, run), strict=False)
        _write(output, made.html)
        summary = json.dumps(made.summary, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        if json_file is not None and str(json_file) != "-":
            _write(json_file, summary)
        if str(json_file) == "-":
            sys.stdout.write(summary)
        else:
            print("\n".join(printable(line) for line in made.verdict_lines))
        note(f"report: {output} ({len(made.html.encode()) / 1e6:.1f} MB)")
        check_complete_strictly(store, api.run_id(store, run), strict=strict)


def check_complete_strictly(store: "Store", run_id: int, *, strict: bool) -> None:
    """Under `--strict`, fail after the report is written if data are partial."""
    if strict:
        check_complete(store, run_id, strict=True)


@contextmanager
def _database(target: Path, options: ShownOptions) -> "Iterator[Store]":
    from traceforge import api
    from traceforge.store.database import Store

    if not target.exists():
        raise InputUnusableError("no such file or folder", where=str(target))
    if _is_database(target):
        with api.open_built(target) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="traceforge-") as folder, Store(Path(folder, "traces.duckdb")) as store:
        ingest_shown([target], store, options)
        yield store


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _DUCKDB_MAGIC in file.read(16)


def _shown(target: Path) -> str:
    # An absolute path says more about the machine than the reader of a report needs.
    return target.name if target.is_absolute() else str(target)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputUnusableError(f"cannot be written: {error.strerror}", where=str(path)) from error
