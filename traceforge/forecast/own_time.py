"""Own time of ranks. In: timeline.phase. Out: a dense array over judged iterations and ranks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.store.database import Store

_OWN = """
SELECT p.iteration, p.rank,
  CAST(SUM(p.duration_ns) FILTER (WHERE p.phase NOT IN ('transfer', 'wait', 'communication')) AS DOUBLE) AS own_ns
FROM timeline.phase AS p
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE p.run_id = ? AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY p.iteration, p.rank
ORDER BY p.iteration, p.rank
"""


@dataclass(frozen=True, slots=True)
class OwnTime:
    """Iterations less exposed communication.

    Attributes:
        iterations: shape (I,).
        ranks: shape (R,).
        own_ns: shape (I, R).
    """

    iterations: NDArray[np.int64]
    ranks: NDArray[np.int64]
    own_ns: NDArray[np.float64]


def own_time(store: Store, run_id: int) -> OwnTime | None:
    """Own times of a run; None where it has no judged iteration that all ranks recorded."""
    frame = store.query(_OWN, [run_id]).fill_null(0.0)
    if frame.is_empty():
        return None
    iterations, place = np.unique(frame["iteration"].to_numpy(), return_inverse=True)
    ranks, column = np.unique(frame["rank"].to_numpy(), return_inverse=True)
    own = np.full((len(iterations), len(ranks)), np.nan)
    own[place, column] = frame["own_ns"].to_numpy()
    whole = ~np.isnan(own).any(axis=1)
    if not whole.any():
        return None
    return OwnTime(iterations[whole].astype(np.int64), ranks.astype(np.int64), own[whole])
