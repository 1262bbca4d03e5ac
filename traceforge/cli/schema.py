"""`traceforge schema [COMMAND]`: the JSON Schema of what a command writes as JSON."""

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from traceforge.errors import UsageError

_WITHIN = {"report": ("compare",)}  # schemas that another one refers to by the name of their file


def schema(
    command: Annotated[
        str | None, typer.Argument(help="Command, such as report; without one, all that answer in JSON are listed.")
    ] = None,
) -> None:
    """Print the JSON Schema of a command's answers.

    What it writes as JSON, every field with its unit.
    """
    if command is None:
        for name in answer_names():
            print(f"{name:<12}{answer_schema(name)['title']}")
        return
    print(json.dumps(answer_schema(command), indent=2, ensure_ascii=False))


@cache
def answer_names() -> tuple[str, ...]:
    """The commands that answer in JSON; `history` stands for all of its own."""
    return tuple(sorted(path.stem for path in _folder().glob("*.json")))


def answer_schema(command: str) -> dict[str, Any]:
    """The schema of a command's answers (JSON Schema draft 2020-12), complete in itself.

    Raises:
        UsageError: no command of this name answers in JSON.
    """
    if command not in answer_names():
        raise UsageError(f"`{command}` does not answer in JSON", hint=f"those that do: {', '.join(answer_names())}")
    document: dict[str, Any] = json.loads((_folder() / f"{command}.json").read_text("utf-8"))
    within = {f"{name}.json": answer_schema(name) for name in _WITHIN.get(command, ())}
    return {**document, "$defs": within} if within else document


def _folder() -> Path:
    return Path(str(resources.files("traceforge.cli") / "schemas"))
