"""A file that fails costs itself alone, and one that was cut off gives way to the whole one."""

import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.given import rows_of
from tests.store.story_source import EVENTS, ISSUES, MAGIC, SOURCES, StorySource, ingest_story, write
from traceforge.errors import InputUnusableError
from traceforge.files import find_files
from traceforge.store.database import Store


def test_a_file_that_fails_leaves_nothing_of_itself_and_is_counted(tmp_path: Path) -> None:
    good = write(tmp_path / "a.json", "forward", rank=0)
    bad = write(tmp_path / "b.json", "forward", "backward", rank=1, breaks=True)
    store = Store(None, is_kept=False)

    result = ingest_story(store, [good, bad])

    assert [(path, str(error)) for path, error in result.failed] == [(bad, f"{bad}: ends in the middle of an event")]
    assert rows_of(store, SOURCES) == [(str(good), 0, None, "used", 1, 1)]
    assert rows_of(store, EVENTS) == [("forward",)]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(bad))]


def test_the_file_that_failed_is_named_whichever_finished_last(tmp_path: Path) -> None:
    #   a   |······reading······|·done      (a waits until b has been seen to fail)
    #   b   |·fails
    good, bad = (
        write(tmp_path / "a.json", "forward", rank=0),
        write(tmp_path / "b.json", rank=1, breaks=True),
    )
    b_was_seen = threading.Event()
    source = StorySource(lambda path: path == good and b_was_seen.wait(10))

    with ThreadPoolExecutor(2) as executor:
        result = ingest_story(
            Store(None, is_kept=False),
            [good, bad],
            source,
            executor=executor,
            on_file=lambda path: path == bad and b_was_seen.set(),
        )

    assert [path for path, _ in result.failed] == [bad]


def test_when_every_file_fails_the_first_failure_is_the_error(tmp_path: Path) -> None:
    bad = write(tmp_path / "a.json", "forward", breaks=True)

    with pytest.raises(InputUnusableError, match=r"a\.json: ends in the middle of an event"):
        ingest_story(Store(None, is_kept=False), [bad])


def test_a_file_that_vanished_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    good, gone = write(tmp_path / "a.json", "forward", rank=0), tmp_path / "gone.json"
    store = Store(None, is_kept=False)

    result = ingest_story(store, [good, gone])

    assert [(path, error.what) for path, error in result.failed] == [
        (gone, "cannot be read: No such file or directory")
    ]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(gone))]


def test_a_file_that_failed_once_and_is_whole_now_is_no_longer_an_issue(tmp_path: Path) -> None:
    good, bad = (
        write(tmp_path / "a.json", "forward", rank=0),
        write(tmp_path / "b.json", rank=1, breaks=True),
    )
    store = Store(None, is_kept=False)
    ingest_story(store, [good, bad])
    write(bad, "backward", rank=1)

    ingest_story(store, [good, bad])

    assert rows_of(store, ISSUES) == []
    assert rows_of(store, EVENTS) == [("forward",), ("backward",)]


def test_of_an_archive_that_was_cut_off_the_whole_members_are_read(tmp_path: Path) -> None:
    # job.tar   |a.json, whole|b.json, cut in the middle
    whole, cut = write(tmp_path / "a.json", "forward", rank=0), tmp_path / "b.json"
    cut.write_bytes(MAGIC + b" " * 50_000)
    archive = tmp_path / "job.tar"
    with tarfile.open(archive, "w") as opened:
        for file in (whole, cut):
            opened.add(file, file.name)
    archive.write_bytes(archive.read_bytes()[:20_000])
    store = Store(None, is_kept=False)

    result = ingest_story(store, find_files([archive]))

    assert result.read == (archive / "a.json",)
    assert [path for path, _ in result.failed] == [archive / "b.json"]
    assert rows_of(store, ISSUES) == [
        (None, "archive_damaged", "error", 1, str(archive)),
        (None, "file_failed", "error", 1, str(archive / "b.json")),
    ]


def _torn(path: Path, code: str, *names: str) -> Path:
    """A file whose reader finds a damage of some code."""
    return write(path, *names, rank=0, lost=1, code=code)


def test_a_whole_file_takes_the_place_of_the_one_that_was_cut_off(tmp_path: Path) -> None:
    # given a file that was read while it was still being copied
    path = tmp_path / "a.json"
    store = Store(None, is_kept=False)
    ingest_story(store, [_torn(path, "story_truncated", "forward")])
    # when it is there as a whole
    ingest_story(store, [write(path, "forward", "backward", "step", "more", rank=0)])
    # then nothing of the former is left
    assert rows_of(store, SOURCES) == [(str(path), 0, None, "used", 4, 4)]
    assert rows_of(store, EVENTS) == [("forward",), ("backward",), ("step",), ("more",)]
    assert rows_of(store, ISSUES) == []


@pytest.mark.parametrize(
    ("code", "names"),
    [("story_odd", ("a", "b", "c", "d", "e", "f")), ("story_truncated", ())],
    ids=["the former was whole", "the new one is smaller"],
)
def test_no_other_file_of_the_same_name_is_replaced(tmp_path: Path, code: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "a.json"
    store = Store(None, is_kept=False)
    ingest_story(store, [_torn(path, code, "forward")])

    ingest_story(store, [write(path, *names, rank=0)])

    assert len(rows_of(store, SOURCES)) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_whatever_a_reader_raises_costs_its_file_alone(tmp_path: Path, workers: int) -> None:
    # given the second of three files, whose reader fails with an error that nobody foresaw
    files = [write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]

    def fail(path: Path) -> None:
        if path.name == "b.json":
            raise ZeroDivisionError("by nothing")

    store = Store(None, is_kept=False)
    # when
    with ThreadPoolExecutor(workers or 1) as pool:
        result = ingest_story(store, files, StorySource(fail), executor=pool if workers else None)
    # then
    assert result.read == (files[0], files[2])
    assert [(path, error.what) for path, error in result.failed] == [
        (files[1], "its reader failed: ZeroDivisionError: by nothing")
    ]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(files[1]))]
    assert rows_of(store, EVENTS) == [("forward",), ("forward",)]
