"""Pickles of plain containers. In: bytes. Out: lists, dicts, tuples, texts, numbers. Nothing is imported or called.

Idea: opcodes are walked here, one by one, and only those that build plain values are known; so memory grows with the
bytes, whatever a memo index or a length claims. PyTorch's C++ pickler writes lists of numbers through
`torch.jit._pickle.build_*list`, which here is the list itself. Shared containers stay shared, but what they would be
if written out is bounded, as are nesting and circles refused: whoever reads the result may walk it.
Not handled: tensors, sets, objects, tuples as keys.
"""

import pickletools
import warnings
from collections.abc import Callable

from traceforge.errors import InputUnusableError

_LISTS = frozenset(f"torch.jit._pickle build_{kind}list" for kind in ("int", "double", "bool"))
_DEEPEST = 64
_MOST_TIMES = 16
_ALLOWANCE = 64 * 1024 * 1024
_WALK_DAMAGE = (ValueError, IndexError, KeyError, TypeError, OverflowError, EOFError, UnicodeDecodeError)
_MARK = object()
_LIST = object()
_NOTHING = frozenset({"PROTO", "FRAME"})
_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})


class _RefusedError(ValueError):
    """The pickle asks for something that is no plain value."""


def load_plain(data: bytes, *, where: str) -> object:
    """The object in a pickle.

    Raises:
        InputUnusableError: the pickle is damaged, asks for anything but plain containers, or is a trap.
    """
    try:
        # Python warns of backslashes in damaged texts, on lines of its own that say nothing of the file.
        with warnings.catch_warnings(action="ignore"):
            found = _Walk().run(data)
        _check_size(found, _MOST_TIMES * len(data) + _ALLOWANCE)
    except _WALK_DAMAGE as error:
        raise InputUnusableError(
            f"the pickle is not read: {str(error)[:200]}",
            where=where,
            hint="only plain lists, dicts, texts and numbers are accepted; dump it as JSON if it holds more",
        ) from error
    return found


class _Walk:
    def __init__(self) -> None:
        self._stack: list[object] = []
        self._memo: dict[int, object] = {}
        self._steps: dict[str, Callable[[], None]] = {
            "MARK": lambda: self._stack.append(_MARK),
            "EMPTY_LIST": lambda: self._stack.append([]),
            "EMPTY_DICT": lambda: self._stack.append({}),
            "LIST": lambda: self._stack.append(self._since_mark()),
            "TUPLE": lambda: self._stack.append(tuple(self._since_mark())),
            "DICT": lambda: self._stack.append(_pairs(self._since_mark())),
            "APPEND": lambda: self._extend([self._pop()]),
            "APPENDS": lambda: self._extend(self._since_mark()),
            "SETITEM": self._set_item,
            "SETITEMS": lambda: self._update(self._since_mark()),
            "POP": lambda: self._stack.__delitem__(-1),
            "POP_MARK": lambda: self._since_mark().clear(),
            "DUP": lambda: self._stack.append(self._stack[-1]),
            "MEMOIZE": lambda: self._memo.__setitem__(len(self._memo), self._stack[-1]),
            "STACK_GLOBAL": self._stack_global,
            "REDUCE": self._reduce,
        }

    def run(self, data: bytes) -> object:
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name in _VALUES:
                self._stack.append(argument)
            elif name in self._steps:
                self._steps[name]()
            elif name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name])
            elif name in _TUPLES:
                self._stack.append(tuple(reversed([self._pop() for _ in range(_TUPLES[name])])))
            elif name in _PUTS:
                self._memo[int(str(argument))] = self._stack[-1]
            elif name in _GETS:
                self._stack.append(self._memo[int(str(argument))])
            elif name == "GLOBAL":
                self._look_up(str(argument))
            elif name not in _NOTHING and name != "STOP":
                raise _RefusedError(f"it asks for {name}, which makes no plain value")
        return self._pop()

    def _pop(self) -> object:
        value = self._stack.pop()
        if value is _MARK or value is _LIST:
            raise _RefusedError("its values and marks do not match")
        return value

    def _since_mark(self) -> list[object]:
        values: list[object] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        if any(value is _LIST for value in values):
            raise _RefusedError("it stores a function")
        values.reverse()
        return values

    def _extend(self, values: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise _RefusedError("it appends to what is no list")
        target.extend(values)

    def _set_item(self) -> None:
        value = self._pop()
        self._update([self._pop(), value])

    def _update(self, values: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise _RefusedError("it sets an item of what is no dict")
        target.update(_pairs(values))

    def _stack_global(self) -> None:
        name = self._pop()
        self._look_up(f"{self._pop()} {name}")

    def _look_up(self, name: str) -> None:
        if name not in _LISTS:
            raise _RefusedError(f"it asks for {name[:120]}, which is no plain container")
        self._stack.append(_LIST)

    def _reduce(self) -> None:
        arguments = self._pop()
        if self._stack.pop() is not _LIST or not isinstance(arguments, tuple) or len(arguments) != 1:
            raise _RefusedError("it calls something")
        if not isinstance(arguments[0], list | tuple):
            raise _RefusedError("it makes a list of what is none")
        self._stack.append(list(arguments[0]))


def _pairs(values: list[object]) -> dict[object, object]:
    if len(values) % 2:
        raise _RefusedError("a key has no value")
    # To hash a tuple takes as long as to write it out, and C's whole stack where it is deep.
    if tuple in map(type, values[::2]):
        raise _RefusedError("a key is no text and no number")
    return dict(zip(values[::2], values[1::2], strict=True))


def _check_size(value: object, most: int) -> None:
    """Refuse values that are circles, nested too deeply, or far larger than their pickle once written out.

    Raises:
        _RefusedError: it is one of these.
    """
    sizes: dict[int, int] = {}
    open_now: set[int] = set()

    def size_of(part: object, depth: int) -> int:
        if isinstance(part, str | bytes):
            return len(part) + 1
        if not isinstance(part, list | tuple | dict):
            return 1 + (part.bit_length() // 3 if isinstance(part, int) else 0)
        key = id(part)
        if key in open_now or depth > _DEEPEST:
            raise _RefusedError("it is nested too deeply")
        if key not in sizes:
            open_now.add(key)
            parts = [*part, *part.values()] if isinstance(part, dict) else part
            sizes[key] = 1 + sum(size_of(each, depth + 1) for each in parts)
            open_now.discard(key)
        if sizes[key] > most:
            raise _RefusedError("it is far larger written out than its file")
        return sizes[key]

    size_of(value, 0)
