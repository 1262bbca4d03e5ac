"""When a host surely works, and does not wait: drawn by hand, in ns of a step of 1,000."""

import numpy as np
import pytest

from traceforge.timeline.host_work import by_cause, ends_with_device, host_work
from traceforge.timeline.rank_events import Events, RankEvents

STEP_NS = 1_000


ON_DEVICE = ("compute", "communication")


def events(**by_class: list[tuple[int, int]]) -> RankEvents:
    own = {name: Events(*np.array(spans, dtype=np.int64).T) for name, spans in by_class.items()}
    wherever = {name: one for name, one in own.items() if name in (*ON_DEVICE, "host_communication")}
    return RankEvents(wherever, {name: one for name, one in own.items() if name not in ON_DEVICE})


def works(step_ns: int = STEP_NS, **by_class: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found = host_work(events(**by_class), step_ns)
    return list(zip(found.starts_ns.tolist(), found.ends_ns.tolist(), strict=True))


def test_short_stretches_between_events_are_work_and_longer_ones_may_be_waits() -> None:
    # host   |operation 0–20|   20   |launch 40–50|   21   |fetches input 71–300|
    assert works(operation=[(0, 20)], launch=[(40, 50)], input=[(71, 300)]) == [(0, 50), (71, 300)]


def test_an_operation_in_which_nothing_begins_or_ends_for_long_may_wait() -> None:
    # operation   |0–––––––––––––––––––––––––––––––––––––400|
    # inside          |launch 20–30|  21  |operation 51–60|      until 390|launch 390–395|
    found = works(operation=[(0, 400), (51, 60)], launch=[(20, 30), (390, 395)])

    assert found == [(0, 30), (51, 60), (390, 400)]


def test_waits_inside_of_what_is_work_are_none() -> None:
    # input            |0–––––––––––––––––––––––––––––––––––––––––––400|
    # synchronisation        |50–100|
    # allocator                         |150–160|
    # gloo, wherever                                |200–300|
    found = works(
        launch=[(0, 1)], input=[(0, 400)], synchronisation=[(50, 100)], allocator=[(150, 160)],
        host_communication=[(200, 300)],
    )  # fmt: skip

    assert found == [(0, 50), (100, 150), (160, 200), (300, 400)]


def test_a_launch_that_takes_long_may_wait_for_room_in_the_queue() -> None:
    spans = works(step_ns=10**8, operation=[(0, 50_000)], launch=[(10, 20_010), (20_010, 40_011)])

    assert spans == [(0, 20_010), (40_011, 50_000)]


def test_what_a_program_names_itself_may_hide_a_wait() -> None:
    assert works(launch=[(0, 10)], annotation=[(0, 500)]) == [(0, 10)]


def test_without_launches_on_record_nothing_is_known() -> None:
    assert works(operation=[(0, 10)]) == []


def test_fetching_that_ends_as_the_device_does_waited_for_it() -> None:
    # device   |compute 0–400 µs|communicates 400–900 µs|                    |1_200–1_300|
    # host            |input 300 µs – 950 µs           | |input 980–990 µs|
    spans = {
        "launch": [(0, 1_000)],
        "compute": [(0, 400_000), (1_200_000, 1_300_000)],
        "communication": [(400_000, 900_000)],
    }
    waited, own = (300_000, 950_000), (980_000, 990_000)

    assert works(step_ns=10**6, **spans, input=[waited, own]) == [(0, 1_000), own]


@pytest.mark.parametrize(
    ("ends_ns", "is_wait"),
    [
        (890_000, True),  # clocks of host and device may differ by so much
        (889_999, False),
        (1_000_000, True),
        (1_000_001, False),  # the device had nothing to do for a while
        (300_000, False),  # the device goes on with what is in its queue: 5 µs between two kernels
    ],
)
def test_what_ends_while_the_device_has_more_to_do_or_long_after_is_no_wait(ends_ns: int, is_wait: bool) -> None:
    on_device = events(compute=[(0, 300_000), (305_000, 900_000), (1_200_000, 1_300_000)])

    assert ends_with_device(Events(np.array([100]), np.array([ends_ns])), on_device).tolist() == [is_wait]


def test_without_a_device_nothing_ends_with_it() -> None:
    assert ends_with_device(Events(np.array([100]), np.array([200])), events()).tolist() == [False]


def test_what_a_host_does_is_divided_by_the_cause_that_would_own_it() -> None:
    # host   |operation 0–100|collects garbage 100–150|allocates 150–180|input 180–300|
    spans = events(operation=[(0, 100)], launch=[(10, 15)], garbage_collection=[(100, 150)], allocator=[(150, 180)],
                   input=[(180, 300)])  # fmt: skip
    found = by_cause(spans, host_work(spans, 10**6))

    lasting = {name: int((one.ends_ns - one.starts_ns).sum()) for name, one in found.items()}
    assert lasting == {
        "late_launch": 100, "garbage_collection": 50, "allocator_stall": 30, "input_stall": 120, "checkpoint_pause": 0,
    }  # fmt: skip


def test_collecting_garbage_that_ends_as_the_device_does_is_work() -> None:
    assert works(step_ns=10**6, launch=[(0, 1)], compute=[(0, 300_000)], garbage_collection=[(100, 310_000)]) == [
        (0, 310_000)
    ]
