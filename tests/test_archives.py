"""Whatever state an archive is in, each of its members is read or counted."""

import gzip
import io
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from traceforge.archives import archive_at, open_member
from traceforge.files import find_files, open_bytes, read_head

BLOCK = 512
Pack = Callable[[bytes], Path]


def tar(members: Sequence[tuple[str, bytes]]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in members:
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return content.getvalue()


@pytest.fixture(params=[bytes, gzip.compress], ids=["plain", "gzip"])
def pack(request: pytest.FixtureRequest, tmp_path: Path) -> Pack:
    def write(data: bytes) -> Path:
        path = tmp_path / "job.tar"
        path.write_bytes(request.param(data))
        return path

    return write


def contents(path: Path) -> dict[str, bytes]:
    found = {}
    for member in archive_at(path).members:
        with open_member(path, member.path) as content:
            found[str(member.path)] = content.read()
        assert len(found[str(member.path)]) == member.size_bytes
    return found


THREE = [("a", b"1" * 700), ("b", b"2" * 700), ("c", b"3" * 700)]
SIZE = BLOCK + 2 * BLOCK  # of a member: header and content


def test_a_sound_archive_gives_all_members_and_no_remark(pack: Pack) -> None:
    path = pack(tar(THREE))

    assert contents(path) == dict(THREE)
    archive = archive_at(path)
    assert (archive.damage, archive.skipped_bytes, archive.unread) == (None, 0, Counter())


def test_archives_joined_one_behind_the_other_are_one(pack: Pack) -> None:
    path = pack(tar(THREE[:1]) + tar(THREE[1:]))

    assert contents(path) == dict(THREE)
    assert archive_at(path).damage is None


def test_a_damaged_header_costs_its_member_alone_and_is_counted(pack: Pack) -> None:
    data = bytearray(tar(THREE))
    data[SIZE : SIZE + 100] = b"\xff" * 100
    path = pack(bytes(data))

    assert contents(path) == {"a": THREE[0][1], "c": THREE[2][1]}
    assert archive_at(path).skipped_bytes == SIZE


def test_an_archive_cut_between_members_says_so(pack: Pack) -> None:
    path = pack(tar(THREE)[: 2 * SIZE])

    assert contents(path) == dict(THREE[:2])
    assert archive_at(path).damage == "it ends without the mark of its end"


def test_of_a_member_that_is_cut_off_there_is_what_precedes_the_cut(pack: Pack) -> None:
    path = pack(tar(THREE)[: 2 * SIZE + BLOCK + 100])

    assert contents(path) == {**dict(THREE[:2]), "c": b"3" * 100}
    assert archive_at(path).damage


def test_members_of_one_name_are_files_of_their_own(pack: Pack) -> None:
    # given a name that stands there twice, and others that lead to the same place
    path = pack(tar([("x/a.json", b"1"), ("x/a.json", b"2"), ("/x/a.json", b"3"), ("x/../x/./a.json", b"4")]))

    assert contents(path) == {"x/a.json": b"1", "x/a.json#2": b"2", "x/a.json#3": b"3", "x/x/a.json": b"4"}
    assert len(find_files([path])) == 4


def test_links_inside_are_counted(pack: Pack) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        pipe = tarfile.TarInfo("pipe")
        pipe.type = tarfile.FIFOTYPE
        archive.addfile(pipe)
    path = pack(content.getvalue())

    assert archive_at(path).unread == {"links": 1, "devices": 1}


def test_an_archive_is_read_once_for_all_that_is_asked_of_its_members(
    pack: Pack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = pack(tar(THREE))
    members = find_files([path])
    monkeypatch.setattr("traceforge.archives._open", lambda _path: pytest.fail("read again"))

    assert [read_head(member) for member in members] == [data for _, data in THREE]


def test_a_compressed_member_is_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "job.tar"
    path.write_bytes(tar([("a.gz", gzip.compress(b"text"))]))

    with open_bytes(path / "a.gz") as content:
        assert content.read() == b"text"
