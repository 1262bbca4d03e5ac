"""Tables as Parquet files. In: a store. Out: one folder per table and run, and documentation of each column.

Idea: `timeline.arrival/run_id=0/rows.parquet` is what DuckDB, Spark, polars and pandas read as one table partitioned by
run; `tables.json` (for programs) and `README.md` (for people) carry the comments. Paths consist of our own table names
and run numbers, never of text that a trace or a person chose. A redacted export replaces names in all columns and
empties columns of free text. Not handled: tables that others put into the database.
"""

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl

from traceforge.redaction import FREE_TEXT, Redaction
from traceforge.store.database import Store
from traceforge.store.targets import new_folder

SCHEMA_VERSION = 1
_FACTS = ("raw",)
_SCHEMAS = ("meta", "align", "timeline", "operation", "fabric", "graph", "replay", "attribute", "forecast")
_OURS = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_0-9]*")
_COLUMNS = """
SELECT c.schema_name || '.' || c.table_name AS name, o.comment AS description, c.column_name, c.data_type, c.comment
FROM duckdb_columns() AS c
JOIN (
  SELECT database_name, schema_name, table_name, comment FROM duckdb_tables()
  UNION ALL
  SELECT database_name, schema_name, view_name, comment FROM duckdb_views()
) AS o ON o.database_name = c.database_name AND o.schema_name = c.schema_name AND o.table_name = c.table_name
WHERE c.database_name = CURRENT_DATABASE() AND NOT c.internal AND LIST_CONTAINS(?, c.schema_name)
ORDER BY name, c.column_index
"""


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """A column with its DuckDB type and its documentation."""

    name: str
    type: str
    comment: str


@dataclass(slots=True)
class ExportedTable:
    """A table that was written.

    Attributes:
        name: schema and table.
        comment: what a row is.
        columns: those in the files; a partitioned table has `run_id` in the folder's name instead.
        is_partitioned: whether there is one folder per run.
        row_count: rows in all files.
        files: paths relative to the output folder.
    """

    name: str
    comment: str
    columns: list[ExportedColumn]
    is_partitioned: bool
    row_count: int
    files: list[str]


def export_parquet(
    store: Store,
    folder: Path,
    *,
    run_id: int | None = None,
    with_facts: bool = False,
    redaction: Redaction | None = None,
) -> list[ExportedTable]:
    """Write all documented tables into a folder, which must be new or empty.

    Args:
        store: with its stages built.
        folder: is created.
        run_id: only this run; all runs when None.
        with_facts: whether `raw.*`, by far the largest part, is written too.
        redaction: replaces names and empties columns of free text.

    Raises:
        UsageError: the folder is not empty.
        InputUnusableError: it cannot be written.
    """
    runs = store.run_ids()
    chosen = runs if run_id is None else [run_id]
    exported = []
    with new_folder(folder) as place:
        for table in _tables(store, (*_SCHEMAS, *(_FACTS if with_facts else ()))):
            replaced = _redacted(store, table, redaction) if redaction else _NO_REDACTION
            _write(store, table, place, chosen, replaced)
            exported.append(table)
        _document(store, place, exported, chosen, redaction)
    return exported


def _tables(store: Store, schemas: tuple[str, ...]) -> list[ExportedTable]:
    found: dict[str, ExportedTable] = {}
    for name, description, column, kind, comment in store.query(_COLUMNS, [list(schemas)]).iter_rows():
        if _OURS.fullmatch(name):
            table = found.setdefault(name, ExportedTable(name, description or "", [], False, 0, []))
            table.columns.append(ExportedColumn(column, kind, comment or ""))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Redaction:
    """SQL that replaces names in a table `t`: after `t.*`, and after the table."""

    replace: str
    joins: str


_NO_REDACTION = _Redaction("", "")


def _redacted(store: Store, table: ExportedTable, redaction: Redaction) -> _Redaction:
    """Replacements as temporary tables, so that memory holds only values that differ."""
    replaced, joins = [], []
    for number, column in enumerate(table.columns):
        if f"{table.name}.{column.name}" in FREE_TEXT:
            replaced.append(f"CAST(NULL AS VARCHAR) AS {column.name}")
            table.columns[number] = replace(column, comment=f"{column.comment} Left out: free text.".strip())
            continue
        if column.type not in ("VARCHAR", "VARCHAR[]"):
            continue
        known = store.query(
            f"SELECT DISTINCT {column.name} FROM {table.name} WHERE {column.name} IS NOT NULL ORDER BY 1"
        )
        redacted = redaction.frame(known)
        if redacted.equals(known):
            continue
        own = f"temp.names_{number}"
        store.execute(f"CREATE OR REPLACE TEMP TABLE names_{number} (original {column.type}, redacted {column.type})")
        store.append(own, pl.DataFrame({"original": known[column.name], "redacted": redacted[column.name]}))
        replaced.append(f"n{number}.redacted AS {column.name}")
        joins.append(f"LEFT JOIN {own} AS n{number} ON n{number}.original = t.{column.name}")
    return _Redaction(f"REPLACE ({', '.join(replaced)})" if replaced else "", " ".join(joins))


def _write(store: Store, table: ExportedTable, folder: Path, runs: list[int], replaced: _Redaction) -> None:
    names = {column.name for column in table.columns}
    table.is_partitioned = bool(names & {"run_id", "source_id"}) and table.name != "meta.run"
    for number in runs if table.is_partitioned else [None]:
        rows, kept = _rows(table, names, number, runs)
        place = Path(table.name, *([f"run_id={number:d}"] if number is not None else []), "rows.parquet")
        count = int(store.value(f"SELECT COUNT(*) FROM {table.name} AS t {kept}"))
        if not count and number is not None:
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        store.write_parquet(
            f"SELECT {rows} {replaced.replace} FROM {table.name} AS t {replaced.joins} {kept}", folder / place
        )
        table.row_count += count
        table.files.append(place.as_posix())
    if table.is_partitioned:
        table.columns = [column for column in table.columns if column.name != "run_id"]


def _rows(table: ExportedTable, names: set[str], number: int | None, runs: list[int]) -> tuple[str, str]:
    """Columns and condition of one file."""
    if number is None:
        listed = ", ".join(f"{run:d}" for run in runs) or "NULL"
        return "t.*", f"WHERE t.run_id IN ({listed})" if "run_id" in names else ""
    if "run_id" in names:
        return "t.* EXCLUDE (run_id)", f"WHERE t.run_id = {number:d}"
    return "t.*", f"WHERE t.source_id IN (SELECT source_id FROM meta.source WHERE run_id = {number:d})"


def _document(
    store: Store, folder: Path, tables: list[ExportedTable], runs: list[int], redaction: Redaction | None
) -> None:
    known = store.query("SELECT run_id, run_name FROM meta.run")
    named = dict((redaction.frame(known) if redaction else known).rows())
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "runs": [{"run_id": run, "run_name": named.get(run)} for run in runs],
        "tables": [
            {
                "name": table.name,
                "comment": table.comment,
                "partitioned_by": "run_id" if table.is_partitioned else None,
                "row_count": table.row_count,
                "files": table.files,
                "columns": [asdict(column) for column in table.columns],
            }
            for table in tables
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_readme(tables), encoding="utf-8")


def _readme(tables: list[ExportedTable]) -> str:
    lines = [
        "# Tables of a trace database",
        "",
        "One folder per table and run (`run_id=0`, named in `meta.run`). Times are integers in nanoseconds, sizes in",
        "bytes, shares from 0 to 1. `tables.json` holds the same for programs.",
        "",
        "```sql",
        "SELECT * FROM read_parquet('timeline.arrival/*/*.parquet', hive_partitioning = true);",
        "```",
    ]
    for table in tables:
        lines += ["", f"## {table.name}", "", f"{table.comment} {table.row_count:,} rows.".strip(), ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{one.name}` | `{one.type}` | {_cell(one.comment)} |" for one in table.columns]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
