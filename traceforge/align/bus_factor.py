"""Bus bandwidth factors. Reads the communicator sizes that occur; fills align.bus_factor (NCCL's definitions)."""

import polars as pl

from traceforge.align.collective_names import collective_kinds
from traceforge.store.database import Store

_SIZES = "SELECT DISTINCT size FROM align.communicator ORDER BY size"


def rows(store: Store) -> pl.DataFrame:
    """One row an (operation, size)."""
    sizes = store.query(_SIZES)["size"].to_list()
    found = [(kind.name, size, bus_factor(kind.bus_factor, size)) for kind in collective_kinds() for size in sizes]
    return pl.DataFrame(found, schema={"op": pl.String, "size": pl.Int64, "bus_factor": pl.Float64}, orient="row")


def bus_factor(formula: str, ranks: int) -> float:
    """Value of one of the three formulas that occur, for a number of ranks."""
    share = (ranks - 1) / ranks
    return {"2 * (n - 1) / n": 2 * share, "(n - 1) / n": share, "1": 1.0}[formula]
