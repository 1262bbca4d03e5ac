"""The vocabulary: what an event is called from end to end, and that a new word needs one row."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import traceforge.attribute.causes
from tests.attribute.jobs import STALLS, traces_of
from tests.given import MS, rows_of, store_of
from traceforge import api
from traceforge import vocabulary as words
from traceforge.attribute.cause import causes
from traceforge.errors import PluginError
from traceforge.report.palette import PHASES
from traceforge.store.documents import comment_statements
from traceforge.store.stage import stage_documents
from traceforge.vocabulary import IGNORED, UNNAMED, EventClass, fill_placeholders, vocabulary

every_class = pytest.mark.parametrize("one", vocabulary().classes, ids=[one.name for one in vocabulary().classes])

ROW = """
[[class]]
name = "log_flush"
categories = ["user_annotation"]
pattern = '^flush_logs$'
activity = true
gap_cause = "logging"
cause = "log_pause"
example = ["user_annotation", "flush_logs"]
"""

CAUSE = '''"""A rank writes its log while its device is idle."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="log_pause",
    mode="runtime_control_plane",
    phrase="writes its log",
    next_step="Let another thread write the log of {subject}.",
)
'''


@every_class
def test_the_example_of_a_class_is_of_that_class(one: EventClass) -> None:
    # One without an example has no events.
    assert (one.example is None) == (one.categories == frozenset())
    if one.example is not None:
        assert vocabulary().classify(*one.example) == (one.example[0], one.name)


@every_class
def test_a_class_is_claimed_by_a_cause_in_phases_that_there_are(one: EventClass) -> None:
    assert set(one.phases) <= set(vocabulary().phases)
    assert (one.cause is not None) == one.activity or one.name in vocabulary().phases


def test_names_are_unique_and_the_last_class_takes_what_no_other_does() -> None:
    names = [one.name for one in vocabulary().classes]

    assert len(set(names)) == len(names)
    assert names[-1] == IGNORED
    assert UNNAMED not in names
    assert vocabulary().classify(None, "?") == (None, IGNORED)


def test_the_report_draws_the_phases_that_there_are() -> None:
    assert vocabulary().phases == PHASES


@pytest.mark.parametrize(
    ("phase", "activity", "cause"),
    [
        ("compute", None, "slow_compute"),
        ("input", "input", "input_stall"),
        ("runtime", UNNAMED, "host_stall"),
        ("runtime", "synchronisation", "host_stall"),
        # Who is in MPI may wait for the rank that is late.
        ("runtime", "mpi_call", None),
        # To wait for one's device while it communicates, or for work while there is none, is no fault of the host.
        ("wait", "synchronisation", None),
        ("idle", UNNAMED, None),
        ("transfer", None, None),
        ("levitation", "input", None),
    ],
)
def test_work_of_a_kind_has_the_owner_that_its_row_names(phase: str, activity: str | None, cause: str | None) -> None:
    assert vocabulary().cause_of_work(phase, activity) == cause


def test_comments_list_what_the_file_lists() -> None:
    assert fill_placeholders("one of: {phases}") == (
        "one of: compute, transfer, wait, communication, copy, input, runtime, idle"
    )
    assert fill_placeholders("{held_gap_causes}, {other}").startswith("data_loading, checkpoint, ")

    documents = [*stage_documents("traceforge.align"), *stage_documents("traceforge.timeline")]
    comments = " ".join(statement for document in documents for statement in comment_statements(document))
    assert not re.search(r"\{\w+\}", comments)
    assert all(one.name in comments for one in vocabulary().classes)


class TestNewCause:
    """A cause is one file in causes/ and one row in the vocabulary."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """An empty second folder of causes, and a vocabulary with a row for the cause `log_pause`."""
        text = words._FILE.read_text(encoding="utf-8")
        before = text.index('[[class]]\nname = "garbage_collection"')
        (tmp_path / "vocabulary.toml").write_text(text[:before] + ROW.lstrip() + "\n" + text[before:], encoding="utf-8")
        monkeypatch.setattr(words, "_FILE", tmp_path / "vocabulary.toml")
        paths = [*traceforge.attribute.causes.__path__, str(tmp_path)]
        monkeypatch.setattr(traceforge.attribute.causes, "__path__", paths)
        vocabulary.cache_clear()
        causes.cache_clear()
        yield tmp_path
        monkeypatch.undo()
        sys.modules.pop("traceforge.attribute.causes.log_pause", None)
        vocabulary.cache_clear()
        causes.cache_clear()

    def test_it_is_found_in_gaps_in_the_ledger_and_in_the_report(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # given twelve iterations in which rank 1 writes its log before it computes
        (folder / "log_pause.py").write_text(CAUSE, encoding="utf-8")
        monkeypatch.setitem(
            STALLS, "log_pause", lambda trace, *span: trace.host_work("flush_logs", *span, "user_annotation")
        )
        traces = traces_of({(i, 1): MS for i in range(12)}, iterations=12, by="log_pause")

        # when everything is built
        store = store_of(*traces)
        api.analyze(store)

        # then gap, ledger, finding and report say the same
        gaps = rows_of(store, "SELECT DISTINCT rank, cause FROM timeline.gap WHERE duration_ns = ?", [MS])
        assert gaps == [(1, "logging")]
        ledger = "SELECT DISTINCT rank, mode, cause FROM attribute.delay WHERE delay_ns > 0"
        assert rows_of(store, ledger) == [(1, "runtime_control_plane", "log_pause")]
        page = api.report(store).html
        assert "Rank 1 writes its log" in page
        assert "Let another thread write the log of rank 1." in page

    def test_a_row_without_a_file_is_an_error_that_names_the_cause(self, folder: Path) -> None:
        with pytest.raises(PluginError, match="log_pause"):
            causes()
