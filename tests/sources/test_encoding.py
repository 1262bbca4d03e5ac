"""Text that begins with a byte order mark is handed out as UTF-8, whatever the pieces in which it comes."""

from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from traceforge.reading.encoding import Utf8Stream, utf8_of

MARKED = {"utf-16": "", "utf-16-be": "\ufeff", "utf-8-sig": "", "utf-8": ""}


@given(text=st.text(max_size=40), encoding=st.sampled_from(sorted(MARKED)), size=st.integers(3, 9))
def test_a_stream_in_pieces_is_the_whole_text(text: str, encoding: str, size: int) -> None:
    if encoding == "utf-8" and text.startswith("\ufeff"):
        return
    data = (MARKED[encoding] + text).encode(encoding)
    stream = Utf8Stream(BytesIO(data))

    pieces = b"".join(iter(lambda: stream.read(size), b""))

    assert pieces == utf8_of(data) == text.encode()


@given(data=st.binary(max_size=40))
def test_bytes_that_are_no_text_end_in_something(data: bytes) -> None:
    utf8_of(data)
    utf8_of(b"\xff\xfe" + data).decode()
