"""Who takes part in a timed operation. In: ranks with stage and data-parallel rank, names of operations. Out: groups.

Idea: names are those of Megatron's timers: `forward-compute`, `backward-recv`, `grads-reduce-scatter`. A message goes
to the next stage or comes from the one before, of gradients the other way. Gradients and parameters are exchanged among
the ranks of a stage, those of the embedding between the ends of a pipeline, the norm of all gradients (`clip`) among
all ranks. Of a tensor-parallel group one rank is in the table, so that nobody else meets it in the sum of the layer
norms' gradients. Not handled: names of other frameworks, which count as computation.
"""

import re
from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

_MESSAGE = re.compile(r"^(forward|backward)-(send|recv)$")
_COLLECTIVE = re.compile(r"all-reduce|all-gather|reduce-scatter|all-to-all|clip-main-grad$|^barrier$")
BARRIER = "barrier"
"""Name of a synchronisation of a stage's ranks that no row tells of."""
_MOST_OF_A_KIND = 4_096


class GridPlace(NamedTuple):
    """Where a rank stands in the job."""

    rank: int
    dp_rank: int
    stage: int


class GroupRole(NamedTuple):
    """How a rank takes part in communication.

    Attributes:
        op: such as `all_reduce`, or `send`.
        group: its name.
        ranks: members of the group.
        peer: rank at the other end of a message; None of a collective.
    """

    op: str
    group: str
    ranks: tuple[int, ...]
    peer: int | None = None


class JobGrid:
    """Ranks of a job by data-parallel rank and stage."""

    def __init__(self, places: Sequence[GridPlace], optypes: Sequence[str]) -> None:
        self._number = {name: number for number, name in enumerate([*optypes, BARRIER])}
        self._at = {(one.dp_rank, one.stage): one.rank for one in places}
        self._stages = sorted({one.stage for one in places})
        self._data = sorted({one.dp_rank for one in places})
        self._ranks = tuple(sorted({one.rank for one in places}))
        self.is_grid = len(self._at) == len(self._ranks) == len(places) == len(self._data) * len(self._stages)
        """Whether each data-parallel rank has one rank of every stage."""

    @property
    def world_size(self) -> int:
        """Ranks of the job, with those of tensor-parallel groups that are not in the table."""
        apart = gcd(*self._ranks) if len(self._ranks) > 1 else 1
        return max(self._ranks) + apart

    def part(self, optype: str, own: GridPlace) -> GroupRole | None:
        """How a rank takes part in an operation; None where it computes, or nobody can tell."""
        message = _MESSAGE.match(optype)
        if not self.is_grid:
            return None
        return self._message(message[1], message[2], own) if message else self._collective(optype, own)

    def _collective(self, optype: str, own: GridPlace) -> GroupRole | None:
        found = _COLLECTIVE.search(optype)
        if found is None:
            return None
        op = "all_reduce" if "clip" in found[0] else found[0].replace("-", "_")
        if "clip" in optype:
            return GroupRole(op, "world", self._ranks)
        if "embedding" in optype:
            ends = {self._at[own.dp_rank, self._stages[0]], self._at[own.dp_rank, self._stages[-1]]}
            return GroupRole(op, f"embedding_{own.dp_rank}", tuple(sorted(ends)))
        if "layernorm" in optype:
            return GroupRole(op, f"tensor_parallel_{own.rank}", (own.rank,))
        of_stage = tuple(sorted(self._at[one, own.stage] for one in self._data))
        return GroupRole(op, f"data_parallel_{own.stage}", of_stage)

    def first_sequence(self, optype: str) -> int:
        """Number in a step of the first collective of a name, the same on all ranks; those of a name follow it."""
        return self._number[optype] * _MOST_OF_A_KIND

    @property
    def sequences(self) -> int:
        """How many numbers a step has."""
        return len(self._number) * _MOST_OF_A_KIND

    def _message(self, way: str, side: str, own: GridPlace) -> GroupRole:
        """Activations go to the next stage, the last one's to the first (the next chunk of its layers)."""
        ahead = 1 if (way == "forward") == (side == "send") else -1
        place = self._stages.index(own.stage) + ahead
        peer = self._at[own.dp_rank, self._stages[place % len(self._stages)]]
        members = tuple(sorted(self._at[own.dp_rank, stage] for stage in self._stages))
        return GroupRole(side, f"pipeline_parallel_{own.dp_rank}", members, peer)
