"""What would have been found. Reads what the search left; fills attribute.sight."""

from traceforge.attribute.finding import load_search
from traceforge.attribute.findings.sight import sights
from traceforge.store.database import Store


def rows(store: Store) -> list[tuple[object, ...]]:
    """One row a kind of subject and cause."""
    result: list[tuple[object, ...]] = []
    for run_id in store.run_ids():
        searched = store.once(load_search, run_id)
        for one in sights(searched.run, searched.left, searched.transfers_ns) if searched else ():
            smallest = None if one.smallest_ns is None else round(one.smallest_ns)
            result.append((run_id, one.subject_kind, one.cause, one.pattern, smallest))
    return result
