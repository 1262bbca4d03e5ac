"""Calls of ranks by what they are. In: the calls of some ranks at a time. Out: `GroupedCalls`, a row a group.

Calls that share kernel, operation, annotation, module and inputs are one group; only groups are kept, not calls, so
that memory does not grow with the events of all ranks. Shared by operation.kernel and operation.coverage.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.operation.calls import JOINED, Calls, read_calls
from traceforge.operation.nesting import NONE
from traceforge.store.database import Store

# Some files are written with blanks between the numbers, which say nothing.
_INPUTS = r"""
SELECT
  source_id, event_id AS operation_id, REGEXP_REPLACE(shapes, '\s+', '', 'g') AS shapes,
  REGEXP_REPLACE(types, '\s*([\[\],])\s*', '\1', 'g') AS types,
  REGEXP_REPLACE(concrete, '\s*([\[\],])\s*', '\1', 'g') AS concrete
FROM raw.operation_input
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
"""

_COVERAGE = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "reason": pl.String,
    "is_counted": pl.Boolean,
    "events": pl.Int64,
    "duration_ns": pl.Int64,
}

_NAMES = ("name", "operation", "annotation", "module")
_TEXTS = ("shapes", "types", "concrete")
_KEYS = ("source_id", "rank", *_NAMES, "inputs", "joined")
_REASONS = (*JOINED, "not_judged", "no_time")
_NOT_JUDGED, _NO_TIME = len(JOINED), len(JOINED) + 1


@dataclass(frozen=True, slots=True)
class GroupedCalls:
    """Calls of some ranks of a run.

    Attributes:
        run_id: the run.
        names: text and class of every name.
        groups: rank, keys with names as places in `names` (`NONE` where there is none), inputs, and amounts.
        coverage: columns of operation.coverage.
    """

    run_id: int
    names: pl.DataFrame
    groups: pl.DataFrame
    coverage: pl.DataFrame


def group_calls(store: Store) -> list[GroupedCalls]:
    """The calls of all ranks, some ranks at a time."""
    return [_of_batch(store, batch) for batch in rank_batches(store)]


def _of_batch(store: Store, batch: RankBatch) -> GroupedCalls:
    judged, counted, names = [], [], pl.DataFrame()
    for one, calls in read_calls(store, batch):
        names = calls.names
        judged.append(_judged(calls).with_columns(source_id=pl.lit(one.source_id), rank=pl.lit(one.rank)))
        counted += [(batch.run_id, one.rank, *reason) for reason in _counted(calls)]
        del calls
    inputs = batch.by_file(store, _INPUTS).frame
    coverage = pl.DataFrame(counted, schema=_COVERAGE, orient="row")
    return GroupedCalls(batch.run_id, names, _grouped(pl.concat(judged), inputs), coverage)


def _judged(calls: Calls) -> pl.DataFrame:
    """Judged calls of one rank, with `is_longest`: whether a call is the longest one of its operation."""
    names = (*_NAMES, "operation_id", "joined", "duration_ns")
    columns = {name: getattr(calls, name)[calls.is_judged] for name in names}
    return pl.DataFrame({**columns, "is_longest": _longest(columns["operation_id"], columns["duration_ns"])})


def _grouped(judged: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Calls by what they are, and their amounts."""
    duration = pl.col("duration_ns")
    # Texts recur from call to call: a number stands for them until only groups are left.
    texts = inputs.select(_TEXTS).unique(maintain_order=True).with_row_index("inputs")
    numbered = inputs.join(texts, on=_TEXTS, nulls_equal=True).select("source_id", "operation_id", "inputs")
    return (
        judged.join(numbered, on=["source_id", "operation_id"], how="left")
        .group_by(_KEYS)
        .agg(
            calls=pl.len(),
            duration_ns=duration.sum(),
            p50_ns=duration.quantile(0.5, "lower"),
            p95_ns=duration.quantile(0.95, "higher"),
            operation_calls=pl.col("is_longest").sum(),
        )
        .join(texts, on="inputs", how="left")
        .drop("inputs")
    )


def _longest(operation_id: np.ndarray[Any, Any], duration_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether a call is the longest one of its operation, the first of equals."""
    order = np.lexsort((-duration_ns, operation_id))
    sorted_ids = operation_id[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = sorted_ids[1:] != sorted_ids[:-1]
    result = np.zeros(len(order), dtype=np.bool_)
    result[order] = is_first & (sorted_ids != NONE)
    return result


def _counted(calls: Calls) -> "list[tuple[str, bool, int, int]]":
    reason = np.where(calls.is_judged, calls.joined, np.where(calls.has_time, _NOT_JUDGED, _NO_TIME))
    events = np.bincount(reason, minlength=len(_REASONS))
    spent = np.zeros(len(_REASONS), dtype=np.int64)
    np.add.at(spent, reason, calls.duration_ns)
    return [
        (name, name in JOINED, int(events[number]), int(spent[number]))
        for number, name in enumerate(_REASONS)
        if events[number]
    ]
