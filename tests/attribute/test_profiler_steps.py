"""Next steps speak of the profiler that recorded: of torch.profiler only to those who use it."""

import pytest

from traceforge.attribute import bound_words, profiler_steps, verdict_words
from traceforge.attribute.late_launch import phrases
from traceforge.attribute.profiler_steps import step_of

USUAL = {
    **bound_words.NEXT_STEPS,
    "launch_bound": phrases(None)[2],
    "nothing_runs": bound_words.NOTHING_RUNS,
    "communication": verdict_words.COMMUNICATION,
    **verdict_words.IRREGULAR,
    "more_steps": verdict_words.MORE_STEPS,
}
OF_TORCH = ("torch.profiler", "profiler.step()", "with_stack", "activities CPU")


@pytest.mark.parametrize("profiler", sorted(profiler_steps._STEPS))
@pytest.mark.parametrize("what", [what for what, step in USUAL.items() if any(word in step for word in OF_TORCH)])
def test_a_step_of_torchs_profiler_has_one_of_each_other_profiler(profiler: str, what: str) -> None:
    step = step_of({profiler: [0]}, what, USUAL[what])

    assert step != USUAL[what]
    assert not any(word in step.replace("with torch.profiler (record_shapes=True) as well", "") for word in OF_TORCH)


def test_no_step_of_jax_speaks_of_torch() -> None:
    said = {what: step_of({"xplane": [0]}, what, step) for what, step in USUAL.items()}

    assert [what for what, step in said.items() if "torch" in step or ".item()" in step] == []


def test_every_own_step_is_of_something_that_is_asked_for() -> None:
    assert {what for steps in profiler_steps._STEPS.values() for what in steps} - USUAL.keys() == {"quiet"}


@pytest.mark.parametrize("profilers", [{}, {"kineto": [0]}, {"nsys": [0], "kineto": [1]}])
def test_others_keep_the_usual_words(profilers: dict[str, list[int]]) -> None:
    assert step_of(profilers, "idle", "usual") == "usual"
