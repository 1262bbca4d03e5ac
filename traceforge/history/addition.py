"""Runs into a history. In: summaries. Out: rows of its tables, in one transaction; a run that is there is replaced."""

from collections.abc import Sequence
from pathlib import Path

from traceforge.history.summary import Summary
from traceforge.history.tables import history_tables, open_history
from traceforge.store.history_file import rows_in_order


def add_summaries(path: Path, summaries: Sequence[Summary]) -> int:
    """Add runs to a history, which is made where there is none. Returns how many replaced an earlier summary.

    Raises:
        InputUnusableError: the file is no history, or cannot be written.
        StoreBusyError: another process held it for too long.
    """
    latest = {summary.run_key: summary for summary in summaries}
    keys = list(latest)
    with open_history(path, read_only=False) as history, history.transaction():
        replaced = dict(
            history.rows("SELECT run_key, sequence FROM history.run WHERE run_key IN (SELECT UNNEST(?))", [keys])
        )
        for document in history_tables():
            history.execute(f"DELETE FROM {document.name} WHERE run_key IN (SELECT UNNEST(?))", [keys])
        following = int(history.value("SELECT COALESCE(MAX(sequence), -1) + 1 FROM history.run"))
        following = max([following, *(place + 1 for place in replaced.values())])
        rows: dict[str, list[dict[str, object]]] = {document.name: [] for document in history_tables()}
        for summary in latest.values():
            place = replaced.get(summary.run_key)
            if place is None:
                place, following = following, following + 1
            for table, own in summary.tables.items():
                rows[table] += [{**row, "sequence": place} for row in own]
        history.append({document.name: rows_in_order(document, rows[document.name]) for document in history_tables()})
    return len(replaced)
