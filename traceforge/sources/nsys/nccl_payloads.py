"""What NCCL's own NVTX ranges say of its calls. In: rows of NVTX_EVENTS with payload. Out: values by their labels.

Idea: NCCL registers the layout of each payload with NVTX, and an export holds it (NVTX_PAYLOAD_SCHEMAS and _ENTRIES),
so values are found by their labels ("Message size [bytes]"), whatever NCCL's version. An export holds payloads as
bytes (`--include-blobs`), headed by domain, schema and size as four 64-bit numbers, or as JSON (`--include-json`).
Not handled: nested payloads, floating-point values, arrays. No public export holds payloads: fixtures are our own.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from traceforge.reading.table_file import TableFile

SIZE, COMMUNICATOR, PEER, RANKS, RANK = (
    "Message size [bytes]", "NCCL communicator ID", "Peer rank", "No. of ranks", "Rank",
)  # fmt: skip
Payload = dict[str, int]

_SCHEMAS, _ENTRIES = "NVTX_PAYLOAD_SCHEMAS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_HEADER = struct.Struct("<QQQQ")
_DOMAIN_BITS = 0xFFFFFFFF
# Types of nvToolsExtPayload.h that stand for integers, as struct writes them.
_FORMATS = {
    3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<q", 8: "<Q", 9: "<q", 10: "<Q", 11: "<b", 12: "<B", 13: "<h", 14: "<H",
    15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q",
}  # fmt: skip
_ENUMERATION = 1 << 24  # types from here on are schemas that a program registered; NCCL's are enumerations
_MOST_TEXT = 65_536


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A labelled integer: where it stands in a payload, and as what."""

    label: str
    offset: int
    format: struct.Struct


class PayloadReader:
    """Reads payloads by the layouts that an export holds.

    Attributes:
        layouts: by domain and schema.
    """

    def __init__(self, database: TableFile) -> None:
        self.layouts: dict[tuple[int, int], list[PayloadField]] = {}
        if not database.has(_ENTRIES, "domainId", "schemaId", "type", "name"):
            return
        columns = [database.integer(_ENTRIES, name) for name in ("domainId", "schemaId", "type", "offset")]
        label = database.text(_ENTRIES, "name")
        for domain, schema, kind, offset, name in database.rows(
            f"SELECT DISTINCT {', '.join(columns)}, {label} FROM {_ENTRIES}"
        ):
            form = "<i" if kind is not None and kind >= _ENUMERATION else _FORMATS.get(kind)
            if None not in (domain, schema, name) and form is not None and (offset or 0) >= 0:
                # The first entry's offset is left out.
                field = PayloadField(name, offset or 0, struct.Struct(form))
                self.layouts.setdefault((domain & _DOMAIN_BITS, schema), []).append(field)

    def read(self, data: bytes | None, text: str | None) -> Payload | None:
        """Values of a payload; None where it cannot be read.

        Args:
            data: its bytes, or None.
            text: the same as JSON, or None.
        """
        found = self._of_bytes(data) if data else None
        return found if found is not None else _of_text(text) if text else None

    def _of_bytes(self, data: bytes) -> Payload | None:
        if len(data) < _HEADER.size:
            return None
        domain, schema, size, _ = _HEADER.unpack_from(data)
        layout = self.layouts.get((domain & _DOMAIN_BITS, schema))
        if layout is None or size > len(data) - _HEADER.size:
            return None
        ends = min(len(data), _HEADER.size + size)
        return {
            field.label: int(field.format.unpack_from(data, _HEADER.size + field.offset)[0])
            for field in layout
            if _HEADER.size + field.offset + field.format.size <= ends
        }


def _of_text(text: str) -> Payload | None:
    if len(text) > _MOST_TEXT:
        return None
    try:
        said = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return None
    return {name: number for name, value in _flat(said).items() if (number := _integer(value)) is not None}


def _flat(said: Mapping[str, object]) -> dict[str, object]:
    """With the values of an object in the object, under their own labels."""
    found: dict[str, object] = {}
    for name, value in said.items():
        found |= {str(key): one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _integer(value: object) -> int | None:
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def are_described(database: TableFile) -> bool:
    """Whether an export holds layouts of payloads, so that these could have been exported as well."""
    return database.count(_SCHEMAS) > 0
