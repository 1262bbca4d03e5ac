"""Real traces of all eras give exactly the counts that a plain JSON parser found in them."""

import json
from collections import Counter
from pathlib import Path

from traceforge.files import read_head
from traceforge.records import Batch, ReadOptions
from traceforge.sources.kineto import SOURCE
from traceforge.sources.kineto.reader import read_file


def test_every_file_has_the_events_and_phases_of_a_plain_json_parser(corpus: Path) -> None:
    golden = json.loads((corpus / "golden/golden.json").read_text())["kineto_event_counts"]
    differing = {
        name: expected
        for name, expected in golden.items()
        if expected is not None and counts(corpus / "traces" / name) != expected
    }
    assert len(golden) > 100
    assert differing == {}


def counts(path: Path) -> dict[str, object]:
    """What golden.json says about a file, as the source sees it."""
    assert SOURCE.recognises(read_head(path))
    phases: Counter[str] = Counter()
    phase_of: dict[int, str | None] = {}

    def count(batch: Batch) -> None:
        if batch.table == "raw.event_kind":
            phase_of.update(batch.rows.select("kind_id", "phase").iter_rows())
        if batch.table == "raw.occurrence":
            phases.update(str(phase_of[kind_id]) for kind_id in batch.rows["kind_id"])

    # Four of them are timelines of whole jobs by another tool, which are no rank's and which `ingest` refuses.
    summary = read_file(path, count, ReadOptions())
    assert summary.event_count == summary.stored_count == phases.total()
    top = "array" if read_head(path).lstrip()[:1] == b"[" else "object"
    return {
        "events": summary.event_count,
        "complete_X": phases["X"],
        "phases": dict(phases),
        "top": top,
        "rank": summary.rank,
    }


def test_execution_traces_beside_them_are_not_recognised(corpus: Path) -> None:
    golden = json.loads((corpus / "golden/golden.json").read_text())["kineto_event_counts"]
    others = [
        path
        for folder in ("traces/kineto", "traces/chakra", "traces/nccl")
        for path in sorted((corpus / folder).rglob("*"))
        if path.is_file() and golden.get(str(path.relative_to(corpus / "traces"))) is None
    ]
    assert len(others) > 20
    assert [path for path in others if SOURCE.recognises(read_head(path))] == []
