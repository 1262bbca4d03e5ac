"""Entry and exit of collectives: the recorder's against the profiler's, of one run. In: both. Out: differences, us.

The profiler shows a blocking call twice: `c10d::allreduce_` is the call (entry), `gloo:all_reduce` the work on the
thread that does it, which begins when that thread takes it up, and whose end is the exit.
Not handled: calls of other kinds.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traceforge import api
from traceforge.store.database import Store

NEAR_US = 50
_CALLS = """
SELECT s.rank, o.raw_start_ns, o.raw_start_ns + o.duration_ns
FROM raw.occurrence AS o
JOIN raw.event_kind AS k USING (source_id, kind_id)
JOIN meta.source AS s USING (source_id)
WHERE k.name = ? AND o.duration_ns IS NOT NULL
ORDER BY ALL
"""
Calls = dict[int, NDArray[np.int64]]


def differences(recording: Path, profile: Path) -> dict[str, list[float]]:
    """Recorded less profiled, us, of each profiled call: its entry, its exit, and its entry into gloo's own work."""
    ours, calls, works = _calls(recording, _WORK), _calls(profile, "c10d::allreduce_"), _calls(profile, _WORK)
    found: dict[str, list[float]] = {"entry": [], "exit": [], "entry_of_work": []}
    for rank, recorded in ours.items():
        for name, place, profiled in (
            ("entry", 0, calls[rank]), ("exit", 1, works[rank]), ("entry_of_work", 0, works[rank]),
        ):  # fmt: skip
            found[name] += _nearest(recorded[:, place], profiled[:, place])
    return found


_WORK = "gloo:all_reduce"


def _calls(folder: Path, name: str) -> Calls:
    """Start and end of the calls of each rank."""
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        rows = np.array(store.rows(_CALLS, [name]), dtype=np.int64)
    return {int(rank): rows[rows[:, 0] == rank, 1:] for rank in np.unique(rows[:, 0])}


def _nearest(recorded: NDArray[np.int64], profiled: NDArray[np.int64]) -> list[float]:
    after = np.searchsorted(recorded, profiled).clip(1, len(recorded) - 1)
    apart = np.stack([recorded[after - 1] - profiled, recorded[after] - profiled])
    chosen = np.abs(apart).argmin(axis=0)
    result: list[float] = (apart[chosen, np.arange(len(profiled))] / 1e3).round(1).tolist()
    return result


def summary(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Percentiles, and the share that is near."""
    told = {}
    for name, values in found.items():
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).round(1).tolist()
        near = float(np.mean(np.abs(values) <= NEAR_US))
        told[name] = {"count": len(values), "low": low, "middle": middle, "high": high, "near": near}
    return told
