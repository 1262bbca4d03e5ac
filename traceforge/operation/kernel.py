"""What ranks worked on. Reads the calls of each rank and the inputs of operations; fills operation.kernel.

Calls that share kernel, operation, annotation, module and inputs become one row. The arithmetic of an operation is
counted once a call of it, in the row of the longest kernel that it launched. The roofline says
what limits it: arithmetic at the device's peak, or bytes at the pace of its memory, whichever takes longer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from traceforge.operation.call_groups import GroupedCalls, group_calls
from traceforge.operation.calls import JOINED
from traceforge.operation.kernel_name import kind_of, short_name
from traceforge.operation.nesting import NONE
from traceforge.operation.work import Work, work_of
from traceforge.store.database import Store

_RANKS = """
SELECT r.run_id, r.rank, r.source_id, r.has_device, d.* EXCLUDE (run_id, rank)
FROM align.rank AS r
LEFT JOIN operation.device AS d USING (run_id, rank)
ORDER BY r.run_id, r.rank
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "kernel": pl.String,
    "full_name": pl.String,
    "class": pl.String,
    "kind": pl.String,
    "operation": pl.String,
    "annotation": pl.String,
    "module": pl.String,
    "shapes": pl.String,
    "dtype": pl.String,
    "work_basis": pl.String,
    "joined": pl.String,
    "calls": pl.Int64,
    "duration_ns": pl.Int64,
    "p50_ns": pl.Int64,
    "p95_ns": pl.Int64,
    "operation_calls": pl.Int64,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "flops_per_s": pl.Float64,
    "arithmetic_duration_ns": pl.Int64,
    "memory_duration_ns": pl.Int64,
    "bound": pl.String,
}

# Operations of a host that hand their arithmetic to another one, which has a row of its own.
_HANDS_ON = frozenset(
    f"aten::{name}" for name in ("linear", "matmul", "conv1d", "conv2d", "conv3d", "convolution", "_convolution")
)
_LARGEST = 2**63 - 1
_ROWS_AT_ONCE = 8_192  # one takes 1 KB and more as objects of Python
_NAMES = ("name", "operation", "annotation", "module")


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a group of calls, some ranks at a time."""
    devices = {(row["run_id"], row["rank"]): row for row in store.records(_RANKS)}
    for found in store.once(group_calls):
        order = _order(found)
        for first in range(0, len(order), _ROWS_AT_ONCE):
            some = found.groups[order[first : first + _ROWS_AT_ONCE]]
            described = [
                _described(row, found.names, devices[found.run_id, row["rank"]]) for row in some.iter_rows(named=True)
            ]
            yield pl.DataFrame(described, schema=_SCHEMA, orient="row")


def _order(found: GroupedCalls) -> pl.Series:
    """Places of groups as their rows are to stand: of each rank the longest first, equals by their texts."""
    texts = found.names["name"]
    place, of_module = (one.rank("dense").cast(pl.Int64).to_numpy() for one in (texts, _module(texts)))
    order = {
        "full_name": np.where(found.groups["joined"].to_numpy() == JOINED.index("host"), NONE, found.groups["name"]),
        **{name: found.groups[name].to_numpy() for name in ("operation", "annotation", "module")},
    }
    keys = {
        name: np.where(numbers == NONE, NONE, (of_module if name == "module" else place)[numbers])
        for name, numbers in order.items()
    }
    by = ["rank", "duration_ns", "full_name", "operation", "shapes", "annotation", "module"]
    told = found.groups.select("rank", "duration_ns", "shapes", **keys)
    return told.select(pl.arg_sort_by(by, descending=[False, True, *[False] * 5])).to_series()


def _module(texts: pl.Series) -> pl.Series:
    """Names of modules without the word that PyTorch writes before each."""
    return texts.str.strip_prefix("nn.Module: ")


def _described(row: Mapping[str, Any], names: pl.DataFrame, rank: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table from a group of calls."""
    text = {key: None if row[key] == NONE else str(names["name"][int(row[key])]) for key in _NAMES}
    name = text["name"] or ""
    joined = JOINED[row["joined"]]
    is_host = joined == "host"
    short = None if is_host else short_name(name)
    operation = text["operation"]
    event_class = names["class"][int(row["name"])]
    work = (
        work_of(operation, row["shapes"], row["types"], row["concrete"], name) if operation and row["shapes"] else None
    )
    if is_host and operation in _HANDS_ON:
        work = None  # it would count twice, over the little time that is the outer operation's own
    if work is not None and work.flops is None and event_class != "compute":
        work = None  # a copy between host and device is not made at the pace of the device's memory
    done = _amounts(work, row, name, rank)
    module = text["module"]
    return {
        "run_id": rank["run_id"],
        "rank": rank["rank"],
        "kernel": short,
        "full_name": None if is_host else name,
        "class": event_class,
        "kind": _kind(short or name, operation, event_class),
        "operation": operation,
        "annotation": text["annotation"],
        "module": module.removeprefix("nn.Module: ") if module else None,
        "shapes": row["shapes"],
        "dtype": work.dtype if work else None,
        "work_basis": work.basis if work and (done.flops, done.moved_bytes) != (None, None) else None,
        "joined": joined,
        **{key: row[key] for key in ("calls", "duration_ns", "p50_ns", "p95_ns", "operation_calls")},
        "flops": done.flops,
        "bytes": done.moved_bytes,
        "flops_per_s": done.flops * 1e9 / row["duration_ns"] if done.flops and row["duration_ns"] else None,
        "arithmetic_duration_ns": done.arithmetic_ns,
        "memory_duration_ns": done.memory_ns,
        "bound": done.bound,
    }


def _kind(kernel: str, operation: str | None, event_class: str) -> str:
    if event_class in ("communication", "communication_call", "host_communication"):
        return "communication"
    return kind_of(kernel, operation)


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Work of a row, and the time that it takes at the device's peaks."""

    flops: int | None = None
    moved_bytes: int | None = None
    arithmetic_ns: int | None = None
    memory_ns: int | None = None
    bound: str | None = None


def _amounts(work: Work | None, row: Mapping[str, Any], kernel: str, rank: Mapping[str, Any]) -> _Amounts:
    count = int(row["operation_calls"])
    if work is None or not count:
        return _Amounts()
    flops = None if work.flops is None else work.flops * count
    moved = None if work.moved_bytes is None else work.moved_bytes * count
    if max(flops or 0, moved or 0) > _LARGEST:
        return _Amounts()
    peak, memory = peak_flops_per_s(work.dtype, kernel, rank), rank["memory_bytes_per_s"]
    if moved is None or memory is None or (flops is not None and peak is None):
        return _Amounts(flops, moved)
    arithmetic_ns = flops / peak * 1e9 if flops is not None and peak is not None else 0.0
    if work.basis == "stacked_rows" and arithmetic_ns > row["duration_ns"]:
        return _Amounts()  # faster than the device can be: not all of the stacked rows belong to a group
    memory_ns = moved / memory * 1e9
    bound = "compute" if arithmetic_ns >= memory_ns else "memory"
    return _Amounts(flops, moved, round(arithmetic_ns), round(memory_ns), bound)


def peak_flops_per_s(dtype: str | None, kernel: str, device: Mapping[str, Any]) -> float | None:
    """The peak that applies to a product of a type; None where it is not known.

    Products of fp32 may run in TF32, which types do not tell; where the kernel's name does not either, only a device
    without TF32 has a known peak.
    """
    if dtype in ("c10::BFloat16", "c10::Half"):
        return _number(device["bf16_flops_per_s"])
    if dtype is not None and dtype.startswith("c10::Float8"):
        return _number(device["fp8_flops_per_s"])
    if dtype != "float":
        return None
    if device["tf32_flops_per_s"] is None or _is_fp32(kernel):
        return _number(device["fp32_flops_per_s"])
    return _number(device["tf32_flops_per_s"]) if _is_tf32(kernel) else None


def _is_fp32(kernel: str) -> bool:
    return "sgemm" in kernel or "simt" in kernel


def _is_tf32(kernel: str) -> bool:
    return "tf32" in kernel or "s1688" in kernel


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
