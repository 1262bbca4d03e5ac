"""`traceforge mcp DB...`: answers for agents over the Model Context Protocol, on standard input and output."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note
from traceforge.cli.inputs import TARGET_HELP, opened
from traceforge.cli.named_queries import named_queries


def mcp(
    targets: Annotated[list[Path], typer.Argument(metavar="DB", help=TARGET_HELP)],
) -> None:
    """Answer agents over MCP. Read-only, on standard input and output; needs the extra `mcp`."""
    from traceforge.serve.answers import Answerer
    from traceforge.serve.server import make_server

    queries = {query.name: (query.purpose, query.text) for query in named_queries() if query.stage != "history"}
    with ExitStack() as stack:
        stores = {}
        for target in targets:
            name = target.stem or target.name
            while name in stores:
                name += "_"
            stores[name] = stack.enter_context(opened(target))
        server = make_server(Answerer(stores, queries))
        note(f"serving {', '.join(stores)} on standard input and output")
        server.run("stdio")
