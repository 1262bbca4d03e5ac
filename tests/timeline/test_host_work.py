"""When a host surely works, and does not wait: drawn by hand, in ns of a step of 1,000."""

import numpy as np

from traceforge.timeline.host_work import host_work
from traceforge.timeline.rank_events import Events, RankEvents

STEP_NS = 1_000


def events(**by_class: list[tuple[int, int]]) -> RankEvents:
    own = {name: Events(*np.array(spans, dtype=np.int64).T) for name, spans in by_class.items()}
    return RankEvents({name: one for name, one in own.items() if name == "host_communication"}, own)


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
