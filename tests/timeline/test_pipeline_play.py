"""A pipeline played forward: closed forms, messages, streams, meetings."""

import numpy as np
import pytest

from traceforge.timeline.pipeline_play import Course, Loads, play
from traceforge.timeline.pipeline_program import (
    Exchange,
    PipelineProgram,
    PipelineTurn,
    Place,
    needed_turns,
    one_by_one,
    program_of,
)

F, B = "forward", "backward"


def _gpipe(stages: int, microbatches: int) -> list[list[PipelineTurn]]:
    turns = [PipelineTurn(direction, 0, n) for direction in (F, B) for n in range(microbatches)]
    return [turns for _ in range(stages)]


def _1f1b(stages: int, microbatches: int) -> list[list[PipelineTurn]]:
    orders = []
    for stage in range(stages):
        warm_up = min(stages - stage, microbatches)
        forward, backward = ([PipelineTurn(way, 0, n) for n in range(microbatches)] for way in (F, B))
        order = forward[:warm_up]
        for n, turn in enumerate(backward):
            order += [turn, *forward[warm_up + n : warm_up + n + 1]]
        orders.append(order)
    return orders


def _program(turns: list[list[PipelineTurn]], *, meets: bool = False) -> PipelineProgram:
    needed = needed_turns(turns, is_v_shaped=False)
    assert needed is not None
    program = program_of(turns, needed, one_by_one(turns, needed), meets=meets)
    assert program is not None
    return program


def _loads(program: PipelineProgram, forward: float = 1, backward: float = 2, message: float = 0) -> Loads:
    """Two iterations in which every turn of a direction takes as long."""
    lengths = {F: forward, B: backward}
    turns = [np.array([[[lengths[turn.direction]] for turn in own]] * 2, dtype=float) for own in program.turns]
    nothing = np.zeros((2, len(turns), 1))
    return Loads(turns, [np.full_like(times, message) for times in turns], nothing, nothing, nothing)


@pytest.mark.parametrize("order", [_gpipe, _1f1b])
def test_idle_time_is_the_closed_form(order: object) -> None:
    program = _program(order(4, 6))  # type: ignore[operator]  # one of the two above

    course = play(program, _loads(program))

    # every stage idles (p - 1) (f + b) = 3 * 3 in an iteration; the first iteration of the last stage has no drain yet
    assert course.idle[1, :, 0].tolist() == [9, 9, 9, 9]
    # the last stage fills for three forwards, and drains for three backwards of the iteration before
    assert (course.fill[1, 3, 0], course.drain[1, 3, 0]) == (3, 6)
    assert (course.fill[0, 3, 0], course.drain[0, 3, 0]) == (3, 0)
    assert course.duration[1, 0, 0] == 6 * 3 + 9


def _two(message: float) -> Course:
    program = _program(_gpipe(2, 1))
    return play(program, _loads(program, message=message))


def test_messages_are_waited_for() -> None:
    # one forward, a message, the other's forward and backward, a message back
    assert _two(0).idle[0, 0, 0] == 1 + 2
    assert _two(0.5).idle[0, 0, 0] == 0.5 + 1 + 2 + 0.5


def test_what_is_behind_on_a_stream_waits_for_what_is_before() -> None:
    # given two micro-batches forward, and a second message that shares the stream of a third one, back, which is asked
    # for first
    turns = [[PipelineTurn(F, 0, 0), PipelineTurn(F, 0, 1)], [PipelineTurn(F, 0, 0), PipelineTurn(F, 0, 1)]]
    needed = needed_turns(turns, is_v_shaped=False)
    assert needed == {Place(1, 0): Place(0, 0), Place(1, 1): Place(0, 1)}
    apart = [[Exchange(n, n + 1, (Place(1, n),)) for n in range(2)], [Exchange(n, 0, (Place(1, n),)) for n in range(2)]]
    # on one stream of the receiver, the second receive is launched behind the first turn
    behind = [apart[0], [Exchange(0, 0, (Place(1, 0),)), Exchange(0, 1, (Place(1, 1),))]]

    idle = []
    for exchanges in (apart, behind):
        program = program_of(turns, needed, exchanges, meets=False)
        assert program is not None
        idle.append(play(program, _loads(program, message=1)).idle[0, 1, 0])

    # the second message moves beside the first turn, or only behind it
    assert idle == [1 + 1, 1 + 1 + 1]


def test_where_stages_meet_the_last_one_is_waited_for() -> None:
    program = _program(_gpipe(3, 2), meets=True)

    course = play(program, _loads(program))

    # all end together, so that the last stage drains within the iteration
    assert course.duration[0, :, 0].tolist() == [12, 12, 12]
    assert course.drain[0, :, 0].tolist() == [0, 2, 4]
    assert course.idle[0, :, 0].tolist() == [6, 6, 6]


def test_chunks_on_a_way_forth_and_back_meet_on_the_last_stage() -> None:
    turns = [[PipelineTurn(F, 0, 0), PipelineTurn(F, 1, 0)], [PipelineTurn(F, 0, 0), PipelineTurn(F, 1, 0)]]

    assert needed_turns(turns, is_v_shaped=False) == {
        Place(1, 0): Place(0, 0), Place(0, 1): Place(1, 0), Place(1, 1): Place(0, 1),
    }  # fmt: skip
    assert needed_turns(turns, is_v_shaped=True) == {Place(1, 0): Place(0, 0), Place(0, 1): Place(1, 1)}


def test_turns_that_wait_for_each_other_make_no_program() -> None:
    turns = [[PipelineTurn(B, 0, 0), PipelineTurn(F, 0, 0)], [PipelineTurn(F, 0, 0), PipelineTurn(B, 0, 0)]]
    needed = needed_turns(turns, is_v_shaped=False)

    assert needed is not None
    assert program_of(turns, needed, one_by_one(turns, needed), meets=False) is None


def test_a_pass_that_nobody_does_makes_no_program() -> None:
    assert needed_turns([[PipelineTurn(F, 0, 0)], [PipelineTurn(F, 0, 1)]], is_v_shaped=False) is None
