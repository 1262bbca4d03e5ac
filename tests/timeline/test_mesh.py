"""The parallel layout told from groups of ranks."""

import pytest

from tests.given import Trace, rows_of
from tests.stories import told
from traceforge.align.group_inference import ProcessGroup
from traceforge.timeline.mesh import mesh
from traceforge.timeline.message_paths import connected

Ranks = tuple[int, ...]


def _groups(description: str, *members: Ranks) -> list[ProcessGroup]:
    return [ProcessGroup(f"{description}{n}", description, ranks) for n, ranks in enumerate(members)]


def _coordinates(found: dict[str, object], rank: int) -> dict[str, int]:
    return {name: axis[rank][1] for name, axis in found.items()}  # type: ignore[index]


def test_three_axes_multiply_to_the_ranks() -> None:
    # rank = 4 * stage + 2 * replica + tensor
    tensor = _groups("TENSOR_MODEL_PARALLEL_GROUP", (0, 1), (2, 3), (4, 5), (6, 7))
    data = _groups("DATA_PARALLEL_GROUP_WITH_CP", (0, 2), (1, 3), (4, 6), (5, 7))
    world = _groups("default_pg", tuple(range(8)))

    found = mesh(range(8), [*world, *tensor, *data], [(0, 4), (1, 5), (2, 6), (3, 7)])

    assert set(found) == {"pp", "tp", "dp"}
    assert [_coordinates(found, rank) for rank in (0, 3, 6)] == [
        {"pp": 0, "tp": 0, "dp": 0},
        {"pp": 0, "tp": 1, "dp": 1},
        {"pp": 1, "tp": 0, "dp": 1},
    ]


@pytest.mark.parametrize(
    ("description", "axis"),
    [("mesh_dp", "dp"), ("", "dp"), ("mesh_tp", "tp"), ("EXPERT_MODEL_PARALLEL_GROUP", "ep"), ("fsdp", "fsdp")],
)
def test_one_group_of_all_is_one_axis(description: str, axis: str) -> None:
    found = mesh(range(4), _groups(description, (0, 1, 2, 3)), [])

    assert set(found) == {axis}
    assert [_coordinates(found, rank)[axis] for rank in range(4)] == [0, 1, 2, 3]


def test_groups_that_share_two_ranks_are_no_two_axes() -> None:
    found = mesh(range(4), [*_groups("a", (0, 1, 2, 3)), *_groups("b", (0, 1), (2, 3))], [])

    # two of the four coordinates would be told, so the finer division is no axis of a mesh of four
    assert len(found) == 1
    assert [next(iter(_coordinates(found, rank).values())) for rank in range(4)] == [0, 1, 2, 3]


def test_where_groups_form_no_mesh_the_stages_are_known_all_the_same() -> None:
    found = mesh(range(4), _groups("odd", (0, 1, 2)), [(0, 2), (1, 3)])

    assert set(found) == {"pp"}
    assert [_coordinates(found, rank)["pp"] for rank in range(4)] == [0, 0, 1, 1]


def test_groups_of_unequal_size_are_no_axis() -> None:
    assert mesh(range(5), _groups("x", (0, 1), (2, 3, 4)), []) == {}


def test_who_passes_messages_to_whom_is_one_pipeline() -> None:
    assert connected([(0, 2), (2, 4), (3, 1), (5, 3), (4, 2)]) == [(0, 2, 4), (1, 3, 5)]


@pytest.mark.parametrize("is_backwards", [False, True])
def test_stages_are_in_the_order_of_the_first_message(is_backwards: bool) -> None:
    ranks = [0, 1, 2]
    order = ranks[::-1] if is_backwards else ranks
    traces = [Trace(rank).step(1, 0, 200) for rank in ranks]
    for hop, (one, other) in enumerate(((order[0], order[1]), (order[1], order[2]))):
        traces[one].exchange(50 * hop + 10, 50 * hop + 40, [("send", other)], ranks=ranks)
        traces[other].exchange(50 * hop + 20, 50 * hop + 40, [("recv", one)], ranks=ranks)

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT rank, axis, coordinate FROM timeline.mesh ORDER BY coordinate") == [
        (rank, "pp", stage) for stage, rank in enumerate(order)
    ]
    assert rows_of(store, "SELECT rank, role, stage FROM timeline.role ORDER BY stage") == [
        (rank, stage, stage) for stage, rank in enumerate(order)
    ]


def test_the_layout_is_said_with_the_pipeline_first() -> None:
    traces = [Trace(rank).step(1, 0, 200) for rank in range(4)]
    for replica in (0, 2):
        one, other = traces[replica], traces[replica + 1]
        one.exchange(10, 40, [("send", 1)], ranks=[replica, replica + 1], group=f"pp{replica}")
        other.exchange(20, 40, [("recv", 0)], ranks=[replica, replica + 1], group=f"pp{replica}")
    for rank, trace in enumerate(traces):
        trace.collective(60, 80, group=f"dp{rank % 2}", ranks=[rank % 2, rank % 2 + 2])

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT layout, axes FROM timeline.layout") == [("pp 2 x dp 2", 2)]
