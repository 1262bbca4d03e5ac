"""A tiny format of traces, in which the tests of ingesting write their files."""

import json
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import polars as pl

from tests.given import by_kind
from traceforge.errors import InputUnusableError
from traceforge.files import open_bytes
from traceforge.records import Batch, Issue, ReadOptions, SourceSummary
from traceforge.store.database import Store
from traceforge.store.ingest import IngestResult, ingest_files

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


def write(path: Path, *names: str, **said: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [(name, 100 * n + 1, 100 * n + 90) for n, name in enumerate(names)]
    path.write_bytes(MAGIC + json.dumps({"events": events, **said}).encode())
    return path


def ingest_story(
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
