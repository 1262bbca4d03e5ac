"""Files become facts once, whole, or not at all; whatever is left out is counted."""

import errno
import gzip
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.given import built, rows_of
from tests.store.story_source import EVENTS, ISSUES, SOURCES, StorySource, ingest_story, write
from traceforge.api import sources
from traceforge.errors import NotATraceError
from traceforge.records import ReadOptions
from traceforge.store import spool
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.spool import kind_of


def test_files_become_a_run_with_their_sources_and_events(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a.json", "ProfilerStep#1", rank=0, world_size=2),
        write(tmp_path / "b.json", "ProfilerStep#1", "forward", rank=1, world_size=2),
    ]
    store = Store(None, is_kept=False)

    result = ingest_story(store, files)

    assert (result.run_id, result.read) == (0, tuple(files))
    assert rows_of(store, "SELECT run_id, run_name, world_size FROM meta.run") == [(0, "night", 2)]
    assert rows_of(store, SOURCES) == [
        (str(files[0]), 0, None, "used", 1, 1),
        (str(files[1]), 1, None, "used", 2, 2),
    ]
    assert rows_of(store, EVENTS) == [("ProfilerStep#1",), ("ProfilerStep#1",), ("forward",)]


def test_a_file_that_is_known_is_not_read_again_under_any_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", "forward", rank=0)
    source, store = StorySource(), Store(None, is_kept=False)
    ingest_story(store, [file], source)
    moved = file.rename(tmp_path / "moved.json")

    result = ingest_story(store, [moved], source)

    assert source.reads == ["a.json"]
    assert (result.read, result.unchanged) == ((), (moved,))
    assert rows_of(store, EVENTS) == [("forward",)]


def test_another_run_reads_the_same_file_for_itself(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", "forward", rank=0)
    store = Store(None, is_kept=False)

    runs = [ingest_story(store, [file], run_name=name).run_id for name in ("monday", "tuesday", "monday")]

    assert runs == [0, 1, 0]
    assert rows_of(store, "SELECT run_id, rank FROM meta.source ORDER BY ALL") == [(0, 0), (1, 0)]


def test_files_are_noted_under_the_names_that_the_caller_shows(tmp_path: Path) -> None:
    # A database that travels need not tell whose home folder the traces lay in.
    good, bad = (
        write(tmp_path / "a.json", "forward", rank=0),
        write(tmp_path / "b.json", rank=1, breaks=True),
    )
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
    good = write(tmp_path / "a.json", "forward", rank=0)
    notes = [tmp_path / "notes.txt", tmp_path / "readme.md"]
    for path in notes:
        path.write_text(f"about {path.name}")
    store = Store(None, is_kept=False)

    result = ingest_story(store, [good, *notes])

    assert result.unrecognised == tuple(notes)
    assert rows_of(store, ISSUES) == [(None, "file_not_recognised", "info", 2, str(notes[0]))]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("<Error/>", "it is called like a trace beside it, and holds none of a known kind", id="no trace"),
    ],
)
def test_a_file_that_is_called_like_the_traces_beside_it_failed(tmp_path: Path, content: str, why: str) -> None:
    # given ranks 0 and 1, and what a full disk or a failed download left of rank 1
    good, bad = write(tmp_path / "rank0.json", "forward", rank=0), tmp_path / "rank1.json.gz"
    bad.write_text(content)
    store = Store(None, is_kept=False)

    result = ingest_story(store, [good, bad])

    assert result.unrecognised == (bad,)
    assert rows_of(store, "SELECT code, severity, first_at, detail FROM meta.issue") == [
        ("file_failed", "error", str(bad), why)
    ]


def test_the_same_folder_again_does_not_count_its_strangers_twice(tmp_path: Path) -> None:
    good, note = write(tmp_path / "a.json", "forward", rank=0), tmp_path / "notes.txt"
    note.write_text("notes")
    store = Store(None, is_kept=False)

    for _ in range(2):
        ingest_story(store, [good, note])

    assert rows_of(store, ISSUES) == [(None, "file_not_recognised", "info", 1, str(note))]


def test_adding_a_second_folder_keeps_what_was_noted_of_the_first(tmp_path: Path) -> None:
    monday = [
        write(tmp_path / "monday/a.json", "forward", rank=0),
        write(tmp_path / "monday/b.json", breaks=True),
    ]
    tuesday = [write(tmp_path / "tuesday/a.json", "backward", rank=1)]
    store = Store(None, is_kept=False)

    ingest_story(store, monday)
    ingest_story(store, tuesday)

    assert rows_of(store, ISSUES) == [(None, "file_failed", "error", 1, str(monday[1]))]


def test_no_trace_at_all_is_an_error_that_names_files_and_leaves_no_run(tmp_path: Path) -> None:
    notes = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    for path in notes:
        path.write_text("notes")
    store = Store(None, is_kept=False)

    with pytest.raises(NotATraceError) as caught:
        ingest_story(store, notes)

    assert str(caught.value) == (
        "a.txt, b.txt, c.txt …: no trace of a known kind among 4 files\n\nhint: give the files that torch.profiler "
        "wrote (…pt.trace.json or .json.gz), or the folder that holds them"
    )
    assert rows_of(store, "SELECT * FROM meta.run") == []


def test_no_file_at_all_is_said_so() -> None:
    with pytest.raises(NotATraceError, match=r"^there are no files"):
        ingest_story(Store(None, is_kept=False), [])


def test_rows_read_are_rows_stored_plus_rows_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", "forward", "backward", rank=0, lost=5)
    store = Store(None, is_kept=False)

    ingest_story(store, [file])

    assert rows_of(store, "SELECT event_count, stored_count FROM meta.source") == [(7, 2)]
    assert rows_of(store, "SELECT source_id, code, lost_events FROM meta.issue") == [(0, "story_torn", 5)]


def test_a_file_without_any_event_is_kept_as_empty(tmp_path: Path) -> None:
    store = Store(None, is_kept=False)

    ingest_story(store, [write(tmp_path / "a.json", rank=0)])

    assert rows_of(store, "SELECT rank, status FROM meta.source") == [(0, "empty")]


class TestInterruption:
    """An ingest that is cut off leaves whole files; the next one brings the rest."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[Path]:
        """Four files of two events each."""
        return [write(tmp_path / f"rank{n}.json", f"forward {n}", f"backward {n}") for n in range(4)]

    @pytest.fixture
    def store(self, files: list[Path]) -> Store:
        """A store whose ingest was interrupted after its second file."""
        store, seen = Store(None, is_kept=False), []

        def interrupt(path: Path) -> None:
            seen.append(path)
            if len(seen) == 3:
                raise KeyboardInterrupt

        with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
            ingest_story(store, files, executor=executor, on_file=interrupt)
        return store

    def test_what_is_there_is_whole(self, store: Store) -> None:
        counts = "SELECT s.rank, COUNT(*) FROM meta.source AS s JOIN raw.event USING (source_id) GROUP BY ALL"

        found = rows_of(store, counts)

        assert len(found) < 4
        assert {count for _, count in found} <= {2}

    def test_running_again_finishes(self, store: Store, files: list[Path]) -> None:
        there = {path for (path,) in rows_of(store, "SELECT path FROM meta.source")}

        result = ingest_story(store, files)

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
    files = [write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]
    is_over = threading.Event()
    source = StorySource(lambda path: path.name == "b.json" and is_over.wait(0.5))

    def interrupt(_path: Path) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(KeyboardInterrupt):
            ingest_story(Store(None, is_kept=False), files, source, executor=executor, on_file=interrupt)
        is_over.set()

    assert "c.json" not in source.reads
    assert list((tmp_path / "spool").iterdir()) == []


def test_an_ingest_ends_though_all_readers_found_the_disk_full_at_once(tmp_path: Path) -> None:
    class Full(Executor):
        def submit(self, *_: object, **__: object) -> Future[Any]:
            answer: Future[Any] = Future()
            answer.set_exception(OSError(errno.ENOSPC, "No space left on device"))
            return answer

    files = [write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abc")]

    with pytest.raises(OSError, match="No space left"):
        ingest_story(Store(None, is_kept=False), files, executor=Full())


def test_no_more_files_are_read_ahead_than_may_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    #   a   |·read, until two others have been seen·|
    #   b   |·read·|    c   |·read·|    d           (not before a has been handed over)
    monkeypatch.setattr(spool, "_MOST_AHEAD", 3)
    files = [write(tmp_path / f"{name}.json", "forward", rank=n) for n, name in enumerate("abcd")]
    others_were_seen, seen = threading.Event(), list[str]()
    source = StorySource(lambda path: path.name == "a.json" and others_were_seen.wait(10))

    def note(path: Path) -> None:
        seen.append(path.name)
        if len(seen) == 2:
            assert "d.json" not in source.reads
            others_were_seen.set()

    with ThreadPoolExecutor(4) as executor:
        result = ingest_story(Store(None, is_kept=False), files, source, executor=executor, on_file=note)

    assert sorted(seen[:2]) == ["b.json", "c.json"]
    assert result.read == tuple(files)


def test_the_order_of_paths_does_not_matter_to_the_analysis(tmp_path: Path) -> None:
    files = [write(tmp_path / f"rank{n}.json", "ProfilerStep#1", "forward", "ProfilerStep#2") for n in range(3)]
    tables = ("align.rank", "align.step", "timeline.iteration", "timeline.phase", "timeline.segment")

    answers = []
    for order in (files, files[::-1]):
        store = Store(None, is_kept=False)
        ingest_story(store, order)
        built(store, "timeline")
        answers.append([rows_of(store, f"SELECT * FROM {table} ORDER BY ALL") for table in tables])

    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 3


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
