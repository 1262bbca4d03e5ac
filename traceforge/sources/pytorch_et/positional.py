"""Positional arguments of a `record_param_comms` node. In: its input values. Out: a `Call`.

Idea: PyTorch records a call as [tensors,] sequence, group, rank, name, input splits, output splits, then nothing, or
the group's size, or first rank, stride and size, and lately whether the call is asynchronous. The name is the only text
among them, so all other places follow from its place. The group is a pointer before 1.0.3, then a (name, description).
Seen: lengths 7 to 10, and 6 to 9 of waits, which have no tensor. Not handled: a group's name given as a plain text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_FIRST_NAME_PLACE = 3
_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Call:
    """What a node says of a call of a communication library; None where it says nothing.

    Attributes:
        sequence: number of the call; a wait repeats that of its call.
        group_handle: of the group, where it is a pointer.
        group_name, group_description: of the group, where it is a pair of texts.
        group_rank: rank of the process in the group.
        name: such as `allreduce` or `wait`.
        in_splits, out_splits: elements of the first dimension for each rank; empty where all get the same.
        global_rank_start, global_rank_stride: of the group; -1 where not known.
        group_size: ranks of the group.
        is_asynchronous: whether the caller goes on before the communication ends.
    """

    sequence: int | None
    group_handle: int | None
    group_name: str | None
    group_description: str | None
    group_rank: int | None
    name: str
    in_splits: list[int] | None
    out_splits: list[int] | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    is_asynchronous: bool | None


def call_of(values: object) -> Call | None:
    """The call that the inputs of a node describe; None where they describe none."""
    if not isinstance(values, list):
        return None
    for place, name in enumerate(values):
        if place >= _FIRST_NAME_PLACE and isinstance(name, str) and _integer(values[place - 1]) is not None:
            return _call(values, place, name)
    return None


def _call(values: Sequence[object], place: int, name: str) -> Call:
    group = values[place - 2]
    texts = [text for text in group if isinstance(text, str)] if isinstance(group, list) else []
    numbers = [number for value in values[place + 3 :] if (number := _integer(value)) is not None]
    flags = [value for value in values[place + 3 :] if isinstance(value, bool)]
    spread = len(numbers) >= 3
    return Call(
        sequence=_first_integer(values[place - 3]),
        group_handle=_integer(group),
        group_name=texts[0] or None if texts else None,
        group_description=texts[1] or None if len(texts) > 1 else None,
        group_rank=_integer(values[place - 1]),
        name=name,
        in_splits=integers_in(_at(values, place + 1)),
        out_splits=integers_in(_at(values, place + 2)),
        global_rank_start=numbers[0] if spread else None,
        global_rank_stride=numbers[1] if spread else None,
        group_size=numbers[2] if spread else numbers[0] if numbers else None,
        is_asynchronous=flags[-1] if flags else None,
    )


def _at(values: Sequence[object], place: int) -> object:
    return values[place] if place < len(values) else None


def _integer(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and -_LIMIT <= value < _LIMIT:
        return value
    return None


def _first_integer(value: object) -> int | None:
    """A sequence number, alone or followed by whether it counts point-to-point calls."""
    return _integer(value[0]) if isinstance(value, list) and value else _integer(value)


def integers_in(value: object) -> list[int] | None:
    """A list of integers; None where the value is something else."""
    if not isinstance(value, list):
        return None
    numbers = [number for item in value if (number := _integer(item)) is not None]
    return numbers if len(numbers) == len(value) else None
