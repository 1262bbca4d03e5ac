"""How much of the device's work operation.kernel holds. Reads the calls of each rank; fills operation.coverage."""

import polars as pl

from traceforge.operation.call_groups import group_calls
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a rank and reason that occurs."""
    return pl.concat([pl.DataFrame(), *(found.coverage for found in store.once(group_calls))], how="diagonal")
