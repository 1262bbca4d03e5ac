"""Pickles of plain containers. In: bytes. Out: lists, dicts, tuples, texts, numbers. Nothing is imported or called.

Idea: an unpickler can only do harm through what it looks up; every look-up but one is refused. PyTorch's C++ pickler
writes lists of numbers through `torch.jit._pickle.build_*list`, which here is the plain `list`.
Not handled: tensors, sets of any class, objects. A pickle may still ask for much memory; callers bound its size.
"""

import io
import pickle  # only through the class below, which looks nothing up
from typing import NoReturn

from traceforge.errors import InputUnusableError

_LISTS = frozenset({"build_intlist", "build_doublelist", "build_boollist"})
_DAMAGE = (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError, MemoryError,
           RecursionError, OverflowError, UnicodeDecodeError)  # fmt: skip


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[list[object]]:
        """The only look-up that is granted: a list of numbers."""
        if module == "torch.jit._pickle" and name in _LISTS:
            return list
        raise pickle.UnpicklingError(f"it asks for {module[:60]}.{name[:60]}, which is no plain container")

    def persistent_load(self, _identifier: object) -> NoReturn:
        """Objects kept elsewhere are refused."""
        raise pickle.UnpicklingError("it refers to an object outside of itself")


def load_plain(data: bytes, *, where: str) -> object:
    """The object in a pickle.

    Raises:
        InputUnusableError: the pickle is damaged or asks for anything but plain containers.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _DAMAGE as error:
        raise InputUnusableError(
            f"the pickle is not read: {error}",
            where=where,
            hint="only plain lists, dicts, texts and numbers are accepted; dump it as JSON if it holds more",
        ) from error
