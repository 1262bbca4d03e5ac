"""The next step of slow ranks says first that their devices are of another model than their peers'."""

from collections.abc import Sequence
from typing import cast

import pytest

from traceforge.attribute.finding_hardware import steps_of_models
from traceforge.store.database import Store

USUAL = "Compare clocks, then work."
H100, A100, L4 = "NVIDIA H100", "NVIDIA A100", "NVIDIA L4"


class Devices:
    """Stands for a database with the device of each rank."""

    def __init__(self, models: Sequence[str | None]) -> None:
        self._models = models

    def rows(self, _query: str) -> list[tuple[int, int, str | None]]:
        return [(0, rank, model) for rank, model in enumerate(self._models)]


def step(models: Sequence[str | None], ranks: Sequence[int], cause: str = "slow_compute") -> str:
    row = {"run_id": 0, "ranks": list(ranks), "cause": cause, "next_step": USUAL}
    return steps_of_models(cast(Store, Devices(models)))(row)


def test_ranks_with_slower_devices_are_told_so_before_anything_else() -> None:
    said = step([H100, H100, A100, A100], ranks=[2, 3])

    assert said.startswith("Unlike devices: NVIDIA A100 here, NVIDIA H100 on the other ranks.")
    assert said.endswith(USUAL)


@pytest.mark.parametrize(
    ("models", "ranks"),
    [
        ([H100, H100, H100, H100], [2]),  # all alike
        ([H100, H100, A100, A100], [2]),  # rank 3 has such a device, and is at pace
        ([H100, None, A100, A100], [2, 3]),  # what rank 1 has is not known
        ([H100, L4, A100, A100], [2, 3]),  # the others are not alike either: no comparison of two
        ([A100, A100], [0, 1]),  # nobody else
    ],
)
def test_nothing_is_said_of_devices_that_explain_nothing(models: Sequence[str | None], ranks: Sequence[int]) -> None:
    assert step(models, ranks) == USUAL


def test_a_late_batch_is_none_of_the_device_s() -> None:
    assert step([H100, A100], ranks=[1], cause="input_stall") == USUAL
