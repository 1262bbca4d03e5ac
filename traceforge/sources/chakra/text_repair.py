"""Damaged JSON text made sound where the meaning is beyond doubt. In: the text of one object. Out: better text.

Repairs bytes that are no UTF-8 and raw control characters. Not handled: quotes that are not escaped.
"""

import re

_CONTROL = re.compile(rb"[\x00-\x1f]")


def repair_text(text: bytes) -> bytes:
    """Text with U+FFFD for what is no UTF-8, and blanks for control characters."""
    return _CONTROL.sub(b" ", text.decode("utf-8", "replace").encode())
