"""`traceforge replay DB --policy …`: what a pacing policy would have done, and how far to believe it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note, print_table
from traceforge.errors import InputUnusableError


def replay(
    db: Annotated[Path, typer.Argument(help="Database made by `ingest`.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="Such as bounded_delay:window=4,gain=0.5; may be repeated. By default all policies."),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Run to replay, where the database holds several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Replay the recorded iterations under pacing policies."""
    import polars as pl

    from traceforge import api
    from traceforge.replay.model import load_model
    from traceforge.replay.outcome import outcomes
    from traceforge.replay.policy import parse_policy, policies

    chosen = [parse_policy(text) for text in policy or policies()]
    with api.open_built(db) as store:
        run_id = api.run_id(store, run)
        model = load_model(store, run_id)
    if model is None or not model.calls.any():
        raise InputUnusableError(
            "no iteration with matched collectives to replay",
            where=str(db),
            hint="FROM meta.issue and FROM attribute.verdict say what is missing",
        )
    found = [asdict(outcome) for outcome in outcomes(run_id, model, chosen)]
    if as_json:
        print(json.dumps({"schema_version": 1, "outcomes": found}, indent=2))
        return
    print_table(
        pl.DataFrame(found).select(
            "policy", "parameters", "throughput_ratio", "gain_ceiling", "cv", "engaged_share", "verdict"
        )
    )
    for outcome in found:
        note(f"{outcome['policy']}: {outcome['reason']}")
