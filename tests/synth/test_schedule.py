"""Orders of pipeline schedules: each turn once, bubbles of the closed forms, and nobody waits for himself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.errors import UsageError
from traceforge.synth.schedule import Turn, ideal_ends, turns_of


def bubble(schedule: str, stages: int, microbatches: int, chunks: int = 1) -> float:
    """Share of an ideal step that a rank does not work."""
    ends = ideal_ends(turns_of(schedule, stages, microbatches, chunks), stages * chunks - 1)
    return 1 - 3 * microbatches * chunks / max(ends.values())


@given(st.integers(1, 6), st.integers(1, 12), st.sampled_from(["gpipe", "1f1b"]))
def test_gpipe_and_1f1b_idle_for_all_but_one_stage(stages: int, microbatches: int, schedule: str) -> None:
    share = (stages - 1) / (microbatches + stages - 1)
    assert bubble(schedule, stages, microbatches) == pytest.approx(share)


@given(st.integers(2, 5), st.integers(1, 3), st.integers(1, 4))
def test_interleaving_divides_the_bubble_by_the_number_of_chunks(stages: int, rounds: int, chunks: int) -> None:
    microbatches = rounds * stages
    share = (stages - 1) / (chunks * microbatches + stages - 1)
    assert bubble("interleaved", stages, microbatches, chunks) == pytest.approx(share)


@given(st.integers(2, 6), st.integers(0, 6))
def test_splitting_backward_leaves_a_third_of_the_bubble(stages: int, more: int) -> None:
    # (p - 1)(f + b_input - b_weight), all of them 1, over 3 m and itself
    microbatches = 2 * stages + more
    share = (stages - 1) / (3 * microbatches + stages - 1)
    assert bubble("zero_bubble", stages, microbatches) == pytest.approx(share)


def test_the_turns_of_1f1b_by_hand() -> None:
    # given the first of three stages: two forwards ahead of the first backward
    first, *_, last = turns_of("1f1b", 3, 4, 1)

    letters = "".join(turn.work[0] + str(turn.microbatch) for turn in first)
    assert letters == "f0f1f2b0f3b1b2b3"
    assert "".join(turn.work[0] + str(turn.microbatch) for turn in last) == "f0b0f1b1f2b2f3b3"


@given(st.sampled_from(["gpipe", "1f1b", "interleaved", "zero_bubble"]), st.integers(1, 4), st.integers(1, 3))
def test_every_micro_batch_takes_each_turn_once(schedule: str, stages: int, rounds: int) -> None:
    chunks = 2 if schedule == "interleaved" else 1
    turns = [turn for order in turns_of(schedule, stages, rounds * stages, chunks) for turn in order]

    works = ("forward", "backward_input", "backward_weight") if schedule == "zero_bubble" else ("forward", "backward")
    expected = {Turn(w, s, m) for w in works for s in range(stages * chunks) for m in range(rounds * stages)}  # type: ignore[arg-type]
    assert len(turns) == len(expected)
    assert set(turns) == expected


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (("magic", 2, 2, 1), "there is no schedule `magic`"),
        (("1f1b", 2, 2, 2), "`1f1b` has one chunk a stage"),
        (("interleaved", 2, 3, 2), "3 micro-batches cannot be interleaved on 2 stages"),
        (("gpipe", 2, 0, 1), "must be 1 or more"),
    ],
)
def test_what_cannot_be_is_refused(numbers: tuple[str, int, int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        turns_of(*numbers)
