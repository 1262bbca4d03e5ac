"""The file of a live recording. In: facts and rows. Out: frames of bytes, each of which can be read without the others.

    file   MAGIC frame*
    frame  mark 4 B, kind 4 B, size of the body u32, its CRC-32 u32, size of the plain body u32, body (zlib)
    FACT   a JSON object: what the process is, what numbers stand for, clock readings, what was lost
    ROWS   blocks: kind u8, count u32, then the columns name, start_ns, end_ns, a, b, c

A column is `count` int64, little-endian, its bytes sorted by significance; start_ns and a are differences to the row
before, end_ns is the duration. That makes a row about 10 bytes. A file that ends in the middle is whole up to its last
frame. What a, b and c are is said beside `RowKind`. Not handled: other byte orders of the writing machine.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

MAGIC = b"traceforge live 1\n"
MARK = b"\xf1tfl"
HEAD = struct.Struct("<4s4sIII")
BLOCK = struct.Struct("<BI")
COLUMNS = 6
_LEVEL = 3

Row = tuple[int, int, int, int, int, int, int]
"""Kind, number of the name, start and end (monotonic ns), a, b, c."""


class RowKind(IntEnum):
    """What a row is.

    STEP        a: number of the step
    PHASE       a: number of the thread, 0 the one that trains
    COLLECTIVE  a: sequence number in the group; b: when the call returned to its thread, ns after it began; c: thread
    PACE        a: delay that the policy asked for, ns; b: mean wait of the step before, ns; c: number of the step;
                start to end: the delay that was kept; name: arm of the trial and state of the hook
    DEVICE      a: what was read of the device; b: number of the reading; start, end: when; name: quantity with its unit
    DEVICE_COLLECTIVE  name, a: as of a collective; start: when the device got to it; b: how long after the host asked,
                ns; c: 1 where the stream goes on only when it has ended
    DEVICE_MARK start: when the host asked for it; end: when the device got there; a: 1 where it was given nothing since
                the mark before
    """

    STEP = 0
    PHASE = 1
    COLLECTIVE = 2
    PACE = 3
    DEVICE = 4
    DEVICE_COLLECTIVE = 5
    DEVICE_MARK = 6


def facts_frame(facts: Mapping[str, object]) -> bytes:
    """A frame of facts."""
    return _frame(b"FACT", json.dumps(facts, separators=(",", ":")).encode())


def rows_frame(rows: Sequence[Row]) -> bytes:
    """A frame of rows; they keep their order within each kind."""
    table = np.array(rows, dtype=np.int64).reshape(-1, COLUMNS + 1)
    kinds = table[:, 0]
    return _frame(b"ROWS", b"".join(_blocks(table, np.unique(kinds).tolist())))


def _blocks(table: NDArray[np.int64], kinds: Iterable[int]) -> Iterable[bytes]:
    for kind in kinds:
        name, start, end, a, b, c = table[table[:, 0] == kind, 1:].T
        yield BLOCK.pack(kind, len(name))
        yield from (_packed(column) for column in (name, _steps(start), end - start, _steps(a), b, c))


def _steps(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(values, prepend=0)


def _packed(column: NDArray[np.int64]) -> bytes:
    """Bytes of equal significance side by side: those of small numbers are runs of zeros."""
    return np.ascontiguousarray(column, dtype="<i8").view(np.uint8).reshape(-1, 8).T.tobytes()


def _frame(kind: bytes, plain: bytes) -> bytes:
    body = zlib.compress(plain, _LEVEL)
    return HEAD.pack(MARK, kind, len(body), zlib.crc32(body), len(plain)) + body
