"""Paths as people type them become files, bytes and hashes."""

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from traceforge.errors import InputUnusableError
from traceforge.files import content_hash, find_files, find_special, open_bytes, read_head, shown_names, size_bytes


def _write(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _archive(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def _content(path: Path) -> bytes:
    with open_bytes(path) as stream:
        return stream.read()


def test_a_folder_gives_all_files_below_it_in_order(tmp_path: Path) -> None:
    # trace/ ── b.json
    #        ├─ a.json
    #        └─ node1/ ── c.json
    files = [_write(tmp_path / name) for name in ("b.json", "a.json", "node1/c.json")]

    assert find_files([tmp_path]) == [files[1], files[0], files[2]]


def test_files_come_in_the_order_in_which_people_count(tmp_path: Path) -> None:
    names = [
        "rank2.json",
        "rank10.json",
        "rank10b.json",
        "rank010.json",
        "rank1.json",
        "rank.json",
        "node3/a",
        "node20/a",
    ]
    for name in names:
        _write(tmp_path / name)

    found = [str(path.relative_to(tmp_path)) for path in find_files([tmp_path])]

    assert found == [
        "node3/a", "node20/a",
        "rank1.json", "rank2.json", "rank010.json", "rank10.json", "rank10b.json", "rank.json",
    ]  # fmt: skip


def test_the_order_in_which_paths_are_typed_does_not_matter(tmp_path: Path) -> None:
    first, second = _write(tmp_path / "a"), _write(tmp_path / "b")

    assert find_files([second, first]) == find_files([first, second]) == [first, second]


def test_hidden_files_and_folders_stay_out_unless_named(tmp_path: Path) -> None:
    hidden = _write(tmp_path / ".hidden")
    _write(tmp_path / ".git/config")

    assert find_files([tmp_path]) == []
    assert find_files([hidden]) == [hidden]


def test_a_file_named_twice_or_reached_through_a_link_is_taken_once(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.json")
    (tmp_path / "link.json").symlink_to(file)

    assert find_files([tmp_path, file, tmp_path / "link.json"]) == [file]


def test_links_to_folders_are_not_followed_so_that_loops_end(tmp_path: Path) -> None:
    file = _write(tmp_path / "inner/a.json")
    (tmp_path / "inner/loop").symlink_to(tmp_path, target_is_directory=True)

    assert find_files([tmp_path]) == [file]


def test_a_link_that_leads_nowhere_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "dangling.json").symlink_to(tmp_path / "gone.json")

    assert find_files([tmp_path]) == []


def test_what_is_no_regular_file_is_passed_over_and_named(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.json")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder").symlink_to(tmp_path)

    assert find_files([tmp_path]) == [file]
    assert find_special([tmp_path]) == [
        (tmp_path / "dangling", "link to nothing"),
        (tmp_path / "null", "device"),
        (tmp_path / "pipe", "named pipe"),
    ]


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError) as caught:
        find_files([tmp_path / "gone"])

    assert str(caught.value).startswith(f"{tmp_path / 'gone'}: no such file or folder\n")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes], ids=["gzip", "zstd", "plain"])
def test_compression_is_known_by_the_bytes_not_by_the_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    for name in ("trace.json", "trace.json.gz", "trace.zst"):
        assert _content(_write(tmp_path / name, pack(b"one trace"))) == b"one trace"


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_is_a_folder_of_its_members(tmp_path: Path, mode: str) -> None:
    archive = _archive(tmp_path / "job", {"b.json": b"bb", "node1/a.json": gzip.compress(b"a"), ".hidden": b"x"}, mode)

    files = find_files([tmp_path])

    assert files == [archive / "b.json", archive / "node1/a.json"]
    assert [_content(file) for file in files] == [b"bb", b"a"]
    assert [size_bytes(file) for file in files] == [2, len(gzip.compress(b"a"))]
    assert content_hash(files[0]) == hashlib.sha256(b"bb").hexdigest()


def test_members_that_point_out_of_the_archive_stay_inside(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "job.tar", {"../../etc/trace.json": b"a", "/abs/trace.json": b"b"})

    files = find_files([archive])

    assert files == [archive / "abs/trace.json", archive / "etc/trace.json"]
    assert [_content(file) for file in files] == [b"b", b"a"]


def test_a_member_that_is_not_there_is_named(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "job.tar", {"a.json": b"a"})

    with pytest.raises(InputUnusableError) as caught:
        open_bytes(archive / "b.json")

    assert str(caught.value) == f"{archive / 'b.json'}: the archive has no such member"


def test_a_file_is_shown_from_the_folder_that_was_given_on(tmp_path: Path) -> None:
    file = _write(tmp_path / "job/node1/a.json")

    assert shown_names([tmp_path / "job"])(file) == "job/node1/a.json"
    assert shown_names([file])(file) == "node1/a.json"


def test_the_head_of_a_long_file_is_256_kib_after_decompression(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2_000
    packed = _write(tmp_path / "long", gzip.compress(content))

    assert read_head(packed) == content[: 256 * 1024]


def test_the_head_of_a_damaged_file_is_what_precedes_the_damage(tmp_path: Path) -> None:
    # 200 000 bytes, stored uncompressed; the file ends after half of them.
    content = bytes(range(250)) * 800
    packed = gzip.compress(content, compresslevel=0)
    damaged = _write(tmp_path / "cut.gz", packed[: len(packed) // 2])

    head = read_head(damaged)

    assert len(head) >= 65_536
    assert content.startswith(head)


def test_a_folder_cannot_be_opened_as_a_file_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError) as caught:
        open_bytes(tmp_path)

    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory\n\nhint: check the file's permissions"


def test_the_content_hash_is_that_of_the_bytes_on_disk(tmp_path: Path) -> None:
    packed = gzip.compress(b"one trace")

    assert content_hash(_write(tmp_path / "a", packed)) == hashlib.sha256(packed).hexdigest()
