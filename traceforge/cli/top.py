"""`traceforge top (DIR|DB)`: what bounds a run, and what its devices spend most time on."""

from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from traceforge.cli.console import print_frame, printable
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.cli.named_queries import query_text
from traceforge.errors import InputUnusableError


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
        rows = store.query(f"SELECT * FROM ({query_text(_QUERIES[by])}) WHERE run_id = ? LIMIT ?", [run_id, count])
        rows = rows.drop("run_id")
        bound = store.rows(_BOUND, [run_id])
    if rows.is_empty():
        why = "no nn.Module was recorded" if by is By.module else "no kernel or operation was recorded"
        hint = (
            "record with_modules=True (torch.profiler)"
            if by is By.module
            else "give a Kineto trace of one rank or more"
        )
        raise InputUnusableError(f"nothing to add up: {why}", where=str(target), hint=hint)
    if as_json:
        print_json({"bound": bound[0][0] if bound else None, "by": by.value, "rows": rows.to_dicts()})
        return
    for sentence, next_step in bound:
        print(printable(f"{sentence}\n  next: {next_step}\n"))
    print_frame(rows, max_rows=count)
