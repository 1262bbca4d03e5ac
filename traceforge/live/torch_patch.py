"""Functions of PyTorch exchanged for ones that watch them. In: an owner, a name, a wrapper. Out: how to undo it.

Idea: whoever exchanged the same function later keeps theirs: what is undone is only what is still ours.
Not handled: functions that a program imported by name before the recording began.
"""

from collections.abc import Callable
from typing import Any

Undo = Callable[[], None]


def exchange(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Undo:
    """Put `wrap(original)` in the place of an attribute; does nothing where there is none."""
    if not hasattr(owner, name):
        return _nothing
    is_own = name in vars(owner)
    original = getattr(owner, name)
    ours = wrap(original)
    setattr(owner, name, ours)

    def undo() -> None:
        if vars(owner).get(name) is not ours:
            return
        if is_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return undo


def in_turn(undos: list[Undo]) -> Undo:
    """Undo several, the last first."""

    def undo() -> None:
        for one in reversed(undos):
            one()

    return undo


def _nothing() -> None:
    """Nothing was exchanged."""
