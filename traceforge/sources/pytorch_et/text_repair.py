"""Damaged JSON text made sound where the meaning is beyond doubt. In: the text of one node. Out: better text.

Repairs what PyTorch's observer writes without escaping (a node's name, the backend and file of its kernel), bytes that
are no UTF-8, raw control characters, and the tokens NaN and Infinity (as null).
Not handled: missing brackets and commas (their node is lost).
"""

import re

# A name ends at the quote before the key that follows it: in 1.0.1 the id, later the caller.
_UNESCAPED = re.compile(
    rb'("name": ?")(.*?)(",\s*"(?:id|ctrl_deps|parent)":)'
    rb'|("name": ?"kernel_(?:backend|file)", ?"type": ?"string", ?"value": ?")(.*?)("\})',
    re.DOTALL,
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_A_NUMBER = re.compile(rb"(?<=[\s:,\[])[+-]?(?:nan|inf(?:inity)?)\b(?=\s*[,\]}])", re.IGNORECASE)
_LOOSE_QUOTE_OR_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrtu])|(?<!\\)"')


def repair_text(text: bytes) -> bytes:
    """Text of a node with its unescaped texts escaped, and U+FFFD for what is no UTF-8."""
    better = _UNESCAPED.sub(_escaped, text.decode("utf-8", "replace").encode())
    return _NOT_A_NUMBER.sub(b"null", _CONTROL.sub(b" ", better))


def _escaped(match: re.Match[bytes]) -> bytes:
    before, content, behind = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
    return bytes(before + _LOOSE_QUOTE_OR_BACKSLASH.sub(rb"\\\g<0>", content) + behind)
