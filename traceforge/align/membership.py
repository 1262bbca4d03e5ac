"""Which group each collective call joins. Reads align.call and the groups listed; fills align.membership.

Calls that belong to none are counted in meta.issue; `groups` says how the group is found.
"""

import polars as pl

from traceforge.align.groups import assign_groups
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_UNLINKED = (
    "SELECT run_id, COUNT(*) AS calls FROM align.call WHERE is_intact AND NOT is_linked GROUP BY ALL ORDER BY ALL"
)


def rows(store: Store) -> pl.DataFrame:
    """One row a call whose group is known."""
    for run_id, count in store.rows(_UNLINKED):
        store.append("meta.issue", issue_rows(run_id, None, "align", [_unlinked(count)]))
    found = store.once(assign_groups)
    for run_id, count in found.unknown.items():
        store.append("meta.issue", issue_rows(run_id, None, "align", [_unknown_group(count)]))
    return found.membership


def _unknown_group(count: int) -> Issue:
    detail = "collective calls name no process group, and the times fit none of those listed; they are not matched"
    return Issue("communicator_unknown", "warning", count, None, detail)


def _unlinked(count: int) -> Issue:
    detail = (
        "communication kernels that no recorded call launched (most were launched before the window) are not matched"
    )
    return Issue("collective_unlinked", "info", count, None, detail)
