"""Which form of Chakra trace some bytes are. In: the first bytes of a file. Out: the name of the form, or None.

Idea: a binary trace has no mark, so its first frames are read as far as it takes to rule out chance: all of them must
be messages that end exactly where they should, of the schema's numbers and types, and a node among them must have a
readable name. Traces of older schemas count too, so that they can be refused with a reason.
Needs no library, because every file that a person gives is asked. Not handled: a file whose first node is damaged.
"""

import re

BINARY, DOCUMENTS, FEEDER = "chakra_et", "jsonizer_json", "feeder_json"

_BOM = b"\xef\xbb\xbf"
_FEEDER = re.compile(rb'"workload_graph"\s*:\s*\[')
_OTHER_JSON = re.compile(rb'"(?:nodes|traceEvents)"\s*:\s*\[')
_DOCUMENTS = re.compile(
    rb'"(?:ctrl_?[dD]eps|data_?[dD]eps|duration_?[mM]icros|start_?[tT]ime_?[mM]icros)"\s*:'
    rb'|"type"\s*:\s*"(?:INVALID|METADATA|COMP|COMM_\w+|MEM_\w+)_NODE"'
)
_MOST_FRAMES = 16
_NAME = 2
_HIGHEST_NUMBER = 20
_LENGTH, _FIXED = 2, {1: 8, 5: 4}
_LONGEST_VARINT = 10


def form_of(head: bytes) -> str | None:
    """`BINARY`, `DOCUMENTS`, `FEEDER` or None."""
    return form_of_json(head) or (BINARY if _is_binary(head) else None)


def form_of_json(head: bytes) -> str | None:
    """`DOCUMENTS`, `FEEDER` or None."""
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] != b"{" or text[1:].lstrip()[:1] not in (b'"', b"}"):
        return None
    if _FEEDER.search(text):
        return FEEDER
    return DOCUMENTS if _DOCUMENTS.search(text) and not _OTHER_JSON.search(text) else None


def _is_binary(head: bytes) -> bool:
    """Whether bytes begin with frames that hold nodes."""
    position, sound, named = 0, 0, False
    while position < len(head) and sound < _MOST_FRAMES:
        length, start = _varint(head, position)
        if start < 0 or start + length > len(head):
            break
        if length:
            name = _name_in(head[start : start + length])
            if name is None:
                break
            sound += 1
            named |= _is_readable(name)
        position = start + length
    return named and (sound > 1 or position == len(head))


def _name_in(message: bytes) -> bytes | None:
    """Field 2 of a message, empty if it is missing; None if the bytes are no message of the schema."""
    position, name = 0, b""
    while position < len(message):
        tag, position = _varint(message, position)
        number, wire = tag >> 3, tag & 7
        if position < 0 or not 1 <= number <= _HIGHEST_NUMBER:
            return None
        start = position
        if wire in (0, _LENGTH):
            value, start = _varint(message, position)
            position = start + value if wire == _LENGTH else start
        elif wire in _FIXED and number > _NAME:
            position += _FIXED[wire]
        else:
            return None
        if start < 0 or position > len(message):
            return None
        if number == _NAME and wire == _LENGTH:
            name = message[start:position]
    return name


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The varint at a place, and where it ends; -1 where it has no end."""
    value = 0
    for index, byte in enumerate(data[position : position + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    return 0, -1


def _is_readable(name: bytes) -> bool:
    """Whether a field 2 is text; that of metadata is a message, which begins with a control character."""
    try:
        return name.decode().isprintable() and bool(name)
    except UnicodeDecodeError:
        return False
