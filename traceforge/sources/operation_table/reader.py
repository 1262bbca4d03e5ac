"""One rank of a table of operations. In: a path, perhaps the name of a rank. Out: rows of raw.profile and raw.event.

Idea: times are on one clock of all ranks. Where they count from the start of each step, steps are laid one after
another, each as long as its longest rank took. What a table does not say and this guesses is an issue of it.
Not handled: steps of which part of the ranks hold no operation (they are as long, and idle there).
"""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.files import size_bytes
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.parquet_folder import open_parquet_file
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.operation_table.events import emit_rank
from traceforge.sources.operation_table.grid import GridPlace, JobGrid
from traceforge.sources.operation_table.table import TABLE, OperationTable

KIND = "operation_table"
_JITTER_NS = 250_000
"""Timers of one rank agree to this: in published tables what waits for a message begins up to 130 us before its end."""
_MEANINGS = {
    "unusable_row": ("warning", "rows without a rank, a step, an operation or a time were left out"),
    "negative_duration": ("warning", "an operation that ends before it starts was given the duration 0"),
    "end_cut": ("info", "ends up to 250 us behind the start of what follows on the rank were taken for that start"),
    "inferred_barrier": (
        "info",
        "ranks of a stage go on only when the last of them has computed: taken for a collective that no row tells of",
    ),
    "no_grid": ("warning", "ranks are no grid of stages: nobody can tell who takes part in collectives and messages"),
}
_HINT = "give a table with the columns dp_rank, stage, rank, step, optype, seq_id, start_ts and duration"


def part_names(path: Path) -> list[str]:
    """Names of the ranks in a table, as `read_part` takes them.

    Raises:
        InputUnusableError: it is damaged.
    """
    with open_parquet_file(path, TABLE) as file:
        return [_name(place) for place in OperationTable(file).places()]


def read_part(path: Path, name: str | None, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read one rank, or the only one.

    Raises:
        InputUnusableError: the table is damaged, or holds no such rank.
    """
    issues = IssueLog(_MEANINGS, f"{KIND}_")
    with open_parquet_file(path, TABLE) as file:
        table = OperationTable(file)
        places = table.places()
        own = next((one for one in places if name in {None, _name(one)}), None)
        if own is None:
            raise InputUnusableError("no operation of the rank can be used", where=str(path), hint=_HINT)
        grid = JobGrid(places, table.optypes())
        steps = _laid_out(table.steps())
        operations, barriers = table.operations(own), table.barriers(own)
        if own == places[0]:
            lost = table.unusable()
            issues.add("unusable_row", lost, lost_events=lost)
    issues.add("no_grid", int(not grid.is_grid))
    issues.add("negative_duration", operations.filter(pl.col("duration_ns") < 0).height)
    operations = operations.with_columns(pl.col("duration_ns").clip(lower_bound=0))
    operations, cut = _without_jitter(operations)
    issues.add("end_cut", cut)
    issues.add("inferred_barrier", barriers.height)
    count = operations.height
    timed = pl.concat([operations, barriers]).join(steps, on="step").with_columns(
        pl.col("start_ns") + pl.col("ahead_ns")
    ).sort("start_ns", "optype", "seq_id")  # fmt: skip
    emit_rank(own, grid, timed, steps, emit)
    options.report_progress(size_bytes(path) // len(places))
    return SourceSummary(
        KIND, own.rank, None, grid.world_size, count + issues.lost_events, count, tuple(issues)
    )  # fmt: skip


def _name(place: GridPlace) -> str:
    return f"rank {place.rank}"


def _without_jitter(operations: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The operations, of which none ends just after the next one begins; and how many were cut so."""
    starts = operations.select("step", "start_ns").unique().sort("step", "start_ns")
    following = starts.with_columns(next_ns=pl.col("start_ns").shift(-1).over("step"))
    late = pl.col("start_ns") + pl.col("duration_ns") - pl.col("next_ns")
    is_late = late.is_between(1, _JITTER_NS).fill_null(value=False)
    joined = operations.join(following, on=["step", "start_ns"], maintain_order="left").with_columns(is_late=is_late)
    ends = pl.when("is_late").then(pl.col("next_ns") - pl.col("start_ns")).otherwise("duration_ns")
    return joined.with_columns(duration_ns=ends).select(operations.columns), int(joined["is_late"].sum())


def _laid_out(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps with what to add to their times: nothing where they follow one another, else what lays them end to end."""
    lasts = pl.col("last_ns") - pl.col("first_ns")
    follows = (steps["first_ns"] >= steps["last_ns"].shift(1)).fill_null(value=True).all()
    ahead = pl.lit(0, dtype=pl.Int64) if follows else lasts.cum_sum() - lasts - pl.col("first_ns")
    return steps.with_row_index("number").select(
        "number", "step", ahead_ns=ahead, first_ns=pl.col("first_ns") + ahead, last_ns=pl.col("last_ns") + ahead
    )
