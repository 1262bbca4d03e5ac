"""A prompt for SQL on a terminal. In: lines that a person types. Out: each answer as it comes.

A statement ends with a semicolon or an empty line; lines that begin with a dot are commands. History lives in memory
only: what is asked of a trace database is nobody else's business, and is not written to disk.
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from traceforge.cli.console import note, print_error
from traceforge.errors import TraceforgeError

if TYPE_CHECKING:
    from traceforge.store.answers import Answers

HELP = """\
.tables          the tables and views, with what they hold
.queries         the named queries, with what they answer
.describe TABLE  the columns of a table
.run NAME        run a named query
.help            this
.quit            leave; so does Ctrl-D
A statement ends with a semicolon or an empty line. Example: FROM timeline.iteration LIMIT 5;"""

Command = Callable[[str], None]


def ask(commands: dict[str, Command], answer: Command, read: Callable[[str], str] = input) -> None:
    """Read and answer until the person leaves.

    Args:
        commands: what to do for `.name argument`, by name.
        answer: runs a statement and prints its rows.
        read: reads a line behind a prompt; raises EOFError at the end.
    """
    pending: list[str] = []
    while True:
        try:
            line = read("   ...> " if pending else "traceforge> ")
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            pending = []
            print()
            continue
        if not pending and line.strip().startswith("."):
            name, _, argument = line.strip().partition(" ")
            if name in (".quit", ".exit"):
                return
            _guarded(commands.get(name, _unknown(name)), argument.strip())
            continue
        pending.append(line)
        if line.rstrip().endswith(";") or not line.strip():
            statement, pending = "\n".join(pending).strip().rstrip(";"), []
            if statement:
                _guarded(answer, statement)


def _unknown(name: str) -> Command:
    return lambda _: note(f"there is no command {name}; .help lists them")


def _guarded(command: Command, argument: str) -> None:
    """Run a command; an error is printed and the prompt goes on."""
    try:
        command(argument)
    except TraceforgeError as error:
        print_error(str(error))
    except KeyboardInterrupt:
        note("interrupted")


def prepare_line_editing(store: "Answers") -> None:
    """Arrow keys, history in memory and the completion of names, where the platform has them."""
    with contextlib.suppress(ImportError):
        import readline

        tables = store.query(
            "SELECT DISTINCT schema_name || '.' || table_name AS name FROM duckdb_columns()"
            " WHERE database_name = current_database() AND NOT internal ORDER BY name"
        )["name"].to_list()

        def complete(text: str, state: int) -> str | None:
            fitting = [name for name in tables if name.startswith(text)]
            return fitting[state] if state < len(fitting) else None

        readline.set_completer(complete)
        readline.set_completer_delims(" \t\n(),;")
        readline.parse_and_bind("tab: complete")
