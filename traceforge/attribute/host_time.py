"""What hosts spend their time on. Reads what attribute.host_pace reads; fills attribute.host_time.

Idea: one look at the events of a host gives both tables (`host_pace.looked_at`).
"""

from collections.abc import Iterator

import polars as pl

from traceforge.attribute.host_pace import looked_at
from traceforge.store.database import Store


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a step and cause of each rank that is looked at."""
    for look in store.once(looked_at):
        yield look.by_cause
