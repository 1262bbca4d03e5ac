"""What a database holds. In: a store and the names of the stages. Out: `Inventory`, facts about file and runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from traceforge.store.database import Store

_ISSUES = """
SELECT code, severity, CAST(SUM(count) AS BIGINT) AS count FROM meta.issue WHERE run_id = ?
GROUP BY code, severity ORDER BY severity, count DESC, code
"""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a database holds.

    Attributes:
        size_bytes: of the file, or the folder; None in memory.
        schema: number of its newest migration.
        built_by: version of traceforge that built the stages; None where they are not built.
        stages: stages whose schema is there.
        runs: one mapping a run (the columns of `runs.sql`), with its `issues` by code.
    """

    size_bytes: int | None
    schema: int
    built_by: str | None
    stages: list[str]
    runs: list[dict[str, Any]]


def take_inventory(store: Store, stages: Sequence[str]) -> Inventory:
    """What a database holds; its stages must have been built."""
    if not store.read_only:
        store.execute("CHECKPOINT")  # so that the size includes the write-ahead log
    text = (resources.files("traceforge.doctor") / "runs.sql").read_text(encoding="utf-8")
    built = store.rows("SELECT traceforge_version FROM meta.build")
    schemas = store.rows("SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database()")
    return Inventory(
        size_bytes=store.size_bytes(),
        schema=int(store.value("SELECT MAX(number) FROM main.traceforge_migration")),
        built_by=str(built[0][0]) if built else None,
        stages=[stage for stage in stages if (stage,) in schemas],
        runs=[{**run, "issues": store.records(_ISSUES, [run["run_id"]])} for run in store.records(text)],
    )
