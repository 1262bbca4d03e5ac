"""Messages of a pipeline as its turns need them. In: timeline.message, calls. Out: exchanges, `Moved`.

A rank sends to another in the order of its turns, so that the n-th message between two ranks is what the n-th of those
turns needs. Not handled: iterations in which there are more or fewer messages than that; they stay unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.store.database import Store
from traceforge.timeline.pipeline_program import Exchange, PipelineTurn, Place

Integers = NDArray[np.int64]

# Of messages that share a call only the one that is ready last shows how long it took.
_MESSAGES = """
WITH message AS (
  SELECT t.iteration, t.source_rank, t.destination_rank, t.ready_ns, t.transfer_ns,
    a.source_call_id, a.destination_call_id, a.source_endpoint_id, GREATEST(t.ready_ns, t.posted_ns) AS both_ns
  FROM timeline.message AS t
  JOIN align.message AS a USING (run_id, message_id)
  WHERE t.run_id = $1 AND t.iteration IS NOT NULL
),
carried AS (
  SELECT rank, call_id, MAX(both_ns) AS last_ns
  FROM (
    SELECT source_rank AS rank, source_call_id AS call_id, both_ns FROM message
    UNION ALL
    SELECT destination_rank, destination_call_id, both_ns FROM message
  )
  GROUP BY rank, call_id
)
SELECT m.iteration, m.source_rank, m.destination_rank, m.ready_ns, m.source_call_id, m.destination_call_id,
  CASE WHEN m.both_ns >= c.last_ns THEN m.transfer_ns END AS transfer_ns
FROM message AS m
JOIN carried AS c ON c.rank = m.destination_rank AND c.call_id = m.destination_call_id
ORDER BY m.source_rank, m.source_endpoint_id
"""

# Calls that carry messages: when they were issued and on which stream, if on a device.
_CALLS = """
SELECT DISTINCT a.rank, a.call_id, a.issue_ns, IF(c.on_device, e.stream, NULL) AS stream
FROM timeline.arrival AS a
JOIN align.call AS c USING (run_id, rank, call_id)
JOIN raw.event AS e ON e.source_id = c.source_id AND e.event_id = c.event_id
JOIN align.message AS m ON m.run_id = a.run_id AND m.meeting_id = a.collective_id
WHERE a.run_id = $1 AND a.iteration = $2 AND a.rank IN (SELECT UNNEST($3))
ORDER BY a.rank, a.issue_ns, a.call_id
"""


def read_messages(store: Store, run_id: int) -> pl.DataFrame:
    """Messages of a run, by sender in the order of sending."""
    return store.query(_MESSAGES, [run_id])


def chains_of(needed: Mapping[Place, Place]) -> dict[tuple[int, int], list[Place]]:
    """Of two stages, the turns that need what the first sends to the second, in the order of sending."""
    found: dict[tuple[int, int], list[Place]] = {}
    # A rank sends in the order of its turns.
    for place, source in sorted(needed.items(), key=lambda one: one[1]):
        found.setdefault((source.stage, place.stage), []).append(place)
    return found


def exchanges_of(
    store: Store,
    run_id: int,
    issues: Sequence[Integers],
    ranks: Sequence[int],
    iteration: int,
    chains: Mapping[tuple[int, int], Sequence[Place]],
    messages: pl.DataFrame,
) -> list[list[Exchange]] | None:
    """How the messages of one iteration share calls and streams, or None where some are not known."""
    carried: dict[tuple[int, int], list[Place]] = {}
    own = messages.filter(pl.col("iteration") == iteration)
    for (source, destination), places in chains.items():
        ends = (pl.col("source_rank") == ranks[source]) & (pl.col("destination_rank") == ranks[destination])
        sent = own.filter(ends).select("source_call_id", "destination_call_id").rows()
        if len(sent) != len(places):
            return None
        for place, (source_call, destination_call) in zip(places, sent, strict=True):
            carried.setdefault((ranks[source], source_call), []).append(place)
            carried.setdefault((ranks[destination], destination_call), []).append(place)
    found: list[list[Exchange]] = [[] for _ in ranks]
    for rank, call, issued, stream in store.query(_CALLS, [run_id, iteration, list(ranks)]).iter_rows():
        if (rank, call) in carried:
            stage = ranks.index(rank)
            behind = int(np.searchsorted(np.sort(issues[stage]), issued))
            # What hosts move does not queue.
            queue = -1 - call if stream is None else stream
            found[stage].append(Exchange(queue, behind, tuple(carried[rank, call])))
    return found


@dataclass(frozen=True, slots=True)
class Moved:
    """Of what each turn needs, when it was sent and what its transfer took, by rank; shapes (iterations, turns).

    What is not known was sent at no time, and its transfer is NaN.
    """

    ready: dict[int, Integers]
    transfer: dict[int, NDArray[np.float64]]


def moved_of(
    turns: Sequence[Sequence[PipelineTurn]],
    ranks: Sequence[Sequence[int]],
    iterations: Integers,
    chains: Mapping[tuple[int, int], Sequence[Place]],
    messages: pl.DataFrame,
) -> Moved:
    """What is known of the messages that turns need."""
    shapes = [(len(iterations), len(own)) for own in turns]
    ready = {rank: np.zeros(shapes[stage], dtype=np.int64) for stage, own in enumerate(ranks) for rank in own}
    transfer = {rank: np.full(one.shape, np.nan) for rank, one in ready.items()}
    sent = {
        (int(str(source)), int(str(destination)), int(str(iteration))): own
        for (source, destination, iteration), own in messages.group_by(
            "source_rank", "destination_rank", "iteration", maintain_order=True
        )
    }
    for (source_stage, stage), places in chains.items():
        numbers = [place.number for place in places]
        for source, rank in zip(ranks[source_stage], ranks[stage], strict=True):
            for i, iteration in enumerate(iterations.tolist()):
                own = sent.get((source, rank, iteration))
                if own is not None and own.height == len(numbers):
                    ready[rank][i, numbers] = own["ready_ns"].to_numpy()
                    transfer[rank][i, numbers] = own["transfer_ns"].cast(pl.Float64).to_numpy()
    return Moved(ready, transfer)
