"""Pickles of plain containers. In: bytes. Out: lists, dicts, tuples, texts, numbers. Nothing is imported or called.

Idea: opcodes are walked here, one by one, and only those that build plain values are known; so memory grows with the
bytes, whatever a memo index or a length claims. One loop reads those of which dumps consist; the others, damage and the
last few bytes are left to `pickletools`. PyTorch's C++ pickler writes lists of numbers through
`torch.jit._pickle.build_*list`, which here is the list itself. Shared containers stay shared, but what they would be
if written out is bounded, as are nesting and circles refused: whoever reads the result may walk it.
Not handled: tensors, sets, objects, tuples as keys.
"""

import pickletools
import warnings
from collections.abc import Callable
from io import BytesIO
from struct import Struct
from types import NoneType
from typing import Any

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
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_CONTAINERS = frozenset({list, dict, tuple})
_SCALARS = frozenset({NoneType, bool, float})
_OPEN = 0  # instead of the size of a container that is not yet known
Container = list[Any] | tuple[Any, ...] | dict[Any, Any]

# What the loop knows of opcodes, by their byte. None is longer than 9 bytes but those that state their length.
_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_LONGEST_OPCODE = 9
_GET, _LONG_GET, _BEGIN, _LIST_BEGIN = (_CODES[name] for name in ("BINGET", "LONG_BINGET", "MARK", "EMPTY_LIST"))
_CONSTANTS = {_CODES["NONE"]: None, _CODES["NEWTRUE"]: True, _CODES["NEWFALSE"]: False, _CODES["EMPTY_TUPLE"]: ()}
_UINT1, _UINT4 = Struct("<B").unpack_from, Struct("<I").unpack_from
_INDICES = {_CODES["BINPUT"]: (_UINT1, 2), _CODES["LONG_BINPUT"]: (_UINT4, 5)}
_NUMBERS = {
    _CODES["BININT1"]: (_UINT1, 2),
    _CODES["BININT2"]: (Struct("<H").unpack_from, 3),
    _CODES["BININT"]: (Struct("<i").unpack_from, 5),
    _CODES["BINFLOAT"]: (Struct(">d").unpack_from, 9),
}


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
            found = _Walk(data).run()
        _check_size(found, _MOST_TIMES * len(data) + _ALLOWANCE)
    except _WALK_DAMAGE as error:
        raise InputUnusableError(
            f"the pickle is not read: {str(error)[:200]}",
            where=where,
            hint="only plain lists, dicts, texts and numbers are accepted; dump it as JSON if it holds more",
        ) from error
    return found


def _decoded(data: bytes) -> str:
    return str(data, "utf-8", "surrogatepass")


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


# How many bytes say how long it is, and what the bytes behind them mean.
_STATED: dict[int, tuple[Callable[[bytes, int], tuple[int]], int, Callable[[bytes], object]]] = {
    _CODES["BINUNICODE"]: (_UINT4, 5, _decoded),
    _CODES["SHORT_BINUNICODE"]: (_UINT1, 2, _decoded),
    _CODES["LONG1"]: (_UINT1, 2, _signed),
}


class _Walk:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._stream = BytesIO(data)
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}
        steps: dict[str, Callable[[], None]] = {
            "EMPTY_LIST": lambda: self._stack.append([]),
            "EMPTY_DICT": lambda: self._stack.append({}),
            "LIST": lambda: self._stack.append(self._since_mark()),
            "TUPLE": lambda: self._stack.append(tuple(self._since_mark())),
            "TUPLE1": lambda: self._stack.append((self._pop(),)),
            "TUPLE2": lambda: self._stack.append((self._pop(), self._pop())[::-1]),
            "TUPLE3": lambda: self._stack.append((self._pop(), self._pop(), self._pop())[::-1]),
            "DICT": lambda: self._stack.append(_pairs(self._since_mark())),
            "APPEND": lambda: self._extend([self._pop()]),
            "APPENDS": lambda: self._extend(self._since_mark()),
            "SETITEM": self._set_item,
            "SETITEMS": lambda: self._update(self._since_mark()),
            "POP": self._drop,
            "POP_MARK": lambda: self._since_mark().clear(),
            "DUP": lambda: self._stack.append(self._top()),
            "MEMOIZE": lambda: self._memo.__setitem__(len(self._memo), self._top()),
            "STACK_GLOBAL": self._stack_global,
            "REDUCE": self._reduce,
        }
        self._steps = {_CODES[name]: step for name, step in steps.items()}

    def run(self) -> object:
        place: int | None = 0
        while place is not None:
            place = self._walk_one(self._walk_common(place))
        return self._pop()

    def _walk_common(self, place: int) -> int:
        """Walk on to the first opcode that is rare or damaged, or to the last ones; its place."""
        data, stack, marks, memo, steps = self._data, self._stack, self._marks, self._memo, self._steps
        push, size = stack.append, len(data)
        while place + _LONGEST_OPCODE <= size:
            code = data[place]
            if code == _GET:
                push(memo[data[place + 1]])
                place += 2
            elif code == _BEGIN:
                marks.append(len(stack))
                push(_MARK)
                place += 1
            elif code == _LONG_GET:
                push(memo[_UINT4(data, place + 1)[0]])
                place += 5
            elif code == _LIST_BEGIN:
                push([])
                place += 1
            elif code in steps:
                steps[code]()
                place += 1
            elif code in _NUMBERS:
                number, width = _NUMBERS[code]
                push(number(data, place + 1)[0])
                place += width
            elif code in _CONSTANTS:
                push(_CONSTANTS[code])
                place += 1
            elif code in _STATED:
                length, width, made = _STATED[code]
                start = place + width
                end = start + length(data, place + 1)[0]
                if end > size:
                    break
                push(made(data[start:end]))
                place = end
            elif code in _INDICES:
                index, width = _INDICES[code]
                memo[index(data, place + 1)[0]] = self._top()
                place += width
            else:
                break
        return place

    def _walk_one(self, place: int) -> int | None:
        """Walk over any opcode; the place behind it, None at the end of the pickle."""
        self._stream.seek(place)
        opcode, argument, _ = next(pickletools.genops(self._stream))
        name, code = opcode.name, ord(opcode.code)
        if name in _VALUES:
            self._stack.append(argument)
        elif code in self._steps:
            self._steps[code]()
        elif code in _CONSTANTS:
            self._stack.append(_CONSTANTS[code])
        elif name == "MARK":
            self._marks.append(len(self._stack))
            self._stack.append(_MARK)
        elif name in _PUTS:
            self._memo[int(str(argument))] = self._top()
        elif name in _GETS:
            self._stack.append(self._memo[int(str(argument))])
        elif name == "GLOBAL":
            self._look_up(str(argument))
        elif name not in _NOTHING and name != "STOP":
            raise _RefusedError(f"it asks for {name}, which makes no plain value")
        return None if name == "STOP" else self._stream.tell()

    def _top(self) -> object:
        # Marks have no copies, so that the places of those on the stack are known.
        if self._stack[-1] is _MARK:
            raise _RefusedError("its values and marks do not match")
        return self._stack[-1]

    def _pop(self) -> object:
        value = self._stack.pop()
        if value is _MARK or value is _LIST:
            raise _RefusedError("its values and marks do not match")
        return value

    def _drop(self) -> None:
        if self._stack.pop() is _MARK:
            self._marks.pop()

    def _since_mark(self) -> list[object]:
        place = self._marks.pop()
        values = self._stack[place + 1 :]
        del self._stack[place:]
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


def _check_size(whole: object, most: int) -> None:
    """Refuse values that are circles, nested too deeply, or far larger than their pickle once written out.

    Raises:
        _RefusedError: it is one of these, or holds a function.
    """
    sizes: dict[int, int] = {}

    def size_of(container: Container, depth: int) -> int:
        if depth > _DEEPEST:
            raise _RefusedError("it is nested too deeply")
        sizes[id(container)] = _OPEN
        size = 1
        for part in (*container, *container.values()) if isinstance(container, dict) else container:
            kind = type(part)
            if kind is str or kind is bytes:
                size += 1 + len(part)
            elif kind is int:
                size += 1 + part.bit_length() // 3
            elif kind in _SCALARS:
                size += 1
            elif kind not in _CONTAINERS:
                raise _RefusedError("it stores a function")
            elif (known := sizes.get(id(part))) == _OPEN:
                raise _RefusedError("it is nested too deeply")
            else:
                size += size_of(part, depth + 1) if known is None else known
        if size > most:
            raise _RefusedError("it is far larger written out than its file")
        sizes[id(container)] = size
        return size

    size_of((whole,), -1)
