"""Calls of ranks by what they are. In: the calls of some ranks at a time. Out: `GroupedCalls`, a row a group.

Calls that share kernel, operation, annotation, module and inputs are one group; only groups are kept, not calls, so
that memory does not grow with the events of all ranks. Shared by operation.kernel and operation.coverage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import Parts, RankBatch, rank_batches
from traceforge.operation.calls import JOINED, Calls, read_calls
from traceforge.operation.nesting import NONE, narrow, places_type
from traceforge.store.database import Store

# Texts recur from call to call: a number stands for them until only groups are left.
_INPUTS = """
SELECT source_id, event_id, HASH(shapes, types, concrete) AS inputs
FROM raw.operation_input
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
"""
# Some files are written with blanks between the numbers, which say nothing.
_TEXT = r"""
SELECT
  source_id, inputs, REGEXP_REPLACE(shapes, '\s+', '', 'g') AS shapes,
  REGEXP_REPLACE(types, '\s*([\[\],])\s*', '\1', 'g') AS types,
  REGEXP_REPLACE(concrete, '\s*([\[\],])\s*', '\1', 'g') AS concrete
FROM (
  SELECT MIN(source_id) AS source_id, HASH(shapes, types, concrete) AS inputs, shapes, types, concrete
  FROM raw.operation_input
  WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
  GROUP BY shapes, types, concrete
)
ORDER BY ALL
"""

_COVERAGE = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "reason": pl.String,
    "is_counted": pl.Boolean,
    "events": pl.Int64,
    "duration_ns": pl.Int64,
}

Integers = NDArray[Any]

_NO_INPUTS = pl.DataFrame(schema={"event_id": pl.Int64, "inputs": pl.UInt64})
_NAMES = ("name", "operation", "annotation", "module")
_TEXTS = ("shapes", "types", "concrete")
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
    texts, number_of = _texts(batch.by_file(store, _TEXT).frame)
    inputs: Parts | None = None
    for one, calls in read_calls(store, batch):
        names = calls.names
        # Not before: of a large rank they are as many as its calls.
        inputs = inputs or (batch.by_file(store, _INPUTS) if len(texts) else Parts(_NO_INPUTS, {}))
        own = inputs.of(one.source_id).join(number_of, on="inputs", how="left")
        if len(batch.ranks) == 1:
            inputs = None
        own = own.select("event_id", pl.col("number").cast(pl.Int32)).sort("event_id")
        counted += [(batch.run_id, one.rank, *reason) for reason in _counted(calls)]
        of_rank = _judged(calls, own)
        del calls, own  # as large as the rank
        groups = _groups(of_rank)
        judged.append(groups.with_columns(pl.lit(one.source_id).alias("source_id"), pl.lit(one.rank).alias("rank")))
    coverage = pl.DataFrame(counted, schema=_COVERAGE, orient="row")
    groups = pl.concat(judged).join(texts, on="number", how="left").drop("number")
    return GroupedCalls(batch.run_id, names, groups, coverage)


def _texts(found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Different texts with their numbers, and the number of each hash."""
    texts = found.select(_TEXTS).unique(maintain_order=True).with_row_index("number").cast({"number": pl.Int64})
    # That two texts of a job share a hash of 64 bits does not happen; calls must not be doubled if it did.
    return texts, found.join(texts, on=_TEXTS, nulls_equal=True).select("inputs", "number").unique("inputs")


@dataclass(frozen=True, slots=True)
class _Judged:
    """Judged calls of one rank; shapes (calls,).

    Attributes:
        keys: names as places in `names`, how a call is joined, and the number of its operation's inputs.
        is_longest: whether a call is the longest one of its operation.
    """

    keys: dict[str, Integers]
    duration_ns: Integers
    is_longest: Integers


def _judged(calls: Calls, inputs: pl.DataFrame) -> _Judged:
    every = slice(None) if calls.is_judged.all() else calls.is_judged  # of millions no copy is made for nothing
    keys = {name: getattr(calls, name)[every] for name in (*_NAMES, "joined")}
    operation_id, duration_ns = calls.operation_id[every], calls.duration_ns[every]
    recorded = inputs["event_id"].to_numpy()
    numbers = np.full(len(operation_id), NONE, dtype=np.int32)
    if len(recorded):
        place = np.minimum(np.searchsorted(recorded, operation_id), len(recorded) - 1)
        known = recorded[place] == operation_id
        numbers[known] = inputs["number"].to_numpy()[place[known]]
    return _Judged({**keys, "number": numbers}, duration_ns, _longest(operation_id, duration_ns))


def _groups(judged: _Judged) -> pl.DataFrame:
    """Calls that share all keys, and their amounts."""
    code, lasting = narrow(_as_one(list(judged.keys.values()))), narrow(judged.duration_ns)
    order = np.lexsort((lasting, code)).astype(places_type(len(code)))
    code = code[order]
    lasting = lasting[order]  # one after the other: each is as large as the rank
    is_first = np.ones(len(code), dtype=np.bool_)
    is_first[1:] = code[1:] != code[:-1]
    first = np.flatnonzero(is_first)
    calls = np.diff(first, append=len(code))
    # Of calls in the order of their durations: the lower median, and the one that no more than one in twenty exceeds.
    middle, upper = first + (calls - 1) // 2, first + np.ceil((calls - 1) * 0.95).astype(np.int64)
    return pl.DataFrame(
        {
            **{name: values[order[first]].astype(np.int64) for name, values in judged.keys.items()},
            "calls": calls,
            "duration_ns": np.add.reduceat(lasting, first, dtype=np.int64) if len(first) else first,
            "p50_ns": lasting[middle].astype(np.int64),
            "p95_ns": lasting[upper].astype(np.int64),
            "operation_calls": np.add.reduceat(judged.is_longest[order], first, dtype=np.int64)
            if len(first)
            else first,
        }
    )


def _as_one(columns: Sequence[Integers]) -> Integers:
    """Rows of whole numbers from -1 on as one number each, equal where all of theirs are."""
    code, most = np.zeros(len(columns[0]), dtype=np.int64), 1
    for values in columns:
        count = int(values.max(initial=NONE)) + 2
        if most * count > np.iinfo(np.int64).max:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            most = len(code) + 1
        code *= count
        code += values
        code += 1
        most *= count
    return code


def _longest(operation_id: np.ndarray[Any, Any], duration_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether a call is the longest one of its operation, the first of equals."""
    if (operation_id[1:] > operation_id[:-1]).all():
        alone: np.ndarray[Any, Any] = operation_id != NONE
        return alone
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
