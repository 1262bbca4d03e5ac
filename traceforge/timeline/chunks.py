"""Which pass of which micro-batch a turn is. In: turns of the ranks of a pipeline. Out: chunk and micro-batch of each.

A rank of an interleaved pipeline holds several chunks of layers. Groups of micro-batches go forward through its chunks
from the first to the last, and backward from the last to the first; a group is as large as the pipeline is deep
(Megatron's interleaved schedule) or holds all micro-batches (breadth first). A group size is taken where no pass begins
before the one of the stage before it has ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceforge.timeline.pipeline_work import NONE, Integers
from traceforge.timeline.turns import FORWARD, Turns


@dataclass(frozen=True, slots=True)
class Passes:
    """Turns of a rank in an iteration with chunk and micro-batch, `NONE` where unknown; shapes (turns,)."""

    turns: Turns
    chunk: Integers
    microbatch: Integers

    def in_groups(self, size: int, microbatches: int, chunks: int) -> "Passes":
        """With numbers by the order of each letter."""
        chunk, microbatch = np.zeros_like(self.chunk), np.zeros_like(self.microbatch)
        for letter in np.unique(self.turns.letter).tolist():
            own = self.turns.letter == letter
            order = _order(microbatches, chunks, size)
            chunk[own] = order[0] if letter == FORWARD else chunks - 1 - order[0]
            microbatch[own] = order[1]
        return Passes(self.turns, chunk, microbatch)


def _order(microbatches: int, chunks: int, size: int) -> tuple[Integers, Integers]:
    """Chunk and micro-batch of the forward turns, in their order."""
    number = np.arange(microbatches)
    group = number // size
    chunk, microbatch = np.meshgrid(np.arange(chunks), number, indexing="ij")
    order = np.lexsort((microbatch.ravel(), chunk.ravel(), np.tile(group, chunks)))
    return chunk.ravel()[order], microbatch.ravel()[order]


def passes_of(turns: Turns) -> Passes:
    """Turns whose annotations name the micro-batch, and the virtual stage where a rank has several."""
    named = turns.take(turns.microbatch != NONE)
    if np.any(named.stage == NONE):
        return Passes(named, np.zeros_like(named.stage), named.microbatch)
    held = np.unique(named.stage)
    return Passes(named, np.searchsorted(held, named.stage), named.microbatch)


def group_size_of(
    found: Mapping[int, Passes], stages: Mapping[int, int], count: int, microbatches: int, chunks: int
) -> int | None:
    """How many micro-batches go through a chunk before the next chunk's turn, or None where no size fits."""
    if chunks == 1:
        return microbatches
    likely: tuple[int, ...] = (count, microbatches, *range(1, microbatches))
    for size in dict.fromkeys(one for one in likely if one <= microbatches):
        if _fits({rank: one.in_groups(size, microbatches, chunks) for rank, one in found.items()}, stages, count):
            return size
    return None


def _fits(found: Mapping[int, Passes], stages: Mapping[int, int], count: int) -> bool:
    """Whether no forward pass of the first stage begins before that of the chunk before it has ended anywhere."""
    ends: dict[tuple[int, int], int] = {}
    begins: dict[tuple[int, int], int] = {}
    for rank, one in found.items():
        for chunk, microbatch, letter, start, end in zip(
            one.chunk.tolist(), one.microbatch.tolist(), one.turns.letter.tolist(),
            one.turns.start_ns.tolist(), one.turns.end_ns.tolist(), strict=True,
        ):  # fmt: skip
            if letter != FORWARD:
                continue
            key = (chunk, microbatch)
            if stages[rank] == count - 1:
                ends[key] = min(end, ends.get(key, end))
            elif stages[rank] == 0 and chunk:
                begins[chunk - 1, microbatch] = max(start, begins.get((chunk - 1, microbatch), start))
    return all(ends.get(key, at) <= at for key, at in begins.items())
