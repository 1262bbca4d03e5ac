"""`traceforge top (DIR|DB)`: what bounds a run, and what its devices spend most time on."""

import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import print_frame, printable
from traceforge.cli.files_used import note_other_runs
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.cli.named_queries import query_text
from traceforge.errors import InputUnusableError

if TYPE_CHECKING:
    import polars as pl

_WIDTH, _HANGING = 100, " " * len("  next: ")


class By(StrEnum):
    """What rows are."""

    kernel = "kernel"
    operation = "operation"
    module = "module"
    kind = "kind"


_QUERIES = MappingProxyType(
    {By.kernel: "top_kernels", By.operation: "top_operations", By.module: "top_modules", By.kind: "kernel_breakdown"}
)

_BOUND = "SELECT sentence, next_step FROM attribute.bound WHERE run_id = ? AND rank IS NULL"

_OTHERS = "SELECT DISTINCT run_name FROM meta.run JOIN ({query}) USING (run_id) ORDER BY run_name"


def top(
    target: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    by: Annotated[By, typer.Option(help="What to add up.")] = By.kernel,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Rows to print.")] = 20,
    run: Annotated[str | None, typer.Option(help="Which run, where there are several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show what bounds a run and what takes longest. One rank is enough.

    Calls and times are of one iteration, mean over ranks; on hosts without devices operations stand in for kernels.
    """
    from traceforge import api

    with opened(target) as store:
        run_id = api.run_id(store, run)
        note_other_runs(store, run_id, run)
        query = query_text(_QUERIES[by])
        rows = store.query(f"SELECT * FROM ({query}) WHERE run_id = ? LIMIT ?", [run_id, count])
        if rows.is_empty():
            others = [str(name) for (name,) in store.rows(_OTHERS.format(query=query))]
            why, hint = _lack(by, others)
            raise InputUnusableError(f"nothing to add up: {why}", where=str(target), hint=hint)
        rows = rows.drop("run_id")
        bound = store.rows(_BOUND, [run_id])
    if as_json:
        print_json({"bound": bound[0][0] if bound else None, "by": by.value, "rows": rows.to_dicts()})
        return
    for sentence, next_step in bound:
        advice = wrap(f"  next: {next_step}", _WIDTH, subsequent_indent=_HANGING)
        print(printable("\n".join([*wrap(sentence, _WIDTH), *advice, ""])))
    print_frame(_as_read(rows), max_rows=count)


def _as_read(rows: "pl.DataFrame") -> "pl.DataFrame":
    """Numbers to three digits, shares in percent, no column that is empty."""
    from polars import col, selectors

    known = rows.select(column for column in rows if column.null_count() < rows.height)
    percent = known.rename({"share": "percent"}).with_columns((100 * col("percent")).round(1).alias("percent"))
    return percent.with_columns((selectors.float() - selectors.by_name("percent")).round_sig_figs(3))


def _lack(by: By, others: Sequence[str]) -> tuple[str, str]:
    """Why there is nothing, and what to do."""
    if by is By.module:
        why, hint = "no nn.Module was recorded", "record with_modules=True (torch.profiler)"
    else:
        why = "in the time judged no kernel ran, nor an operation on a host without devices"
        hint = "give a Kineto trace of one rank or more"
    return why, f"other runs have some: --run {shlex.quote(others[0])}" if others else hint
