"""Who passes messages to whom. In: messages of a run and their communicators. Out: ranks of each pipeline, in order.

Idea: ranks that exchange messages are a pipeline, unless all of them pass on alike: where every rank sends as much to
the next as the last one sends to the first, data goes round in a ring (attention over a context that ranks share), and
nobody is first. The order of stages is that in which the first message of an iteration goes through.
Not handled: two ranks that send to one another one by one are a pipeline unless their group is named after its context.
"""

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.axis_name import axis_name

Ranks = tuple[int, ...]


def pipelines(communicators: pl.DataFrame, messages: pl.DataFrame, ranks: int) -> list[Ranks]:
    """Ranks of each pipeline in order of stages: the members of a group, or whoever passes messages to whom.

    Args:
        communicators: communicator_id, description and ranks.
        messages: communicator_id, collective_id, source_rank, destination_rank, iteration and received_ns.
        ranks: how many the job has.
    """
    named = communicators.select("communicator_id", "description", "ranks").iter_rows()
    groups = {int(number): (str(text or ""), tuple(of)) for number, text, of in named}
    passed = list(_passed_on(messages, groups, ranks))
    if not passed:
        return []
    onward = pl.concat([own for _, own in passed])
    pipes = {group for group, _ in passed}
    if any(len(group) == ranks for group in pipes):
        pipes = set(connected(onward.select("source_rank", "destination_rank").unique(maintain_order=True).rows()))
    backwards = _goes_down(onward)
    return sorted((tuple(reversed(pipe)) if backwards else pipe for pipe in pipes), key=min)


def _passed_on(
    messages: pl.DataFrame, groups: Mapping[int, tuple[str, Ranks]], ranks: int
) -> Iterator[tuple[Ranks, pl.DataFrame]]:
    """Groups with those of their messages that do not go round; several rings may share a group of all ranks."""
    for (number,), own in messages.group_by("communicator_id", maintain_order=True):
        text, group = groups[int(str(number))]
        if axis_name(text) == "cp":
            continue
        edges = own.select("source_rank", "destination_rank").unique(maintain_order=True).rows()
        for part in [group] if len(group) < ranks else connected(edges):
            sent = own.filter(pl.col("source_rank").is_in(part))
            if not is_ring(part, sent):
                yield group, sent


def _goes_down(messages: pl.DataFrame) -> bool:
    """Whether the first message of most iterations goes to a lower rank."""
    first = messages.sort("received_ns").unique(["iteration"], keep="first", maintain_order=True)
    return 2 * int((first["source_rank"] > first["destination_rank"]).sum()) > first.height


def is_ring(ranks: Ranks, messages: pl.DataFrame) -> bool:
    """Whether all pass on alike, the last one to the first as well. Of two ranks: always both at once."""
    place = {rank: n for n, rank in enumerate(ranks)}
    counts: dict[int, list[int]] = {}
    has_closed: dict[int, set[bool]] = {}
    of_pair = messages.group_by("source_rank", "destination_rank", maintain_order=True).len()
    for source, destination, count in of_pair.iter_rows():
        offset = (place[destination] - place[source]) % len(ranks)
        counts.setdefault(offset, []).append(count)
        has_closed.setdefault(offset, set()).add(destination < source)
    is_even = all(min(of) >= thresholds.LEAST_RING_SHARE * max(of) for of in counts.values())
    is_closed = bool(has_closed) and all(len(ends) == 2 for ends in has_closed.values())
    return is_even and is_closed and (len(ranks) > 2 or _always_both(messages))


def _always_both(messages: pl.DataFrame) -> bool:
    """Whether two ranks send to one another in every call."""
    ways = messages.group_by("collective_id").agg(pl.col("source_rank").n_unique().alias("ways"))
    return bool((ways["ways"] > 1).all())


def connected(edges: Iterable[tuple[int, int]]) -> list[Ranks]:
    """Sets of ranks between which messages go, each ascending."""
    of: dict[int, set[int]] = {}
    for one, other in edges:
        joined = of.get(one, {one}) | of.get(other, {other})
        of |= dict.fromkeys(joined, joined)
    return sorted({tuple(sorted(found)) for found in of.values()})
