"""Damaged JSON text made sound where the meaning is beyond doubt. In: the text of one node. Out: better text.

Repairs what PyTorch's observer writes without escaping (a node's name, the backend and file of its kernel), and what
`reading.json_repair` does.
Not handled: missing brackets and commas (their node is lost).
"""

import re

from traceforge.reading import json_repair

# A name ends at the quote before the key that follows it: in 1.0.1 the id, later the caller. It reaches into no other
# object: else a node behind one that is damaged otherwise would become a part of its last name.
_UNESCAPED = re.compile(
    rb'("name": ?")((?:(?!\}\s*,\s*\{).)*?)(",\s*"(?:id|ctrl_deps|parent)":)'
    rb'|("name": ?"kernel_(?:backend|file)", ?"type": ?"string", ?"value": ?")(.*?)("\})',
    re.DOTALL,
)
_LOOSE_QUOTE_OR_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrtu])|(?<!\\)"')


def repair_text(text: bytes) -> bytes:
    """Text of a node with its unescaped texts escaped, and all else repaired that can be."""
    return json_repair.repair_text(_UNESCAPED.sub(_escaped, text)).text


def _escaped(match: re.Match[bytes]) -> bytes:
    before, content, behind = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
    return bytes(before + _LOOSE_QUOTE_OR_BACKSLASH.sub(rb"\\\g<0>", content) + behind)
