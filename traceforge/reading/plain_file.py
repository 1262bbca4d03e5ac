"""A file that a library must open by itself. In: a path. Out: a plain file: the one named, or an unpacked copy of it.

Idea: databases need a file that they can jump about in; what is compressed or in an archive is copied out for as long
as it is read. Not handled: limits of size, which the inflating and reading of files have.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.files import open_bytes
from traceforge.inflate import DAMAGE

_COPY_BYTES = 1024 * 1024


@contextmanager
def plain_file(path: Path, magic: bytes, suffix: str) -> Iterator[Path]:
    """The file itself where its first bytes are `magic`, else an unpacked copy, whose name ends in `suffix`.

    Raises:
        InputUnusableError: what is compressed is damaged; of a database with a hole nothing could be trusted.
    """
    if path.is_file():
        with path.open("rb") as raw:
            if raw.read(len(magic)) == magic:
                yield path
                return
    with tempfile.NamedTemporaryFile(prefix="traceforge-", suffix=suffix) as copy:
        for piece in _pieces(path):
            copy.write(piece)
        copy.flush()
        yield Path(copy.name)


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with open_bytes(path) as content:
            while piece := content.read(_COPY_BYTES):
                yield piece
    except DAMAGE as error:
        hint = "copy it again, or unpack it yourself and give what comes out"
        raise InputUnusableError(f"the compressed file is damaged: {error}", where=str(path), hint=hint) from error
