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
    return {name: store.query(f"FROM {name}{_order(name)}").rows() for name in _names(store)}


def _names(store: Store) -> list[str]:
    return [str(name) for (name,) in store.query(_NAMES).rows()]


def _order(name: str) -> str:
    return "" if name.startswith("raw.") and name not in ("raw.event", "raw.kineto_event") else " ORDER BY ALL"


def differing(one: Store, other: Store) -> list[str]:
    """Names of the tables that two databases do not share, or that hold other rows."""
    these, those = _names(one), _names(other)
    shared = [name for name in these if name in those]
    unequal = [
        name
        for name in shared
        if not one.query(f"FROM {name}{_order(name)}").equals(other.query(f"FROM {name}{_order(name)}"))
    ]
    return sorted({*unequal, *(set(these) ^ set(those))})
