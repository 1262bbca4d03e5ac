"""Changes to sound files. In: bytes of one. Out: bytes near them, most of which a reader gets far into.

Idea: what holds a structure is changed inside it and written again: JSON by its values and keys, protobuf by its
fields with the lengths around them made right, SQLite by its cells and columns, pickles by the value that they hold.
Each kind is changed byte by byte as well, which is what damage does.
"""

import contextlib
import copy
import json
import pickle
import random
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import polars as pl

from tests.fuzz.samples import Tables, sqlite_file, sqlite_tables

_ODD_CELLS = (None, 0, 1, -1, 2**31, 2**62, 1e300, -1e-9, float("nan"), float("inf"), "", "send", "barrier", "-compute")
_COLUMN_TYPES = (pl.Int8, pl.UInt64, pl.Float32, pl.Float64, pl.String, pl.Binary)
LARGEST_INPUT = 64 * 1024
_MARK = b"\xf1tfl"
_FRAME = struct.Struct("<4s4sIII")
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -(2**31) - 1, -(2**63),
    -(2**63) - 1, 10**30, 0.5, -0.0, 1e300, float("nan"), float("inf"), "", "a", "0", "-1", "1e400", "9" * 40, "0x7f",
    "\u202e\x1b[31m", "\x00", "\ud800", "=1+1", "<script>", "'; DROP TABLE meta.run; --", "é" * 50, "[" * 200, [], {},
    [[]], [None], [0, 1], ["a", 2], {"a": 1}, {"handle": 40}, [[1, 2], [3]], list(range(50)),
)  # fmt: skip
ODD_INTEGERS = tuple(value for value in ODD_VALUES if type(value) is int)
PIECES = (
    b"\x00", b"\xff", b"\x80", b"\n", b"\r\n", b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\u0000", b"\\ud800",
    b"null", b"NaN", b"-", b"1e999", b"9" * 30, b"<", b">", b"&a;", b"<!DOCTYPE a>", b" NCCL INFO ", b"[0] ", b" rank ",
    b" 0x", b"\x1b[0m", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"h\x00", b"r\xff\xff\xff\x7f", b"]e", b"(", b"t", b"s.",
    b"\xff" * 10,
)  # fmt: skip


def changed_bytes(source: random.Random, data: bytes) -> bytes:
    """A few bytes removed, repeated, replaced or put in."""
    for _ in range(source.choice([1, 1, 1, 2, 3, 6])):
        start = source.randint(0, len(data))
        end = min(len(data), start + source.choice([0, 1, 1, 2, 8, 40, 400]))
        new = source.choice(
            [
                b"",
                bytes([source.randrange(256)]),
                source.choice(PIECES),
                data[start:end] * 2,
                data[: source.randint(0, 60)],
            ]
        )
        data = data[:start] + new + data[end:]
    return data[: source.randint(0, len(data))] if source.random() < 0.1 else data


def changed_value(source: random.Random, value: Any) -> Any:
    """A copy of a value of lists, objects and scalars with a few parts replaced, removed, repeated or moved."""
    root = {"": copy.deepcopy(value)}
    for _ in range(source.choice([1, 1, 2, 3, 5])):
        holders = [(holder, key) for holder, key in _places(root) if holder is not root or source.random() < 0.02]
        if not holders:
            break
        holder, key = source.choice(holders)
        _change(source, holder, key)
    return root[""]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key inside a value."""
    found, todo = [], [value]
    while todo:
        holder = todo.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                todo.append(holder[key])
    return found


def _change(source: random.Random, holder: Any, key: Any) -> None:
    kind = source.randrange(7)
    if kind == 0 and len(holder) > 1:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key])] * source.choice([1, 2, 40])
    elif kind == 1:
        holder[str(source.choice(ODD_VALUES))] = copy.deepcopy(holder[key])
    elif kind == 2:
        holder[key] = [copy.deepcopy(holder[key])]
    elif kind == 3 and isinstance(holder[key], int):
        holder[key] += source.choice([-1, 1, 1000])
    elif kind == 4 and isinstance(holder[key], str):
        place = source.randint(0, len(holder[key]))
        holder[key] = holder[key][:place] + str(source.choice(ODD_VALUES)) + holder[key][place:]
    else:
        holder[key] = copy.deepcopy(source.choice(ODD_VALUES))


def changed_json(source: random.Random, data: bytes) -> bytes:
    """A document of JSON, or several one behind the other, with changed values; bytes where it is none."""
    decoder, text, place, found = json.JSONDecoder(), data.decode("utf-8", "replace"), 0, []
    try:
        while text[place:].strip():
            place += len(text[place:]) - len(text[place:].lstrip())
            value, place = decoder.raw_decode(text, place)
            found.append(value)
    except (ValueError, RecursionError):
        return changed_bytes(source, data)
    value = changed_value(source, found)
    documents = value if isinstance(value, list) else [value]
    lines = [json.dumps(one, indent=source.choice([None, 1]), ensure_ascii=source.random() < 0.5) for one in documents]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def changed_pickle(source: random.Random, data: bytes) -> bytes:
    """A pickle of a changed value."""
    value = changed_value(source, pickle.loads(data))  # noqa: S301 - our own sample
    return pickle.dumps(value, protocol=source.choice([0, 1, 2, 3, 4, 5]))


def changed_message(source: random.Random, data: bytes, depth: int = 0) -> bytes:
    """A protobuf message with a changed field somewhere, the lengths around it right."""
    fields = _fields(data)
    if not fields or (depth and source.random() < 0.25):
        return changed_bytes(source, data)
    place = source.randrange(len(fields))
    number, wire, payload = fields[place]
    kind = source.randrange(6)
    if kind == 0:
        del fields[place]
    elif kind == 1:
        fields[place:place] = [fields[place]] * source.choice([1, 30])
    elif kind == 2:
        fields[place] = (source.choice([0, 1, 2, 3, 4, 6, 19, 2**28]), wire, payload)
    elif wire == 2 and payload:
        fields[place] = (number, wire, changed_message(source, payload, depth + 1))
    else:
        fields[place] = (number, 0, source.choice(ODD_INTEGERS) & (2**64 - 1))
    return b"".join(_encoded(*one) for one in fields)


def _fields(data: bytes) -> list[tuple[int, int, Any]]:
    """Fields of a message; none where the bytes are no message."""
    found: list[tuple[int, int, Any]] = []
    place = 0
    try:
        while place < len(data):
            tag, place = _varint(data, place)
            wire = tag & 7
            if wire == 0:
                value, place = _varint(data, place)
                found.append((tag >> 3, wire, value))
                continue
            size, place = (8 if wire == 1 else 4, place) if wire != 2 else _varint(data, place)
            if wire not in (1, 2, 5) or place + size > len(data) or not tag >> 3:
                return []
            found.append((tag >> 3, wire, data[place : place + size]))
            place += size
    except IndexError:
        return []
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


def _written(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _encoded(number: int, wire: int, payload: Any) -> bytes:
    head = _written(number << 3 | wire)
    if wire == 0:
        return head + _written(payload)
    return head + (_written(len(payload)) if wire == 2 else b"") + bytes(payload)


def changed_frames(source: random.Random, data: bytes) -> bytes:
    """A file of protobuf messages, each behind its length, one of them changed."""
    frames, place = [], 0
    while place < len(data):
        size, place = _varint(data, place)
        frames.append(data[place : place + size])
        place += size
    chosen = source.randrange(len(frames))
    frames[chosen] = changed_message(source, frames[chosen])
    if source.random() < 0.2:
        frames.insert(source.randrange(len(frames)), source.choice(frames))
    return b"".join(_written(len(one)) + one for one in frames)


def changed_recording(source: random.Random, data: bytes) -> bytes:
    """A live recording with a changed frame whose checksum is right."""
    frames, place = [], data.index(_MARK)
    while place < len(data):
        _, kind, size, _, _ = _FRAME.unpack_from(data, place)
        place += _FRAME.size + size
        frames.append((kind, zlib.decompress(data[place - size : place])))
    chosen = source.randrange(len(frames))
    kind, plain = frames[chosen]
    change = changed_json if kind == b"FACT" and source.random() < 0.8 else changed_bytes
    frames[chosen] = (kind, change(source, plain))
    if source.random() < 0.2:
        frames.insert(source.randrange(len(frames)), source.choice(frames))
    return data[: data.index(_MARK)] + b"".join(_framed(*one) for one in frames)


def _framed(kind: bytes, plain: bytes) -> bytes:
    body = zlib.compress(plain)
    return _FRAME.pack(_MARK, kind, len(body), zlib.crc32(body), len(plain)) + body


def changed_tables(source: random.Random, data: bytes) -> bytes:
    """A database of SQLite with changed cells, columns and tables."""
    tables: Tables = {name: [dict(row) for row in rows] for name, rows in sqlite_tables(data).items()}
    for _ in range(source.choice([1, 2, 4])):
        name = source.choice(list(tables))
        rows = tables[name]
        row, column = source.choice(rows), source.choice(list(rows[0]))
        kind = source.randrange(6)
        if kind == 0 and len(tables) > 1:
            del tables[name]
        elif kind == 1 and len(rows[0]) > 1:
            tables[name] = [{key: value for key, value in one.items() if key != column} for one in rows]
        elif kind == 2:
            rows.extend(dict(row) for _ in range(source.choice([1, 100])))
        else:
            row[column] = _cell(source)
    try:
        return sqlite_file(tables)
    except Exception:  # noqa: BLE001 - SQLite takes no such table
        return data


def _cell(source: random.Random) -> Any:
    value = source.choice(ODD_VALUES)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "replace")
        return text if source.random() < 0.5 else text.decode()
    return value if value is None or isinstance(value, int | float) else struct.pack("q", source.randrange(2**40))


def changed_lines(source: random.Random, data: bytes) -> bytes:
    """Lines of text with a changed word, in another order, repeated, or joined."""
    lines = data.split(b"\n")
    for _ in range(source.choice([1, 2, 4])):
        place = source.randrange(len(lines))
        words = lines[place].split(b" ")
        kind = source.randrange(5)
        if kind == 0:
            lines.insert(source.randrange(len(lines)), lines[place])
        elif kind == 1 and len(lines) > 1:
            lines[place : place + 2] = [b"".join(lines[place : place + 2])]
        elif kind == 2:
            lines[place] = changed_bytes(source, lines[place])
        else:
            odd = str(source.choice(ODD_VALUES)).encode("utf-8", "replace")
            words[source.randrange(len(words))] = source.choice([odd, source.choice(PIECES), b"%x" % 2**70])
            lines[place] = b" ".join(words)
    return b"\n".join(lines)


def changed_columns(source: random.Random, data: bytes) -> bytes:
    """A Parquet file with odd cells, rows again, or columns of another type or none."""
    frame = pl.read_parquet(BytesIO(data))
    for _ in range(source.choice([1, 1, 2, 4])):
        name, row = source.choice(frame.columns), source.randrange(max(frame.height, 1))
        kind = source.randrange(6)
        if kind == 0 and frame.width > 1:
            frame = frame.drop(name)
        elif kind == 1:
            frame = _retyped(frame, name, source.choice(_COLUMN_TYPES))
        elif kind == 2:
            frame = pl.concat([frame, frame.slice(row, source.choice([1, 5]))])
        else:
            odd = _retyped(pl.DataFrame({"odd": [source.choice(_ODD_CELLS)]}, strict=False), "odd", frame.schema[name])
            cell = odd["odd"][0] if odd.schema["odd"] == frame.schema[name] else None
            frame = frame.with_columns(
                pl.when(pl.int_range(pl.len()) == row)
                .then(pl.lit(cell, frame.schema[name]))
                .otherwise(name)
                .alias(name)
            )
    written = BytesIO()
    frame.write_parquet(written, compression=source.choice(["zstd", "snappy", "gzip", "uncompressed"]))
    return written.getvalue()


def _retyped(frame: pl.DataFrame, name: str, kind: pl.DataType | type[pl.DataType]) -> pl.DataFrame:
    """With a column of another type, where that can be made of what it holds."""
    with contextlib.suppress(pl.exceptions.InvalidOperationError):
        return frame.with_columns(pl.col(name).cast(kind, strict=False))
    return frame


Change = Callable[[random.Random, bytes], bytes]


_BY_FORMAT: dict[str, Change] = {
    "chakra": changed_frames,
    "flight_recorder": changed_pickle,
    "live_log": changed_recording,
    "nsys": changed_tables,
    "operation_table": changed_columns,
    "pftrace": changed_message,
    "rocpd": changed_tables,
    "xplane": changed_message,
}


def changes_of(data: bytes, format_name: str) -> tuple[Change, ...]:
    """The ways to change a file, the one that knows its structure first."""
    if data[:1] in (b"{", b"["):
        return changed_json, changed_bytes, changed_lines
    return _BY_FORMAT.get(format_name, changed_lines), changed_bytes


def changed(source: random.Random, data: bytes, format_name: str) -> bytes:
    """A changed file: mostly in its structure, now and then in its bytes, at times in both."""
    known, *others = changes_of(data, format_name)
    chosen = known if source.random() < 0.7 else source.choice(others)
    data = chosen(source, data)
    if source.random() < 0.15:
        data = changed_bytes(source, data)
    return data[:LARGEST_INPUT]
