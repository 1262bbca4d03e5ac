"""Paths as people type them become files, bytes and hashes."""

import gzip
import hashlib
from pathlib import Path

import pytest

from traceforge.errors import InputUnusableError
from traceforge.files import content_hash, find_files, open_bytes, read_head


def _write(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_folder_gives_all_files_below_it_in_order(tmp_path: Path) -> None:
    # trace/ ── b.json
    #        ├─ a.json
    #        └─ node1/ ── c.json
    files = [_write(tmp_path / name) for name in ("b.json", "a.json", "node1/c.json")]

    assert find_files([tmp_path]) == [files[1], files[0], files[2]]


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


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError) as caught:
        find_files([tmp_path / "gone"])

    assert str(caught.value) == f"{tmp_path / 'gone'}: no such file or folder"


def test_gzip_is_known_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    packed = _write(tmp_path / "packed.json", gzip.compress(b"one trace"))
    plain = _write(tmp_path / "plain.json.gz", b"one trace")

    for path in (packed, plain):
        with open_bytes(path) as stream:
            assert stream.read() == b"one trace"


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
