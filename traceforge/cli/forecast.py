"""`traceforge forecast DB`: where an iteration's time goes, and what must be measured for a scaling curve."""

import json
from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import print_table, printable


def forecast(
    db: Annotated[Path, typer.Argument(help="Database made by `ingest`.")],
    run: Annotated[str | None, typer.Option(help="Run to look at, where the database holds several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Say what one run tells about scaling. One scale makes no curve: none is drawn."""
    from traceforge import api

    with api.open_built(db) as store:
        run_id = api.run_id(store, run)
        measured = store.query("SELECT model, ranks, value, low, high FROM forecast.scale WHERE run_id = ?", [run_id])
        terms = store.query(
            "SELECT term, duration_ns_per_iteration, share FROM forecast.term WHERE run_id = ? ORDER BY share DESC",
            [run_id],
        )
        needs = store.query("SELECT item, why FROM forecast.need WHERE run_id = ? ORDER BY item", [run_id])
    if as_json:
        document = {"measured": measured.to_dicts(), "terms": terms.to_dicts(), "needs": needs.to_dicts()}
        print(json.dumps({"schema_version": 1, **document}, indent=2))
        return
    print("No scaling curve: the database holds this run at one scale.\n")
    print("Where an iteration's time goes (mean over ranks):")
    print_table(terms)
    print("\nIterations a second, measured:")
    print_table(measured)
    print("\nTo draw a curve, measure:")
    for item, why in needs.iter_rows():
        print(printable(f"- {item}. {why}"))
