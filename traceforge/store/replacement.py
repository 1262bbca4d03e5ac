"""A whole file in the place of a cut one. In: a database, and a file to be added. Out: the cut one's rows are gone.

Idea: a file that was read while it was still being copied is larger the next time. The former one gives way if it has
the same name and kind in the same run, its reader found it cut off, and it was smaller; nothing else is ever replaced.
Not handled: a file that was cut off and has another name now.
"""

from traceforge.records import SourceSummary
from traceforge.store.database import Store

_CUT_OFF = """
SELECT s.source_id FROM meta.source AS s
WHERE s.run_id = ? AND s.path = ? AND s.kind = ? AND s.source_id <> ? AND s.size_bytes < ?
  AND EXISTS (
    SELECT 1 FROM meta.issue AS i
    WHERE i.source_id = s.source_id AND i.stage = 'ingest'
      AND REGEXP_MATCHES(i.code, '_(truncated|unfinished|damaged_compression|last_line_open)$')
  )
"""
_TABLES = """
SELECT table_name FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'raw' AND column_name = 'source_id'
  AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw')
"""


def remove_cut_off(store: Store, run_id: int, source_id: int, path: str, summary: SourceSummary, size: int) -> None:
    """Remove, in the transaction that is open, the cut-off file that a new one takes the place of.

    Args:
        source_id: of the new one.
        path: its name in the database.
        size: of the new one on disk, bytes.
    """
    former = store.query(_CUT_OFF, [run_id, path, summary.kind, source_id, size])["source_id"].to_list()
    for cut_off in former:
        for table in store.query(_TABLES)["table_name"]:
            store.execute(f"DELETE FROM raw.{table} WHERE source_id = ?", [cut_off])
        store.execute("DELETE FROM meta.issue WHERE source_id = ?", [cut_off])
        store.execute("DELETE FROM meta.source WHERE source_id = ?", [cut_off])
