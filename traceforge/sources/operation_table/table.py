"""What a table of operations holds. In: an opened Parquet file. Out: ranks, steps, operations of a rank, ns as stated.

Idea: DuckDB reads the few columns that count, and only rows in which all of them can be used.

A synchronisation that no row tells of shows in what ranks do after their last computation of a step:

    rank 0   compute ------------|                    next
    rank 1   compute ------|      (waits)             next

Where the ranks of a stage are done at different times and yet none goes on before the last of them is done, step after
step, they meet: Megatron's last stage averages its loss so. It is told where that holds in nearly all steps.
"""

import polars as pl

from traceforge.reading.parquet_folder import ParquetFolder
from traceforge.sources.operation_table.grid import BARRIER, GridPlace

TABLE = "operations"
_MOST = 2**20
_MOST_S = 10_000_000
_UNEQUAL_NS = 1_000_000
_LEAST_STEPS = 5
_LEAST_SHARE = 0.95
_OPERATION = {"step": pl.Int64, "optype": pl.String, "seq_id": pl.Int64, "start_ns": pl.Int64, "duration_ns": pl.Int64}
_STEP = {"step": pl.Int64, "first_ns": pl.Int64, "last_ns": pl.Int64}
# When each rank of a stage has done its last computation of a step, and when it begins what is no message.
_BETWEEN = """
WITH own AS (SELECT * FROM ({usable}) WHERE stage = ? AND optype <> 'gc'),
done AS (
  -- Messages are issued before the ranks meet, in all steps, whatever their timers say.
  SELECT step, rank, GREATEST(
    MAX(start_ns + duration_ns) FILTER (optype LIKE '%-compute'),
    MAX(start_ns) FILTER (optype LIKE '%-send' OR optype LIKE '%-recv')
  ) AS done_ns
  FROM own GROUP BY ALL
)
SELECT step, rank, done_ns, MIN(start_ns) AS next_ns
FROM done JOIN own USING (step, rank)
WHERE start_ns >= done_ns AND optype NOT LIKE '%-send' AND optype NOT LIKE '%-recv'
GROUP BY ALL
"""


class OperationTable:
    """A table of operations."""

    def __init__(self, file: ParquetFolder) -> None:
        self._file = file
        whole = {name: file.integer(TABLE, name) for name in ("dp_rank", "stage", "rank", "step", "seq_id")}
        seconds = {name: f"TRY_CAST({name} AS DOUBLE)" for name in ("start_ts", "duration")}
        optype = file.text(TABLE, "optype")
        kept = [f"{value} BETWEEN 0 AND {2**31 - 1 if name == 'step' else _MOST}" for name, value in whole.items()]
        # What is no number compares as the greatest of all.
        kept += [f"{optype} IS NOT NULL", *(f"ABS({value}) < {_MOST_S}" for value in seconds.values())]
        told = [f"{value} AS {name}" for name, value in whole.items()]
        told += [
            f"CAST(ROUND({seconds[name]} * 1e9) AS BIGINT) AS {ns}"
            for name, ns in (("start_ts", "start_ns"), ("duration", "duration_ns"))
        ]
        self._usable = f"SELECT {', '.join(told)}, {optype} AS optype FROM {TABLE} WHERE {' AND '.join(kept)}"

    def places(self) -> list[GridPlace]:
        """All ranks, with where they stand."""
        columns = ", ".join(GridPlace._fields)
        found = self._file.rows(f"SELECT DISTINCT {columns} FROM ({self._usable}) ORDER BY ALL LIMIT {_MOST}")
        return [GridPlace(*row) for row in found]

    def optypes(self) -> list[str]:
        """Names of all operations."""
        return [name for (name,) in self._file.rows(f"SELECT DISTINCT optype FROM ({self._usable}) ORDER BY 1")]

    def unusable(self) -> int:
        """Rows that cannot be used."""
        return self._file.count(TABLE) - int(self._file.rows(f"SELECT COUNT(*) FROM ({self._usable})")[0][0])

    def steps(self) -> pl.DataFrame:
        """First start and last end of each step, over all ranks."""
        span = "MIN(start_ns), MAX(start_ns + GREATEST(duration_ns, 0))"
        found = self._file.rows(f"SELECT step, {span} FROM ({self._usable}) GROUP BY step ORDER BY step")
        return pl.DataFrame(found, schema=_STEP, orient="row")

    def operations(self, own: GridPlace) -> pl.DataFrame:
        """Operations of a rank, in order of time within each step."""
        query = f"SELECT {', '.join(_OPERATION)} FROM ({self._usable}) WHERE rank = ? ORDER BY step, start_ns, optype"
        return pl.DataFrame(self._file.rows(query, [own.rank]), schema=_OPERATION, orient="row")

    def barriers(self, own: GridPlace) -> pl.DataFrame:
        """What a rank waits for after its last computation that no row tells of, as operations; empty if nothing."""
        query = _BETWEEN.format(usable=self._usable)
        schema = {"step": pl.Int64, "rank": pl.Int64, "done_ns": pl.Int64, "next_ns": pl.Int64}
        found = pl.DataFrame(self._file.rows(query, [own.stage]), schema=schema, orient="row")
        by_step = found.group_by("step").agg(
            apart_ns=pl.col("done_ns").max() - pl.col("done_ns").min(),
            last_ns=pl.col("done_ns").max(),
            first_ns=pl.col("next_ns").min(),
        )
        telling = by_step.filter(pl.col("apart_ns") >= _UNEQUAL_NS)
        in_order = telling.filter(pl.col("first_ns") >= pl.col("last_ns"))
        if telling.height < _LEAST_STEPS or in_order.height < _LEAST_SHARE * telling.height:
            return pl.DataFrame(schema=_OPERATION)
        met = by_step.filter(pl.col("first_ns") >= pl.col("last_ns"))
        mine = found.filter(pl.col("rank") == own.rank).join(met, on="step")
        return mine.sort("step").select(
            "step", optype=pl.lit(BARRIER), seq_id=pl.lit(0, pl.Int64), start_ns="done_ns",
            duration_ns=pl.col("first_ns") - pl.col("done_ns"),
        )  # fmt: skip
