"""Files become facts once, whole, or not at all; whatever is left out is counted."""

import errno
import gzip
import json
import tarfile
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.given import built, by_kind, rows_of
from traceforge.api import sources
from traceforge.errors import InputUnusableError, NotATraceError
from traceforge.files import find_files, open_bytes
from traceforge.records import Batch, Issue, ReadOptions, SourceSummary
from traceforge.store import spool
from traceforge.store.database import Store
from traceforge.store.ingest import IngestResult, ingest_files
from traceforge.store.spool import kind_of

MAGIC = b"STORY"

SOURCES = "SELECT path, rank, host, status, event_count, stored_count FROM meta.source ORDER BY source_id"
EVENTS = "SELECT name FROM raw.event ORDER BY source_id, event_id"
ISSUES = "SELECT source_id, code, severity, count, first_at FROM meta.issue WHERE stage = 'ingest' ORDER BY ALL"


class StorySource:
    """A tiny format: `STORY`, then JSON with a rank and events of (name, start, end)."""

    name = "kineto"

    def __init__(self, before_read: Callable[[Path], None] = lambda _path: None) -> None:
        self.reads: list[str] = []
        self._before_read = before_read

    def recognises(self, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def read(self, path: Path, emit: Callable[[Batch], None], _options: ReadOptions) -> SourceSummary:
        self.reads.append(path.name)
        self._before_read(path)
        with open_bytes(path) as stream:
            story = json.loads(stream.read().removeprefix(MAGIC))
        events = [
            {"event_id": n, "phase": "X", "category": "user_annotation", "name": name, "track_id": 1,
             "raw_start_ns": start, "duration_ns": end - start}
            for n, (name, start, end) in enumerate(story["events"])
        ]  # fmt: skip
        for event in events:
            for table, rows in by_kind(pl.DataFrame([event])).items():
                emit(Batch(table, rows))
        emit(Batch("raw.profile", pl.DataFrame({"base_time_ns": [0], "metadata": ["{}"]})))
        if story.get("breaks"):
            raise InputUnusableError("ends in the middle of an event", where=str(path))
        lost = story.get("lost", 0)
        issues = (
            (Issue(story.get("code", "story_torn"), "warning", lost, "byte 9", "a line was torn", lost_events=lost),)
            if lost
            else ()
        )
        return SourceSummary(
            "kineto", story.get("rank"), None, story.get("world_size"), len(events) + lost, len(events), issues
        )


def _write(path: Path, *names: str, **said: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [(name, 100 * n + 1, 100 * n + 90) for n, name in enumerate(names)]
    path.write_bytes(MAGIC + json.dumps({"events": events, **said}).encode())
    return path


def _ingest(
    store: Store,
    files: list[Path],
    source: StorySource | None = None,
    *,
    run_name: str = "night",
    executor: Executor | None = None,
    on_file: Callable[[Path], None] = lambda _path: None,
) -> IngestResult:
    return ingest_files(
        store,
        files,
        {"kineto": source or StorySource()},
        run_name=run_name,
        executor=executor,
        options=ReadOptions(),
        on_file=on_file,
    )


def test_files_become_a_run_with_their_sources_and_events(tmp_path: Path) -> None:
    files = [
        _write(tmp_path / "a.json", "ProfilerStep#1", rank=0, world_size=2),
        _write(tmp_path / "b.json", "ProfilerStep#1", "forward", rank=1, world_size=2),
    ]
    store = Store(None, is_kept=False)

    result = _ingest(store, files)

    assert (result.run_id, result.read) == (0, tuple(files))
    assert rows_of(store, "SELECT run_id, run_name, world_size FROM meta.run") == [(0, "night", 2)]
    assert rows_of(store, SOURCES) == [
        (str(files[0]), 0, None, "used", 1, 1),
        (str(files[1]), 1, None, "used", 2, 2),
    ]
    assert rows_of(store, EVENTS) == [("ProfilerStep#1",), ("ProfilerStep#1",), ("forward",)]


def test_a_file_that_is_known_is_not_read_again_under_any_name(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.json", "forward", rank=0)
    source, store = StorySource(), Store(None, is_kept=False)
    _ingest(store, [file], source)
    moved = file.rename(tmp_path / "moved.json")

    result = _ingest(store, [moved], source)

    assert source.reads == ["a.json"]
    assert (result.read, result.unchanged) == ((), (moved,))
    assert rows_of(store, EVENTS) == [("forward",)]


def test_another_run_reads_the_same_file_for_itself(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.json", "forward", rank=0)
    store = Store(None, is_kept=False)

    runs = [_ingest(store, [file], run_name=name).run_id for name in ("monday", "tuesday", "monday")]

    assert runs == [0, 1, 0]
    assert rows_of(store, "SELECT run_id, rank FROM meta.source ORDER BY ALL") == [(0, 0), (1, 0)]


def test_a_file_that_fails_leaves_nothing_of_itself_and_is_counted(tmp_path: Path) -> None:
    good = _write(tmp_path / "a.json", "forward", rank=0)
    bad = _write(tmp_path / "b.json", "forward", "backward", rank=1, breaks=True)
    store = Store(None, is_kept=False)

    result = _ingest(store, [good, bad])

    assert [(path, str(error)) for path, error in result.failed] == [(bad, f"{bad}: ends in the middle of an event")]
    assert rows_of(store, SOURCES) == [(str(good), 0, None, "used", 1, 1)]
    assert rows_of(store, EVENTS) == [("forward",)]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(bad))]


def test_the_file_that_failed_is_named_whichever_finished_last(tmp_path: Path) -> None:
    #   a   |······reading······|·done      (a waits until b has been seen to fail)
    #   b   |·fails
    good, bad = _write(tmp_path / "a.json", "forward", rank=0), _write(tmp_path / "b.json", rank=1, breaks=True)
    b_was_seen = threading.Event()
    source = StorySource(lambda path: path == good and b_was_seen.wait(10))

    with ThreadPoolExecutor(2) as executor:
        result = _ingest(
            Store(None, is_kept=False),
            [good, bad],
            source,
            executor=executor,
            on_file=lambda path: path == bad and b_was_seen.set(),
        )

    assert [path for path, _ in result.failed] == [bad]


def test_when_every_file_fails_the_first_failure_is_the_error(tmp_path: Path) -> None:
    bad = _write(tmp_path / "a.json", "forward", breaks=True)

    with pytest.raises(InputUnusableError, match=r"a\.json: ends in the middle of an event"):
        _ingest(Store(None, is_kept=False), [bad])


def test_a_file_that_vanished_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    good, gone = _write(tmp_path / "a.json", "forward", rank=0), tmp_path / "gone.json"
    store = Store(None, is_kept=False)

    result = _ingest(store, [good, gone])

    assert [(path, error.what) for path, error in result.failed] == [
        (gone, "cannot be read: No such file or directory")
    ]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(gone))]


def test_files_are_noted_under_the_names_that_the_caller_shows(tmp_path: Path) -> None:
    # A database that travels need not tell whose home folder the traces lay in.
    good, bad = _write(tmp_path / "a.json", "forward", rank=0), _write(tmp_path / "b.json", rank=1, breaks=True)
    store = Store(None, is_kept=False)

    ingest_files(
        store,
        [good, bad],
        {"kineto": StorySource()},
        run_name="night",
        executor=None,
        options=ReadOptions(),
        shown=lambda path: f"job/{path.name}",
    )

    assert rows_of(store, "SELECT path FROM meta.source") == [("job/a.json",)]
    assert rows_of(store, "SELECT first_at FROM meta.issue") == [("job/b.json",)]


def test_files_of_no_known_kind_are_counted_together(tmp_path: Path) -> None:
    good = _write(tmp_path / "a.json", "forward", rank=0)
    notes = [tmp_path / "notes.txt", tmp_path / "readme.md"]
    for path in notes:
        path.write_text(f"about {path.name}")
    store = Store(None, is_kept=False)

    result = _ingest(store, [good, *notes])

    assert result.unrecognised == tuple(notes)
    assert rows_of(store, ISSUES) == [(None, "file_not_recognised", "info", 2, str(notes[0]))]


def test_the_same_folder_again_does_not_count_its_strangers_twice(tmp_path: Path) -> None:
    good, note = _write(tmp_path / "a.json", "forward", rank=0), tmp_path / "notes.txt"
    note.write_text("notes")
    store = Store(None, is_kept=False)

    for _ in range(2):
        _ingest(store, [good, note])

    assert rows_of(store, ISSUES) == [(None, "file_not_recognised", "info", 1, str(note))]


def test_adding_a_second_folder_keeps_what_was_noted_of_the_first(tmp_path: Path) -> None:
    monday = [_write(tmp_path / "monday/a.json", "forward", rank=0), _write(tmp_path / "monday/b.json", breaks=True)]
    tuesday = [_write(tmp_path / "tuesday/a.json", "backward", rank=1)]
    store = Store(None, is_kept=False)

    _ingest(store, monday)
    _ingest(store, tuesday)

    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(monday[1]))]


def test_a_file_that_failed_once_and_is_whole_now_is_no_longer_an_issue(tmp_path: Path) -> None:
    good, bad = _write(tmp_path / "a.json", "forward", rank=0), _write(tmp_path / "b.json", rank=1, breaks=True)
    store = Store(None, is_kept=False)
    _ingest(store, [good, bad])
    _write(bad, "backward", rank=1)

    _ingest(store, [good, bad])

    assert rows_of(store, ISSUES) == []
    assert rows_of(store, EVENTS) == [("forward",), ("backward",)]


def test_no_trace_at_all_is_an_error_that_names_files_and_leaves_no_run(tmp_path: Path) -> None:
    notes = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    for path in notes:
        path.write_text("notes")
    store = Store(None, is_kept=False)

    with pytest.raises(NotATraceError) as caught:
        _ingest(store, notes)

    assert str(caught.value) == (
        "a.txt, b.txt, c.txt …: no trace of a known kind among 4 files\n\nhint: give the files that torch.profiler "
        "wrote (…pt.trace.json or .json.gz), or the folder that holds them"
    )
    assert rows_of(store, "SELECT * FROM meta.run") == []


def test_no_file_at_all_is_said_so() -> None:
    with pytest.raises(NotATraceError, match=r"^there are no files"):
        _ingest(Store(None, is_kept=False), [])


def test_rows_read_are_rows_stored_plus_rows_counted(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.json", "forward", "backward", rank=0, lost=5)
    store = Store(None, is_kept=False)

    _ingest(store, [file])

    assert rows_of(store, "SELECT event_count, stored_count FROM meta.source") == [(7, 2)]
    assert rows_of(store, "SELECT source_id, code, lost_events FROM meta.issue") == [(0, "story_torn", 5)]


def test_a_file_without_any_event_is_kept_as_empty(tmp_path: Path) -> None:
    store = Store(None, is_kept=False)

    _ingest(store, [_write(tmp_path / "a.json", rank=0)])

    assert rows_of(store, "SELECT rank, status FROM meta.source") == [(0, "empty")]


class TestInterruption:
    """An ingest that is cut off leaves whole files; the next one brings the rest."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[Path]:
        """Four files of two events each."""
        return [_write(tmp_path / f"rank{n}.json", f"forward {n}", f"backward {n}") for n in range(4)]

    @pytest.fixture
    def store(self, files: list[Path]) -> Store:
        """A store whose ingest was interrupted after its second file."""
        store, seen = Store(None, is_kept=False), []

        def interrupt(path: Path) -> None:
            seen.append(path)
            if len(seen) == 3:
                raise KeyboardInterrupt

        with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
            _ingest(store, files, executor=executor, on_file=interrupt)
        return store

    def test_what_is_there_is_whole(self, store: Store) -> None:
        counts = "SELECT s.rank, COUNT(*) FROM meta.source AS s JOIN raw.event USING (source_id) GROUP BY ALL"

        found = rows_of(store, counts)

        assert len(found) < 4
        assert {count for _, count in found} <= {2}

    def test_running_again_finishes(self, store: Store, files: list[Path]) -> None:
        there = {path for (path,) in rows_of(store, "SELECT path FROM meta.source")}

        result = _ingest(store, files)

        assert {str(path) for path in result.unchanged} == there
        assert rows_of(store, "SELECT name FROM raw.event ORDER BY name") == [
            *((f"backward {n}",) for n in range(4)),
            *((f"forward {n}",) for n in range(4)),
        ]


def test_what_is_still_waiting_when_an_ingest_is_interrupted_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    #   a   |·read·|         its end interrupts the ingest
    #   b          |·read, until the ingest is over·|
    #   c                                            (never)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    files = [_write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]
    is_over = threading.Event()
    source = StorySource(lambda path: path.name == "b.json" and is_over.wait(0.5))

    def interrupt(_path: Path) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(KeyboardInterrupt):
            _ingest(Store(None, is_kept=False), files, source, executor=executor, on_file=interrupt)
        is_over.set()

    assert "c.json" not in source.reads
    assert list((tmp_path / "spool").iterdir()) == []


def test_an_ingest_ends_though_all_readers_found_the_disk_full_at_once(tmp_path: Path) -> None:
    class Full(Executor):
        def submit(self, *_: object, **__: object) -> Future[Any]:
            answer: Future[Any] = Future()
            answer.set_exception(OSError(errno.ENOSPC, "No space left on device"))
            return answer

    files = [_write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]

    with pytest.raises(OSError, match="No space left"):
        _ingest(Store(None, is_kept=False), files, executor=Full())


def test_no_more_files_are_read_ahead_than_may_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    #   a   |·read, until two others have been seen·|
    #   b   |·read·|    c   |·read·|    d           (not before a has been handed over)
    monkeypatch.setattr(spool, "_MOST_AHEAD", 3)
    files = [_write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abcd")]
    others_were_seen, seen = threading.Event(), list[str]()
    source = StorySource(lambda path: path.name == "a.json" and others_were_seen.wait(10))

    def note(path: Path) -> None:
        seen.append(path.name)
        if len(seen) == 2:
            assert "d.json" not in source.reads
            others_were_seen.set()

    with ThreadPoolExecutor(4) as executor:
        result = _ingest(Store(None, is_kept=False), files, source, executor=executor, on_file=note)

    assert sorted(seen[:2]) == ["b.json", "c.json"]
    assert result.read == tuple(files)


def test_the_order_of_paths_does_not_matter_to_the_analysis(tmp_path: Path) -> None:
    files = [_write(tmp_path / f"rank{n}.json", "ProfilerStep#1", "forward", "ProfilerStep#2") for n in range(3)]
    tables = ("align.rank", "align.step", "timeline.iteration", "timeline.phase", "timeline.segment")

    answers = []
    for order in (files, files[::-1]):
        store = Store(None, is_kept=False)
        _ingest(store, order)
        built(store, "timeline")
        answers.append([rows_of(store, f"SELECT * FROM {table} ORDER BY ALL") for table in tables])

    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 3


def test_of_an_archive_that_was_cut_off_the_whole_members_are_read(tmp_path: Path) -> None:
    # job.tar   |a.json, whole|b.json, cut in the middle
    whole, cut = _write(tmp_path / "a.json", "forward", rank=0), tmp_path / "b.json"
    cut.write_bytes(MAGIC + b" " * 50_000)
    archive = tmp_path / "job.tar"
    with tarfile.open(archive, "w") as opened:
        for file in (whole, cut):
            opened.add(file, file.name)
    archive.write_bytes(archive.read_bytes()[:20_000])
    store = Store(None, is_kept=False)

    result = _ingest(store, find_files([archive]))

    assert result.read == (archive / "a.json",)
    assert [path for path, _ in result.failed] == [archive / "b.json"]
    assert rows_of(store, ISSUES) == [
        (None, "archive_damaged", "error", 1, str(archive)),
        (None, "file_failed", "error", 1, str(archive / "b.json")),
    ]


def _torn(path: Path, code: str, *names: str) -> Path:
    """A file whose reader finds a damage of some code."""
    return _write(path, *names, rank=0, lost=1, code=code)


def test_a_whole_file_takes_the_place_of_the_one_that_was_cut_off(tmp_path: Path) -> None:
    # given a file that was read while it was still being copied
    path = tmp_path / "a.json"
    store = Store(None, is_kept=False)
    _ingest(store, [_torn(path, "story_truncated", "forward")])
    # when it is there as a whole
    _ingest(store, [_write(path, "forward", "backward", "step", "more", rank=0)])
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
    _ingest(store, [_torn(path, code, "forward")])

    _ingest(store, [_write(path, *names, rank=0)])

    assert len(rows_of(store, SOURCES)) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_whatever_a_reader_raises_costs_its_file_alone(tmp_path: Path, workers: int) -> None:
    # given the second of three files, whose reader fails with an error that nobody foresaw
    files = [_write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]

    def fail(path: Path) -> None:
        if path.name == "b.json":
            raise ZeroDivisionError("by nothing")

    store = Store(None, is_kept=False)
    # when
    with ThreadPoolExecutor(workers or 1) as pool:
        result = _ingest(store, files, StorySource(fail), executor=pool if workers else None)
    # then
    assert result.read == (files[0], files[2])
    assert [(path, error.what) for path, error in result.failed] == [
        (files[1], "its reader failed: ZeroDivisionError: by nothing")
    ]
    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(files[1]))]
    assert rows_of(store, EVENTS) == [("forward",), ("forward",)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_log_whose_first_known_line_stands_far_behind_is_found(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    # given the output of a training that says much before NCCL does
    text = b"".join(b"epoch %d of a training that prints a line like this, loss 0.%d\n" % (n, n) for n in range(20_000))
    (tmp_path / "train.log").write_bytes(pack(text + b"host1:100:101 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"))
    (tmp_path / "other.log").write_bytes(pack(text))

    assert kind_of(tmp_path / "train.log", sources()) == "nccl_log"
    assert kind_of(tmp_path / "other.log", sources()) is None
