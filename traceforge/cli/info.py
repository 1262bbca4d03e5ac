"""`traceforge info (DIR|DB)`: what a database holds, in a few lines."""

from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.info_text import print_info
from traceforge.cli.inputs import TARGET_HELP, opened, print_json


def info(
    target: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show what a database holds.

    Runs, files, ranks, hosts, versions, iterations, events, issues, size, stages built.
    """
    from dataclasses import asdict

    from traceforge import api

    with opened(target) as store:
        found = api.info(store)
    if as_json:
        print_json({"database": asdict(found)})
        return
    print_info(found)
