"""The next step of a slow rank follows what telemetry says of its device."""

from typing import Any, cast

import pytest

from traceforge.attribute.finding_clock import steps_of_clocks
from traceforge.store.database import Store

USUAL = "Compare clocks, then work."
DEVICE = {"run_id": 0, "finding_id": 0, "status": "slower_clock", "sm_clock_mhz": 1410.0, "peer_sm_clock_mhz": 1755.0,
          "power_limit_w": 500.0, "temperature_c": 91.0, "held_by": None}  # fmt: skip


class Telemetry:
    """Stands for a database with one row of attribute.finding_device, or none."""

    def __init__(self, *devices: dict[str, Any]) -> None:
        self._devices = devices

    def records(self, _query: str) -> list[dict[str, Any]]:
        return list(self._devices)


def step(device: dict[str, Any] | None, own: str = USUAL, **finding: str) -> str:
    row = {"run_id": 0, "finding_id": 0, "subject_kind": "rank", "subject": "2", "host": "node1"}
    store = cast(Store, Telemetry(*([DEVICE | device] if device is not None else [])))
    return steps_of_clocks(store)(row | finding | {"next_step": own, "usual_step": USUAL})


@pytest.mark.parametrize(
    ("held_by", "where"),
    [
        ("power cap", "compare its power limit (500 W) with its peers'"),
        ("power brake", "compare its power limit (500 W) with its peers'"),
        ("heat", "have its cooling looked at (91 °C)"),
        ("a clock setting", "reset its clocks"),
        (None, "ask the driver what holds it"),
    ],
)
def test_what_holds_the_clock_is_looked_for_where_it_is(held_by: str | None, where: str) -> None:
    because = f" ({held_by})" if held_by else ""
    head = f"The device of rank 2 on node1 clocks at 1,410 against 1,755 MHz{because}: {where}"

    assert step({"held_by": held_by}).startswith(head)
    assert USUAL not in step({"held_by": held_by})


def test_a_host_is_named_once() -> None:
    assert step({}, subject_kind="host", subject="node1").startswith("The device of node1 clocks at 1,410 against")


def test_more_work_comes_first_and_the_clock_beside_it() -> None:
    more = "Find out why rank 2 runs mm 33 times."

    assert step({"held_by": "heat"}, more) == (
        "Find out why rank 2 runs mm 33 times. Then see why its device clocks at 1,410 against 1,755 MHz (heat)."
    )


def test_a_clock_like_the_peers_leaves_the_work() -> None:
    assert step({"status": "as_peers"}, f"mm takes 3 ms. {USUAL}").startswith(
        "mm takes 3 ms. Its device clocks like its peers': compare the work"
    )


@pytest.mark.parametrize(
    ("status", "hint"), [("too_coarse", "too coarse"), ("elsewhere", "another time"), ("no_clock", "clocks.sm")]
)
def test_readings_that_cannot_tell_are_worth_repeating(status: str, hint: str) -> None:
    assert step({"status": status}).startswith(f"{USUAL} ")
    assert hint in step({"status": status})


def test_without_telemetry_the_step_stays() -> None:
    assert step(None) == USUAL
