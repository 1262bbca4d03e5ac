"""Options that all commands have. In: the function of a command. Out: the same with `--quiet` and `--verbose`.

Idea: both are added where commands are made, so that no command has to know them.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated

import typer

from traceforge.cli.loudness import Loudness, speak

_Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but the answer and errors.")]
_Verbose = Annotated[bool, typer.Option("--verbose", help="Also say what each stage took.")]


def audible(function: Callable[..., None]) -> Callable[..., None]:
    """The command with `--quiet` and `--verbose` after its own options."""

    @wraps(function)
    def command(*, quiet: bool, verbose: bool, **given: object) -> None:
        if quiet or verbose:
            speak(Loudness.quiet if quiet else Loudness.verbose)
        function(**given)

    own = inspect.signature(function)
    for parameter in own.parameters.values():
        for option in getattr(parameter.annotation, "__metadata__", ()):
            option.readable = False  # whoever opens a file says why it cannot be read; here it would be a wrong usage
    added = {"quiet": _Quiet, "verbose": _Verbose}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in added.items()
    ]
    command.__signature__ = own.replace(parameters=[*own.parameters.values(), *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {**function.__annotations__, **added}
    return command
