"""All tables of a database as rows: two databases that hold the same are equal. Raw rows keep their order."""

from traceforge.store.database import Store

_NAMES = """
SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'trace' AND schema_name <> 'main'
UNION ALL
SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE database_name = 'trace' AND NOT internal
ORDER BY 1
"""


def tables_of(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Rows by table; where SQL promises no order, in that of their values."""
    names = [str(name) for (name,) in store.query(_NAMES).rows()]
    return {name: store.query(f"FROM {name}{_order(name)}").rows() for name in names}


def _order(name: str) -> str:
    return "" if name.startswith("raw.") and name not in ("raw.event", "raw.kineto_event") else " ORDER BY ALL"


def differing(one: Store, other: Store) -> list[str]:
    """Names of the tables that two databases do not share, or that hold other rows."""
    these, those = tables_of(one), tables_of(other)
    return [name for name in sorted(these.keys() | those.keys()) if these.get(name) != those.get(name)]
