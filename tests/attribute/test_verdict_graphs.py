"""What is said of execution traces alone: no communication only where there is none."""

import pytest

from tests.given import store_of
from tests.graph.recordings import add_execution_trace
from traceforge import api
from traceforge.store.database import Store

Row = dict[str, object]


def explanation(nodes: list[Row], calls: list[Row], ranks: tuple[int | None, ...]) -> str:
    store: Store = store_of()
    for rank in ranks:
        add_execution_trace(store, nodes, calls=calls, rank=rank)
    api.analyze(store)
    return str(store.value("SELECT explanation FROM attribute.verdict"))


def record(**columns: object) -> Row:
    return {"origin": "record_param_comms", "collective_name": "all_reduce", "position": 0, **columns}


@pytest.mark.parametrize(
    ("nodes", "calls", "ranks", "said"),
    [
        ([{"name": "aten::mm"}], [], (0,), "they record no communication"),
        ([{"name": "n", "node_type": "COMM_COLL"}], [], (None, None), "2 calls of communication, none of which can be"),
        ([{"name": "record_param_comms"}], [record(group_size=1)], (0,), "groups of one rank, which move nothing"),
    ],
)  # fmt: skip
def test_no_communication_is_said_only_where_there_is_none(
    nodes: list[Row], calls: list[Row], ranks: tuple[int | None, ...], said: str
) -> None:
    assert said in explanation(nodes, calls, ranks)
