"""Text that a shell or an editor encoded anew. In: bytes that may begin with a byte order mark. Out: UTF-8 without one.

Idea: PowerShell's `>` writes UTF-16, spreadsheets write UTF-8 with a mark; what the mark says is done. Bytes that are
no characters become replacement characters. Not handled: UTF-16 without a mark.
"""

import codecs
from typing import Protocol

_UTF_8 = codecs.BOM_UTF8
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Readable(Protocol):
    """Hands out bytes, and none at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""


def utf8_of(data: bytes) -> bytes:
    """The whole text, or its beginning, as UTF-8 without a mark."""
    if data.startswith(_UTF_16):
        return codecs.getincrementaldecoder("utf-16")("replace").decode(data).encode()
    return data.removeprefix(_UTF_8)


class Utf8Stream:
    """The bytes of another stream as UTF-8 without a mark."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._is_started = False

    def read(self, size: int, /) -> bytes:
        """The next bytes: of UTF-16 about as many as were asked for; empty at the end."""
        piece = self._stream.read(size)
        is_end = not piece
        if not self._is_started:
            self._is_started = True
            if piece.startswith(_UTF_16):
                self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
            piece = piece.removeprefix(_UTF_8)
        found = piece if self._decoder is None else self._decoder.decode(piece, final=is_end).encode()
        # A piece may hold the mark, or half a character, and nothing else.
        return found if found or is_end else self.read(size)
