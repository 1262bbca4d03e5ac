"""Turns of what a rank's device computes, for runs whose steps nothing else tells. Reads raw.event, align.name_class.

Idea: in the stream that runs most kernels, the sequence of their names repeats once a step, also where all collectives
are alike or there are none.
Not handled: steps whose kernels differ from turn to turn, or are spread over several streams alike.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from traceforge.align.period import kernel_period
from traceforge.align.rank_trace import RankTrace, Step
from traceforge.store.database import Store
from traceforge.thresholds import align as thresholds

# Kernels of optimizers over many tensors, by the names that PyTorch, Apex, Transformer Engine and DeepSpeed give them.
_OPTIMIZERS = "(?i)multi_?tensor_?apply|(?:fused|multi_?tensor)_?(?:adam|sgd|lamb|lion)|cuda_adam|(?:^|_)adam_?w?_"

_KERNELS = """
WITH kernel AS (
  SELECT e.track_id, e.name, e.raw_start_ns
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE r.run_id = $1 AND r.rank = $2 AND e.phase = 'X' AND e.raw_start_ns IS NOT NULL
    AND c.class = 'compute' AND c.canonical_category = 'kernel'
    AND (r.raw_intact_ns IS NULL OR e.raw_start_ns < r.raw_intact_ns)
),
busiest AS (
  SELECT track_id FROM kernel GROUP BY ALL ORDER BY COUNT(*) DESC, track_id LIMIT 1
)
SELECT CAST(DENSE_RANK() OVER (ORDER BY k.name) - 1 AS INTEGER) AS kind, k.raw_start_ns,
  REGEXP_MATCHES(k.name, $3) AS is_optimizer
FROM kernel AS k
JOIN busiest AS b ON b.track_id IS NOT DISTINCT FROM k.track_id
ORDER BY k.raw_start_ns, k.name
"""


def with_turns(store: Store, run_id: int, rank: int, trace: RankTrace) -> RankTrace:
    """The same trace with the turns of its kernels, and how often an optimizer runs; none where they do not repeat."""
    kernels = store.query(_KERNELS, [run_id, rank, _OPTIMIZERS])
    period = kernel_period(kernels["kind"].to_numpy())
    begins = np.diff(kernels["is_optimizer"].to_numpy().astype(np.int8), prepend=0) == 1
    starts_ns = kernels["raw_start_ns"].to_list()[::period] if period else []
    return replace(trace, turns_ns=starts_ns, optimizer_runs=int(begins.sum()))


def are_parts(traces: Mapping[int, RankTrace], found: Mapping[int, Sequence[Step]]) -> bool:
    """Whether steps are parts of one, such as micro-batches: on each rank an optimizer runs for several of them."""
    runs = {rank: trace.optimizer_runs for rank, trace in traces.items() if found[rank]}
    return all(0 < thresholds.LEAST_PARTS * count <= len(found[rank]) for rank, count in runs.items())


def calls_a_turn(trace: RankTrace) -> int | None:
    """How many calls a turn holds; None where turns differ in it, or operations do not repeat after so many.

    Sizes may vary from turn to turn, as those of experts do. Communication has a stream of its own, so that a call at
    the edge of a turn may fall into either.
    """
    edges = [bisect_left(trace.arrivals_ns, start_ns) for start_ns in trace.turns_ns]
    counts = np.diff(edges)
    usual = int(np.median(counts)) if len(counts) else 0
    if not usual or abs(int(counts.sum()) - usual * len(counts)) > max(1, usual // 2):
        return None
    tokens = [token.partition(":")[0] for token, _ in trace.calls]
    same = sum(later == earlier for earlier, later in zip(tokens, tokens[usual:], strict=False))
    return usual if same >= thresholds.LEAST_REPEATED_SHARE * (len(tokens) - usual) else None
