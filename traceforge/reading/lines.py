"""Lines of bounded length. In: the bytes of a file. Out: its lines, None in the place of one that is too long."""

from collections.abc import Iterator

from traceforge.reading.encoding import Readable

LONGEST_LINE_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 256 * 1024


def bounded_lines(stream: Readable, most_bytes: int = LONGEST_LINE_BYTES) -> Iterator[bytes | None]:
    """All lines without their ends; of one that is longer than `most_bytes` nothing is kept in memory."""
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(_PIECE_BYTES):
        *ended, rest = piece.split(b"\n")
        for line in ended:
            pieces.append(line)
            yield b"".join(pieces) if size + len(line) <= most_bytes else None
            pieces, size = [], 0
        size += len(rest)
        pieces = [*pieces, rest] if size <= most_bytes else []
    if size:
        yield b"".join(pieces) if size <= most_bytes else None
