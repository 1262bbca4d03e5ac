"""The summary of a run. In: a trace database. Out: the rows of each table of a history.

Idea: what a run's tables say of the whole job, a few rows each. What was not measured stays NULL.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from traceforge.check.measured import measure
from traceforge.check.metrics import METRICS
from traceforge.store.database import Store
from traceforge.version import __version__

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says of runs that no trace says.

    Attributes:
        job: name of the job; None: the name of the run.
        job_id: identifier of the execution.
        commit: version of the code.
        hours: how long the job ran.
        added_ns: when the summary is added, ns since 1970.
    """

    added_ns: int
    job: str | None = None
    job_id: str | None = None
    commit: str | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A run as rows of a history, by name of table; `sequence` is given when it is added."""

    run_key: str
    tables: Mapping[str, Rows]


def summarise(store: Store, run_id: int, said: Said) -> Summary:
    """The summary of a run whose stages are built."""
    key = _key(store, run_id)
    (run,) = _rows(store, "run", run_id)
    # A folder that was divided into windows is one execution; the second window is called `name [2]`.
    name, mark, _ = str(run["run_name"]).partition(" [")
    run |= {
        "job": said.job or name,
        "job_id": said.job_id or (name if mark else None),
        "commit_id": said.commit,
        "sequence": 0,
        "added_ns": said.added_ns,
        "hours": said.hours,
        "made_by": __version__,
    }
    tables = {
        "history.run": [run],
        "history.metric": _metrics(store, run_id),
        **{f"history.{name}": _rows(store, name, run_id) for name in ("finding", "bottleneck", "loss", "member")},
    }
    return Summary(key, {table: [{"run_key": key, **row} for row in rows] for table, rows in tables.items()})


def _key(store: Store, run_id: int) -> str:
    """What tells this run from others: the files it was read from, whatever they are called."""
    hashes = store.rows("SELECT content_hash FROM meta.source WHERE run_id = ? ORDER BY content_hash", [run_id])
    name = store.value("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id])
    window = str(name).partition(" [")[2]
    return hashlib.sha256("\n".join([*(str(one) for (one,) in hashes), window]).encode()).hexdigest()[:32]


def _rows(store: Store, name: str, run_id: int) -> Rows:
    text = (resources.files("traceforge.history") / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return store.records(text.replace("$run_id", str(int(run_id))))


def _metrics(store: Store, run_id: int) -> Rows:
    run = measure(store, run_id)
    found: Rows = []
    for metric in METRICS.values():
        value = metric.measured(run)
        ends = (None,) * 4 if value is None else (value.value, value.low, value.high, value.unknown)
        found.append({"metric": metric.name, **dict(zip(("value", "low", "high", "unknown"), ends, strict=True))})
    return found
