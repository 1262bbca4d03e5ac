"""Summaries of runs that never were. In: what a story says of a run. Out: rows as a real summary has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from traceforge.check.metrics import METRICS
from traceforge.history.addition import add_summaries
from traceforge.history.fleet import Fleet, read_fleet
from traceforge.history.summary import Summary
from traceforge.history.tables import open_history

HOUR_NS = 3_600_000_000_000


def made(
    number: int,
    iteration_ms: float = 100.0,
    *,
    job: str = "pretrain",
    hosts: Sequence[str] = ("a", "b", "c", "d"),
    guilty: str | None = None,
    has_devices: bool = True,
    hours: float | None = None,
    loss_share: float = 0.1,
    **said: Any,
) -> Summary:
    """A run: number `number` in time, two ranks a host; `guilty` is the host that its one finding accuses."""
    key = f"{job}-{number:06d}"
    run = {
        "run_name": f"night{number}", "job": job, "job_id": None, "commit_id": f"commit{number}", "sequence": 0,
        "added_ns": number * HOUR_NS, "recorded_ns": None, "hours": hours, "ranks": 2 * len(hosts),
        "recorded_ranks": 2 * len(hosts), "hosts": len(hosts), "has_devices": has_devices, "device": None,
        "layout": None, "iterations": 20, "mean_iteration_ns": 1e6 * iteration_ms,
        "verdict": "finding" if guilty else "nothing_significant", "confidence": "high", "headline": "So it is.",
        "delay_share": loss_share, "sight_ns": None, "bound": None, "made_by": "test",
    } | said  # fmt: skip
    finding = {
        "finding_id": 0, "mode": "synchronization_amplification", "cause": "slow_compute", "subject_kind": "host",
        "subject": guilty, "host": guilty, "confidence": "high", "pattern": "persistent",
        "delay_ns_per_iteration": 5_000_000, "delay_low_ns": None, "delay_high_ns": None, "share": 0.05,
        "is_more_work": False, "summary": "It is slow.",
    }  # fmt: skip
    loss = {
        "mode": "synchronization_amplification", "cause": "slow_compute",
        "delay_ns_per_iteration": 1e6 * iteration_ms * loss_share, "share": loss_share,
    }  # fmt: skip
    part = {"place": 1, "bound": "compute_bound", "is_avoidable": True, "duration_ns_per_iteration": 1, "share": 1.0}
    tables: dict[str, list[Mapping[str, Any]]] = {
        "history.run": [run],
        "history.finding": [finding] if guilty else [],
        "history.loss": [loss],
        "history.bottleneck": [part],
        "history.metric": [_metric(name, iteration_ms) for name in METRICS],
        "history.member": [
            {"kind": "host", "name": host, "ranks": [2 * at, 2 * at + 1], "is_accused": host == guilty}
            for at, host in enumerate(hosts)
        ],
    }
    return Summary(key, {table: [{"run_key": key, **row} for row in rows] for table, rows in tables.items()})


def _metric(name: str, iteration_ms: float) -> dict[str, Any]:
    known = {"iteration_ms": iteration_ms, "p95_ms": 1.2 * iteration_ms}
    value = known.get(name)
    low, high = (None, None) if value is None else (0.99 * value, 1.01 * value)
    return {"metric": name, "value": value, "low": low, "high": high, "unknown": 0.0}


def fleet_of(path: Path, summaries: Sequence[Summary]) -> Fleet:
    """What a history of these runs says."""
    add_summaries(path, summaries)
    with open_history(path) as history:
        return read_fleet(history)
