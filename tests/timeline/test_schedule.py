"""How many micro-batches a pipeline has, and in which order it works through them."""

import pytest

from tests.given import Trace, rows_of
from tests.stories import told

FOUND = "SELECT schedule, stages, microbatches, chunks, ideal_bubble_share FROM timeline.schedule"
Message = tuple[int, int]


def _job(stages: int, messages: list[Message]) -> list[Trace]:
    """Stages that pass messages (from, to) on one after the other, 100 ns apart, in one iteration."""
    ranks = list(range(stages))
    traces = [Trace(rank).step(1, 0, 100 * len(messages) + 100) for rank in ranks]
    for n, (one, other) in enumerate(messages):
        at = 100 * n + 50
        traces[one].exchange(at, at + 40, [("send", other)], ranks=ranks)
        traces[other].exchange(at, at + 40, [("recv", one)], ranks=ranks)
    return traces


def test_all_forwards_before_the_first_backward_are_gpipe() -> None:
    forwards, backwards = [(0, 1), (1, 2)] * 3, [(2, 1), (1, 0)] * 3

    store = told(*_job(3, forwards + backwards), stage="timeline")

    # (3 - 1) / (3 + 3 - 1)
    assert rows_of(store, FOUND) == [("gpipe", 3, 3, 1, pytest.approx(2 / 5))]


def test_a_last_stage_that_alternates_is_1f1b() -> None:
    messages = [*[(0, 1), (1, 2), (2, 1), (1, 0)] * 4]

    store = told(*_job(3, messages), stage="timeline")

    assert rows_of(store, FOUND) == [("1f1b", 3, 4, 1, pytest.approx(2 / 6))]


def test_messages_from_the_last_stage_to_the_first_show_chunks() -> None:
    # two micro-batches go through stages 0, 1, 2 twice each, and back
    forward = [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2)]
    messages = [pair for _ in range(2) for pair in [*forward, *[(other, one) for one, other in reversed(forward)]]]

    store = told(*_job(3, messages), stage="timeline")

    assert rows_of(store, FOUND) == [("interleaved", 3, 2, 2, pytest.approx(2 / 6))]


def test_pairs_that_do_not_agree_tell_no_schedule() -> None:
    store = told(*_job(3, [(0, 1), (0, 1), (1, 2), (2, 1)]), stage="timeline")

    assert rows_of(store, FOUND) == []
