"""What ranks say they communicate, compared without any times."""

import pytest

from tests.given import built, rows_of, store_of
from tests.graph.recordings import add_execution_trace
from traceforge.store.database import Store

GROUP = {"process_group_name": "dp", "size": 2, "ranks": [0, 1]}


def call(name: str = "all_reduce", elements: int = 1000, **columns: object) -> dict[str, object]:
    stated = {"in_bytes": 4 * elements, "dtype": "Float", "process_group_name": "dp", "group_size": 2}
    return {"origin": "record_param_comms", "collective_name": name, **stated, **columns}


def job(*ranks: list[dict[str, object]]) -> Store:
    """Execution traces of some ranks, each with its calls in order; node ids count from 100."""
    store = store_of()
    for rank, calls in enumerate(ranks):
        nodes = [{"name": "record_param_comms", "node_id": 100 + place} for place in range(len(calls))]
        placed = [{"position": place, "node_id": 100 + place, **one} for place, one in enumerate(calls)]
        add_execution_trace(store, nodes, calls=placed, groups=[GROUP], rank=rank)
    return built(store)


STATUS = "SELECT status, compared_count, first_place, rank, node_id, found, expected FROM graph.divergence"


def test_ranks_that_issue_the_same_agree() -> None:
    calls = [call(), call("broadcast", 10), call()]

    assert rows_of(job(calls, calls), STATUS) == [("agrees", 3, None, None, None, None, None)]


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (call("reduce_scatter"), "reduce_scatter 4000 bytes float"),
        (call(elements=999), "all_reduce 3996 bytes float"),
        (call(dtype="Half"), "all_reduce 4000 bytes half"),
    ],
    ids=["operation", "bytes", "dtype"],
)
def test_the_first_rank_and_node_that_differ_are_named(other: dict[str, object], found: str) -> None:
    plain = [call(), call(), call()]

    store = job(plain, [plain[0], other, other], plain)

    assert rows_of(store, STATUS) == [("differs", 3, 1, 1, 101, found, "all_reduce 4000 bytes float")]
    assert rows_of(store, "SELECT code, first_at FROM meta.issue WHERE stage = 'graph'") == [
        ("sequence_diverges", "rank 1, node 101")
    ]


def test_a_rank_whose_recording_ends_earlier_is_no_divergence() -> None:
    store = job([call(), call()], [call()])

    assert rows_of(store, STATUS)[0][:4] == ("shorter", 1, 1, 1)
    assert rows_of(store, "SELECT COUNT(*) FROM meta.issue WHERE code = 'sequence_diverges'") == [(0,)]


def test_sequence_numbers_align_recordings_that_begin_at_different_calls() -> None:
    first = [call(elements=size, sequence=size) for size in (5, 6, 7)]
    second = [call(elements=size, sequence=size) for size in (6, 7)]

    assert rows_of(job(first, second), STATUS)[0][:2] == ("agrees", 2)


def test_splits_of_an_all_to_all_may_differ_but_not_its_being_one() -> None:
    calls = [[call("all_to_allv", size)] for size in (10, 90)]

    assert rows_of(job(*calls), STATUS)[0][0] == "agrees"


def test_the_matrix_follows_the_splits() -> None:
    # Rank 0 keeps 1 of 4 rows and sends 3; rank 1 sends 1 and keeps 3: rank 1 gets 6 of 8.
    store = job(
        [call("all_to_allv", 100, in_split_sizes=[1, 3], out_split_sizes=[1, 1])],
        [call("all_to_allv", 100, in_split_sizes=[1, 3], out_split_sizes=[3, 3])],
    )

    assert rows_of(store, "SELECT source_rank, destination_rank, sent_bytes FROM graph.traffic") == [
        *((0, 0, 100), (0, 1, 300), (1, 0, 100), (1, 1, 300))
    ]
    assert rows_of(
        store, "SELECT rank, received_elements, received_ratio, worst_split_ratio FROM graph.split_imbalance"
    ) == [*((0, 2, 0.5, 1.5), (1, 6, 1.5, 1.5))]


def test_messages_name_their_receiver_and_other_collectives_stay_within_the_group() -> None:
    store = job([call("send", 10, destination_rank=1), call()], [call("recv", 10, source_rank=0), call()])

    assert rows_of(store, "SELECT source_rank, destination_rank, op, sent_bytes FROM graph.traffic") == [
        *((0, 1, "send", 40), (0, None, "all_reduce", 4000), (1, None, "all_reduce", 4000))
    ]


def test_calls_whose_group_nothing_tells_are_not_compared() -> None:
    unknown = [call(process_group_name=None, group_size=None)]
    store = store_of()
    for rank in range(2):
        groups = [GROUP, {"process_group_name": "tp", "size": 2, "ranks": [0, 1]}]
        placed = [{"position": 0, **unknown[0]}]
        add_execution_trace(store, [{"name": "c10d::allreduce_"}], calls=placed, groups=groups, rank=rank)

    assert rows_of(built(store), "SELECT status FROM graph.divergence") == [("not_comparable",)]


def test_volumes_count_each_kind_of_group_once_and_messages_where_they_are_sent() -> None:
    # given two ranks, each in a tensor-parallel group of its own, and a message from rank 0 to rank 1
    store = store_of()
    for rank, message in enumerate((call("send", 10, destination_rank=1), call("recv", 10, source_rank=0))):
        own = {"process_group_name": f"{rank}", "description": "mesh_tp", "size": 2, "ranks": [rank, rank + 2]}
        calls = [call(elements=1000 + rank, process_group_name=f"{rank}"), {**message, "process_group_name": "pp"}]
        nodes = [{"name": "record_param_comms", "node_id": 100 + place} for place in range(2)]
        placed = [{"position": place, "node_id": 100 + place, **one} for place, one in enumerate(calls)]
        add_execution_trace(store, nodes, calls=placed, groups=[own], rank=rank)

    found = rows_of(built(store, "graph"), "SELECT * EXCLUDE (run_id) FROM graph.volume")

    assert found == [("mesh_tp", 2, 2, 2, 8004), ("pp", 1, 1, 1, 40)]
