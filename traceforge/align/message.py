"""Which receive belongs to which send. Reads align.endpoint, call, membership, communicator; fills align.message.

The sends of one rank to another, in order of issue, are the receives of the other from it: each directed pair of ranks
within a communicator is a sequence of its own, matched as the calls of a communicator are (`collective_matching`). On
hosts (gloo) tags tell sequences apart; NCCL ignores them. Ends of messages that stay alone are counted here by reason
and listed in align.unmatched_endpoint. Not handled: receives from anyone, whose sender nothing names.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np
import polars as pl

from traceforge.align.collective_matching import ABSENT, match
from traceforge.align.sequence_alignment import CallSequence
from traceforge.store.database import Store

_ENDPOINTS = """
SELECT e.run_id, m.communicator_id, e.rank, e.endpoint_id, c.call_id, e.op = 'send' AS is_sent,
  COALESCE(
    e.peer, k.ranks[e.peer_place + 1], CASE WHEN k.size = 2 THEN k.ranks[IF(k.ranks[1] = e.rank, 2, 1)] END
  ) AS peer,
  e.tag, CASE WHEN NOT c.on_device THEN e.tag END AS channel_tag,
  COALESCE(e.size_bytes, CASE WHEN c.op <> 'send_recv' THEN c.size_bytes END) AS size_bytes,
  c.on_device, COALESCE(s.iteration, -1) AS iteration, c.raw_arrival_ns, c.raw_end_ns,
  r.raw_intact_ns IS NOT NULL AS is_truncated
FROM align.endpoint AS e
JOIN align.call AS c
  ON c.run_id = e.run_id AND c.rank = e.rank AND c.source_id = e.source_id AND c.event_id = e.carrier_event_id
JOIN align.membership AS m ON m.run_id = c.run_id AND m.rank = c.rank AND m.call_id = c.call_id
JOIN align.communicator AS k ON k.run_id = m.run_id AND k.communicator_id = m.communicator_id
JOIN align.rank AS r ON r.run_id = e.run_id AND r.rank = e.rank
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
ORDER BY e.run_id, m.communicator_id, e.rank, e.endpoint_id
"""

_CHANNEL = ("communicator_id", "source_rank", "destination_rank", "channel_tag")
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.Int32, "message_id": pl.Int64, "meeting_id": pl.Int64, "communicator_id": pl.Int64,
    "sequence": pl.Int64, "source_rank": pl.Int32, "source_call_id": pl.Int64, "source_endpoint_id": pl.Int64,
    "destination_rank": pl.Int32, "destination_call_id": pl.Int64, "destination_endpoint_id": pl.Int64,
    "size_bytes": pl.Int64, "tag": pl.Int64,
}  # fmt: skip


def rows(store: Store) -> pl.DataFrame:
    """One row a matched message."""
    frames = [pl.DataFrame(schema=_SCHEMA)]
    # What a rank sends to itself meets nobody, and ties no clocks.
    endpoints = store.query(_ENDPOINTS).filter(pl.col("peer") != pl.col("rank"))
    for _, own in endpoints.group_by("run_id", maintain_order=True):
        found = list(_messages(own))
        if found:
            frames.append(_numbered(pl.concat(found)).select(pl.col(n).cast(kind) for n, kind in _SCHEMA.items()))
    return pl.concat(frames)


def _messages(endpoints: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Messages of one run, a frame a channel."""
    directed = endpoints.with_columns(
        source_rank=pl.when("is_sent").then("rank").otherwise("peer"),
        destination_rank=pl.when("is_sent").then("peer").otherwise("rank"),
        kind=pl.col("size_bytes").rank("dense").cast(pl.Int64).fill_null(0),
    )
    for _, channel in directed.group_by(_CHANNEL, maintain_order=True):
        sent, received = channel.filter("is_sent"), channel.filter(~pl.col("is_sent"))
        if sent.is_empty() or received.is_empty():
            continue
        truncated = [bool(side["is_truncated"][0]) for side in (sent, received)]
        if not any(truncated) and _are_in_order(sent, received):
            yield _pairs(sent, received)
            continue
        found = match([_sequence(sent), _sequence(received)], truncated=truncated, from_first_to_second=True)
        place = found.place[(found.place != ABSENT).all(axis=1)]
        yield _pairs(sent[place[:, 0]], received[place[:, 1]])


def _are_in_order(sent: pl.DataFrame, received: pl.DataFrame) -> bool:
    """Whether both sides name as many messages of the same sizes in the same iterations.

    Ends need not be compared then, which differ where a call carries several messages, or where hosts end their work
    when it is asked for.
    """
    is_numbered = bool((sent["iteration"] >= 0).all()) or not sent["on_device"].any()
    return is_numbered and sent.select("kind", "iteration").equals(received.select("kind", "iteration"))


def _sequence(side: pl.DataFrame) -> CallSequence:
    # The sequence numbers that PyTorch gives to sends and receives are each rank's own.
    kind, *others = (side[name].to_numpy() for name in ("kind", "iteration", "raw_arrival_ns", "raw_end_ns"))
    return CallSequence(kind, np.full(len(kind), ABSENT), *(values.astype(np.int64) for values in others))


def _pairs(sent: pl.DataFrame, received: pl.DataFrame) -> pl.DataFrame:
    return sent.select(
        "run_id",
        "communicator_id",
        "source_rank",
        "destination_rank",
        sequence=pl.int_range(pl.len()),
        source_call_id="call_id",
        source_endpoint_id="endpoint_id",
        destination_call_id=received["call_id"],
        destination_endpoint_id=received["endpoint_id"],
        size_bytes=pl.max_horizontal("size_bytes", received["size_bytes"]),
        tag=pl.coalesce("tag", received["tag"]),
    )


def _numbered(messages: pl.DataFrame) -> pl.DataFrame:
    """With numbers in order of the sender, and one for the calls that meet."""
    ordered = messages.sort("communicator_id", "source_rank", "source_endpoint_id", "destination_rank")
    number, met = count(), dict[tuple[int, ...], int]()
    calls = ("source_rank", "source_call_id", "destination_rank", "destination_call_id")
    meeting = []
    for source, source_call, destination, destination_call in ordered.select(calls).iter_rows():
        low, high = sorted([(source, source_call), (destination, destination_call)])
        key = (*low, *high)
        if key not in met:
            met[key] = next(number)
        meeting.append(met[key])
    return ordered.with_columns(message_id=pl.int_range(pl.len()), meeting_id=pl.Series(meeting, dtype=pl.Int64))
