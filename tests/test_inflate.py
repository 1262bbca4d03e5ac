"""Compressed files inflate, but traps do not."""

import gzip
import struct
import zlib
from pathlib import Path

import pytest
import zstandard

from traceforge import inflate
from traceforge.files import open_bytes, read_head
from traceforge.inflate import InflatesTooMuchError, check_inflated

KIB = 1024


@pytest.fixture(params=["gzip", "zstd"])
def compress(request: pytest.FixtureRequest) -> object:
    return gzip.compress if request.param == "gzip" else zstandard.compress


def _read_all(path: Path) -> int:
    count = 0
    with open_bytes(path) as stream:
        while piece := stream.read(64 * KIB):
            count += len(piece)
    return count


def test_what_is_small_or_inflates_as_traces_do_is_no_trap() -> None:
    check_inflated(inflate.LEAST_BYTES, 1)
    check_inflated(100 * inflate.LEAST_BYTES, inflate.LEAST_BYTES)

    with pytest.raises(InflatesTooMuchError, match=r"^10 bytes inflate to more than 500 times as many$"):
        check_inflated(inflate.LEAST_BYTES + 1, 10)


def test_a_trap_is_left_at_the_limit(tmp_path: Path, compress: object, monkeypatch: pytest.MonkeyPatch) -> None:
    # given 64 MiB of blanks, which compress 1,000 times, and a limit that a test can reach
    monkeypatch.setattr(inflate, "LEAST_BYTES", 1024 * KIB)
    path = tmp_path / "trap.json"
    path.write_bytes(compress(b" " * 64 * 1024 * KIB))  # type: ignore[operator]

    with pytest.raises(InflatesTooMuchError):
        _read_all(path)


def test_what_compresses_like_a_trace_is_read_whole(
    tmp_path: Path, compress: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "LEAST_BYTES", KIB)
    text = b",".join(b'{"ph": "X", "name": "op %d", "ts": %d}' % (n, n * n * 7919) for n in range(20_000))
    path = tmp_path / "trace.json"
    path.write_bytes(compress(text))  # type: ignore[operator]

    assert _read_all(path) == len(text)


def test_a_damaged_zstd_file_ends_at_the_damage(tmp_path: Path) -> None:
    whole = zstandard.compress(b"some text that is long enough " * 1000)
    path = tmp_path / "torn.zst"
    path.write_bytes(whole[:8] + b"\xff" * 20)

    with pytest.raises(EOFError):
        _read_all(path)


def test_zstd_frames_may_begin_with_what_is_to_be_skipped(tmp_path: Path) -> None:
    # given a file as `pzstd` writes it: before each frame one that says how long it is
    frames = [zstandard.compress(b"{" * 1000), zstandard.compress(b"}" * 1000)]
    path = tmp_path / "trace.json.zst"
    path.write_bytes(b"".join(b"\x50\x2a\x4d\x18\4\0\0\0" + len(one).to_bytes(4, "little") + one for one in frames))

    with open_bytes(path) as stream:
        assert stream.read(3000) == b"{" * 1000 + b"}" * 1000


def test_a_gzip_header_may_hold_64_kib_of_other_things(tmp_path: Path) -> None:
    # given a header whose extra field is as long as it can be, longer than what a reader looks at first
    text = b'{"traceEvents": []}'
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = deflate.compress(text) + deflate.flush()
    extra = b"tf" + struct.pack("<H", 65_531) + bytes(65_531)
    header = b"\x1f\x8b\x08\x04" + bytes(6) + struct.pack("<H", len(extra)) + extra
    (tmp_path / "a.json.gz").write_bytes(header + body + struct.pack("<II", zlib.crc32(text), len(text)))

    assert read_head(tmp_path / "a.json.gz") == text
    assert _read_all(tmp_path / "a.json.gz") == len(text)
