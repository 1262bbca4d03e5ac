"""`traceforge sql DB [QUERY]`: questions to a trace database, read-only and without access to other files."""

import io
import json
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note, print_frame, printable
from traceforge.cli.named_queries import named_queries, query_text
from traceforge.cli.sql_text import opened_for_sql, print_answer
from traceforge.errors import UsageError
from traceforge.store.json_values import json_value

if TYPE_CHECKING:
    import polars as pl

    from traceforge.store.database import Store
    from traceforge.store.history_file import HistoryFile

    Asked = Store | HistoryFile

_DICTIONARY = """
SELECT schema_name || '.' || table_name AS "table", column_name AS "column", data_type AS type, comment
FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal AND schema_name <> 'main'
ORDER BY schema_name, table_name, column_index
"""

_TABLES = """
SELECT schema_name || '.' || table_name AS "table", comment FROM (
  SELECT database_name, schema_name, table_name, comment, internal FROM duckdb_tables()
  UNION ALL
  SELECT database_name, schema_name, view_name, comment, internal FROM duckdb_views()
)
WHERE database_name = current_database() AND NOT internal AND schema_name <> 'main'
ORDER BY 1
"""


_FORMULA = ("=", "+", "-", "@")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


class Format(StrEnum):
    """Output format."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def _complete_query(start: str) -> list[str]:
    return sorted(query.name for query in named_queries() if query.name.startswith(start))


def sql(
    db: Annotated[
        Path | None, typer.Argument(help="Database made by `ingest`, or a history; --list needs none.")
    ] = None,
    query: Annotated[str | None, typer.Argument(help="SQL; - reads it from standard input.")] = None,
    show_tables: Annotated[bool, typer.Option("--list", help="List the tables and the named queries.")] = False,
    about: Annotated[str, typer.Option(help="With --list: only what has this word in it.")] = "",
    describe: Annotated[str | None, typer.Option(help="Describe the columns of one table.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Run a named query (see --list).", autocompletion=_complete_query)
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.table,
    raw: Annotated[bool, typer.Option("--raw", help="Leave texts in csv as they are, formulas and all.")] = False,
) -> None:
    """Query a database in SQL; without a query, at a prompt. It is opened read-only; SQL cannot reach other files."""
    if db is None:
        if not show_tables:
            raise UsageError(
                "no database given", hint="make one with `traceforge ingest`; --list alone shows the queries"
            )
        _write(_listed(about), output_format)
        return
    with opened_for_sql(db) as store:
        store.lock_down()
        if show_tables:
            _write_lists(_tables(store, output_format, about), _listed(about), output_format)
        elif describe is not None:
            _write(_describe(store, describe), output_format)
        elif query is None and name is None and sys.stdin.isatty():
            _converse(store, output_format)
        else:
            if name is not None:
                _refuse_other_kind(store, name)
            _answer(store, _text(query, name), output_format, raw=raw)


def _answer(store: "Asked", statement: str, output_format: Format, *, raw: bool = False) -> None:
    """What the database says; as a table without polars, which takes longer to load than most questions."""
    if output_format is not Format.table:
        _write(store.query(statement), output_format, raw=raw)
        return
    print_answer(store, statement)


def _refuse_other_kind(store: "Asked", name: str) -> None:
    """A named query of a history asks no trace database, and the other way round.

    Raises:
        UsageError: it is of the other kind, or there is none of this name.
    """
    from traceforge.store.history_file import HistoryFile

    query_text(name)
    is_history = isinstance(store, HistoryFile)
    asks_history = any(query.stage == "history" for query in named_queries() if query.name == name)
    if is_history != asks_history:
        kinds = ("a trace database, as `traceforge ingest` makes it", "a history, as `traceforge history add` makes it")
        what = f"the named query `{name}` asks {kinds[asks_history]}; this is {('none', 'a history')[is_history]}"
        raise UsageError(what, where=str(store.path), hint="--list shows them, --about history those of histories")


def _converse(store: "Asked", output_format: Format) -> None:
    from traceforge.cli.prompt import HELP, ask, prepare_line_editing

    prepare_line_editing(store)
    note(f"{store.path}, read-only. .help lists the commands, .quit leaves.")
    commands = {
        ".help": lambda _: print(HELP),
        ".tables": lambda _: _write(_tables(store, Format.table), Format.table),
        ".queries": lambda _: _write(_listed(), Format.table),
        ".describe": lambda table: _write(_describe(store, table), Format.table),
        ".run": lambda name: _answer(store, query_text(name), output_format),
    }
    ask(commands, lambda statement: _answer(store, statement, output_format))


def _text(query: str | None, name: str | None) -> str:
    if name is not None:
        return query_text(name)
    if query == "-":
        return sys.stdin.read()
    if query is None:
        raise UsageError("no query given", hint="give SQL, --name NAME, or --list to see what there is")
    return query


def _tables(store: "Asked", output_format: Format, about: str = "") -> "pl.DataFrame":
    """Tables and views with what they hold; in a table, its first sentence."""
    is_whole = output_format is not Format.table
    shown = "comment" if is_whole else "SPLIT_PART(comment, '. ', 1) AS comment"
    word = f"%{about.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
    matches = """"table" || ' ' || COALESCE(comment, '') ILIKE ? ESCAPE '!'"""
    return store.query(f"""SELECT "table", {shown} FROM ({_TABLES}) WHERE {matches}""", [word])


def _describe(store: "Asked", table: str) -> "pl.DataFrame":
    """The columns of a table; what the table holds, and its scope, as a remark."""
    columns = store.query(f'SELECT "column", type, comment FROM ({_DICTIONARY}) WHERE "table" = ?', [table])
    if columns.is_empty():
        raise UsageError(f"there is no table `{table}`", hint="--list shows all tables")
    for about in store.query(f'SELECT comment FROM ({_TABLES}) WHERE "table" = ?', [table])["comment"]:
        if about:
            note(f"{table}: {about}")
    return columns


def _listed(about: str = "") -> "pl.DataFrame":
    """Named queries, by the stage whose tables they read."""
    import polars as pl

    rows = [(query.stage, query.name, query.purpose) for query in named_queries(about)]
    return pl.DataFrame(rows, schema={"about": pl.String, "named query": pl.String, "purpose": pl.String}, orient="row")


def _write_lists(tables: "pl.DataFrame", queries: "pl.DataFrame", output_format: Format) -> None:
    """Tables and named queries: two tables for people, one for programs."""
    import polars as pl

    if output_format is Format.table:
        _write(tables, output_format)
        _write(queries, output_format)
        return
    found = [
        tables.select(kind=pl.lit("table"), name="table", purpose="comment"),
        queries.select(kind=pl.lit("named query"), name="named query", purpose="purpose"),
    ]
    _write(pl.concat(found), output_format)


def _write(frame: "pl.DataFrame", output_format: Format, *, raw: bool = False) -> None:
    import polars as pl

    if output_format is Format.table:
        print_frame(frame, max_rows=frame.height)
        if frame.is_empty():
            note("no rows")
    elif output_format is Format.csv:
        nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
        texts = [pl.Series(name, [_json_text(value) for value in frame[name].to_list()], pl.String) for name in nested]
        flat = frame.with_columns(texts)
        sys.stdout.write((flat if raw else _harmless(flat)).write_csv())
    elif output_format is Format.parquet:
        if sys.stdout.isatty():
            raise UsageError("Parquet is binary", hint="send it to a file: --format parquet > rows.parquet")
        whole = io.BytesIO()
        frame.write_parquet(whole)
        sys.stdout.buffer.write(whole.getvalue())
    else:
        rows = [[json_value(value) for value in row] for row in frame.rows()]
        document = {"schema_version": 1, "columns": frame.columns, "rows": rows}
        sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")


def _harmless(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Texts that neither a terminal nor a spreadsheet takes for commands; names of columns too."""
    import polars as pl

    texts = [name for name, dtype in frame.schema.items() if dtype in (pl.String, pl.Categorical)]
    columns = [pl.Series(name, [_harmless_text(text) for text in frame[name].cast(pl.String)]) for name in texts]
    return frame.with_columns(columns).rename({name: _harmless_text(name) or name for name in frame.columns})


def _harmless_text(text: str | None) -> str | None:
    if text is None:
        return None
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA) and not _NUMBER.fullmatch(shown) else shown


def _json_text(value: object) -> str | None:
    return None if value is None else json.dumps(json_value(value), allow_nan=False)
