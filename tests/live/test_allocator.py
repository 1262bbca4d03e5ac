"""Retries of the allocator are marks in the steps in which they came."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.live.jobs import MS, HandClock
from tests.sources.test_live_log import read
from traceforge.live.recorder import start
from traceforge.live.torch_allocator import AllocatorRetries


def torch_with_retries(counts: Iterator[int | None]) -> Any:
    """PyTorch whose allocator retried so often each time it is asked; None: CUDA is not initialised."""
    asked: list[int | None] = []

    def is_initialized() -> bool:
        asked.append(next(counts))
        return asked[-1] is not None

    def stats() -> dict[str, object]:
        return {"num_alloc_retries": asked[-1], "num_ooms": 0}

    return SimpleNamespace(cuda=SimpleNamespace(is_initialized=is_initialized, memory_stats_as_nested_dict=stats))


def marks(folder: Path, *counts: int | None) -> list[tuple[str, int, int]]:
    """Name, step and duration of each mark of a job; the first count is that at the begin, the others of its steps."""
    clock = HandClock()
    hook = AllocatorRetries(torch_with_retries(iter(counts)))
    with start(folder, environment={}, rank=0, world_size=1, clock_ns=clock, hooks=[hook]) as one:
        for _ in counts[1:]:
            clock.turn(MS)
            one.step()
    assert one.failures == {}
    events = read(folder / "rank0.live").events
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    found = [event for event in events if event["name"].startswith("allocator")]
    assert not {event["track_id"] for event in found} & {step["track_id"] for step in steps}
    return [
        (event["name"], number, event["duration_ns"])
        for event in found
        for number, step in enumerate(steps)
        if step["raw_start_ns"] <= event["raw_start_ns"] < step["raw_start_ns"] + step["duration_ns"]
    ]


def test_a_step_in_which_the_count_grew_has_a_mark_that_claims_no_time(tmp_path: Path) -> None:
    # given 4 retries before the recording, none in the first step, 2 in the second, none, and 1 in the fourth
    assert marks(tmp_path, 4, 4, 6, 6, 7) == [("allocator_retries +2", 1, 1), ("allocator_retries +1", 3, 1)]


def test_retries_of_the_first_step_that_uses_a_device_count(tmp_path: Path) -> None:
    assert marks(tmp_path, None, None, 3, 3) == [("allocator_retries +3", 1, 1)]


def test_a_count_that_the_program_sets_back_is_no_retry(tmp_path: Path) -> None:
    assert marks(tmp_path, 5, 0, 1) == [("allocator_retries +1", 1, 1)]
