"""Events of one rank of a table. In: its operations, in order of time. Out: rows of raw.event, .collective and beside.

    forward-recv   call |                work |------------|      forward-recv: who has the data at its end
    compute                                                 |--------|

Idea: what moves data is two events, as in recordings of hosts: a call (`c10d::recv`) where it is issued, and its work
(`live:recv`), which names the group and the peer. Everything else is an operation under its own name.
"""

import json
from collections.abc import Callable, Mapping

import polars as pl

from traceforge.reading.timeline_rows import COMPLETE, TimelineRows
from traceforge.records import Batch
from traceforge.sources.operation_table.grid import GridPlace, GroupRole, JobGrid

_MAIN = "main"


def emit_rank(
    own: GridPlace, grid: JobGrid, operations: pl.DataFrame, steps: pl.DataFrame, emit: Callable[[Batch], None]
) -> None:
    """Hand over all events of a rank.

    Args:
        operations: columns number (of the step), optype, seq_id, start_ns and duration_ns, in order of time.
        steps: columns step, first_ns and last_ns.
    """
    names = operations["optype"].unique().sort().to_list()
    parts = {name: part for name in names if (part := grid.part(name, own)) is not None}
    first = {name: grid.first_sequence(name) for name in parts}
    numbers = pl.col("optype").replace_strict(first, default=None, return_dtype=pl.Int64) + pl.col("seq_id")
    sequence = pl.col("number").cast(pl.Int64) * grid.sequences + numbers
    frame = _events(operations.with_columns(sequence=sequence), steps, parts)
    rows = TimelineRows(emit)
    rows.add(frame.drop("optype", "sequence"))
    rows.finish()
    numbered = frame.with_row_index("event_id").with_columns(pl.col("event_id").cast(pl.Int64))
    _emit_communication(numbered.filter(pl.col("optype").is_not_null()), parts, emit)
    profile = {
        "base_time_ns": 0,
        "rank": own.rank,
        "world_size": grid.world_size,
        "metadata": '{"one_clock": "the table\'s"}',
    }
    schema = {"base_time_ns": pl.Int64, "rank": pl.Int32, "world_size": pl.Int32, "metadata": pl.String}
    emit(Batch("raw.profile", pl.DataFrame([profile], schema=schema)))


def _events(operations: pl.DataFrame, steps: pl.DataFrame, parts: Mapping[str, GroupRole]) -> pl.DataFrame:
    """Steps, operations, calls and their works, in order of time; `optype` is that of a work."""
    ops = {name: part.op for name, part in parts.items()}
    moving = operations.filter(pl.col("optype").is_in(list(parts))).with_columns(
        op=pl.col("optype").replace_strict(ops, default=None, return_dtype=pl.String)
    )
    # Calls at one time are told apart by a nanosecond each.
    behind = pl.int_range(pl.len(), dtype=pl.Int64).over("start_ns")
    moving = moving.with_columns(
        start_ns=pl.col("start_ns") + behind, duration_ns=(pl.col("duration_ns") - behind).clip(lower_bound=1)
    )
    none = {"optype": pl.lit(None, pl.String), "sequence": pl.lit(None, pl.Int64)}
    pieces = [
        steps.select(
            name=pl.format("ProfilerStep#{}", "step"), category=pl.lit("user_annotation"), thread=pl.lit(_MAIN),
            raw_start_ns="first_ns", duration_ns=pl.col("last_ns") - pl.col("first_ns"), **none,
        ),
        operations.filter(~pl.col("optype").is_in(list(parts))).select(
            name="optype", category=pl.lit("cpu_op"), thread=pl.lit(_MAIN), raw_start_ns="start_ns",
            duration_ns="duration_ns", **none,
        ),
        # Each kind has a thread of its own: operations of one kind follow one another, others may overlap them.
        moving.select(
            name="c10d::" + pl.col("op"), category=pl.lit("cpu_op"), thread="optype", raw_start_ns="start_ns",
            duration_ns=pl.lit(1, pl.Int64), **none,
        ),
        moving.select(
            name="live:" + pl.col("op"), category=pl.lit("user_annotation"), thread="optype", raw_start_ns="start_ns",
            duration_ns="duration_ns", optype="optype", sequence="sequence",
        ),
    ]  # fmt: skip
    columns = pl.concat(pieces).select(pl.all(), phase=pl.lit(COMPLETE), process=pl.lit("0"))
    return columns.sort("raw_start_ns", "duration_ns", descending=[False, True], maintain_order=True)


def _emit_communication(works: pl.DataFrame, parts: Mapping[str, GroupRole], emit: Callable[[Batch], None]) -> None:
    if works.is_empty():
        return
    known = pl.DataFrame(
        [(name, part.op, part.group, len(part.ranks), part.peer) for name, part in parts.items()],
        schema={
            "optype": pl.String, "collective_name": pl.String, "process_group_name": pl.String,
            "group_size": pl.Int32, "peer": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    told = works.select("event_id", "optype", "sequence").join(known, on="optype", maintain_order="left")
    emit(Batch("raw.collective", told.drop("optype", "peer").with_columns(is_asynchronous=pl.lit(value=False))))
    messages = told.filter(pl.col("peer").is_not_null())
    args = [
        json.dumps({"Src Rank" if op == "recv" else "Dst Rank": peer})
        for op, peer in messages.select("collective_name", "peer").iter_rows()
    ]
    emit(Batch("raw.argument", messages.select("event_id").with_columns(args=pl.Series(args, dtype=pl.String))))
    groups = {part.group: part.ranks for part in parts.values()}
    rows = [(name, len(ranks), json.dumps(ranks)) for name, ranks in groups.items()]
    schema = {"process_group_name": pl.String, "size": pl.Int32, "ranks": pl.String}
    emit(Batch("raw.process_group", pl.DataFrame(rows, schema=schema, orient="row")))
