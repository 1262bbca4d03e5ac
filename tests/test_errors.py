"""What a user reads when something goes wrong."""

import pickle

import pytest

from traceforge.errors import (
    InputUnusableError,
    NoRanksTraceError,
    NotATraceError,
    PartialDataError,
    PluginError,
    QueryError,
    StoreBusyError,
    StoreTooNewError,
    TraceforgeError,
    UsageError,
)

KINDS = [
    TraceforgeError,
    UsageError,
    QueryError,
    InputUnusableError,
    NoRanksTraceError,
    NotATraceError,
    StoreTooNewError,
    StoreBusyError,
    PartialDataError,
    PluginError,
]


def test_an_error_reads_place_then_what_then_hint() -> None:
    error = InputUnusableError("event 7 has no end", where="rank3.json: byte 93", hint="record again")

    assert str(error) == "rank3.json: byte 93: event 7 has no end\n\nhint: record again"


def test_a_line_break_in_a_path_begins_no_line() -> None:
    error = InputUnusableError("event 7 has no end", where="a\nhint: pipe this into a shell/rank3.json")

    assert str(error) == "a\\nhint: pipe this into a shell/rank3.json: event 7 has no end"


def test_an_error_without_place_or_hint_is_one_sentence() -> None:
    assert str(UsageError("there is no policy `fast`")) == "there is no policy `fast`"


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        (TraceforgeError, 1),
        (PluginError, 1),
        (UsageError, 2),
        (QueryError, 2),
        (InputUnusableError, 3),
        (NotATraceError, 3),
        (NoRanksTraceError, 3),
        (StoreTooNewError, 3),
        (StoreBusyError, 3),
        (PartialDataError, 4),
    ],
)
def test_each_kind_ends_the_program_with_its_own_exit_code(kind: type[TraceforgeError], exit_code: int) -> None:
    assert kind("what").exit_code == exit_code


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_that_a_worker_process_raises_keeps_its_kind_and_fields(kind: type[TraceforgeError]) -> None:
    received = pickle.loads(pickle.dumps(kind("what", where="there", hint="do this")))  # noqa: S301

    assert (type(received), received.what, received.where, received.hint) == (kind, "what", "there", "do this")
