"""What is said of execution traces alone: no communication only where there is none, and collectives that differ."""

import pytest

from tests.given import built, store_of
from tests.graph.recordings import add_execution_trace
from traceforge.store.database import Store

Row = dict[str, object]


def explanation(nodes: list[Row], calls: list[Row], ranks: tuple[int | None, ...]) -> str:
    store: Store = store_of()
    for rank in ranks:
        add_execution_trace(store, nodes, calls=calls, rank=rank)
    built(store, "attribute.verdict")
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


def verdict_of_calls(*ranks: list[Row]) -> dict[str, object]:
    """The verdict on one execution trace a rank, with calls of one group of all ranks."""
    store: Store = store_of()
    for rank, calls in enumerate(ranks):
        rows = [record(position=at, process_group_name="dp", group_size=len(ranks)) | call
                for at, call in enumerate(calls)]  # fmt: skip
        add_execution_trace(store, [{"name": "record_param_comms"} for _ in rows], calls=rows, rank=rank)
    built(store, "attribute.verdict")
    (verdict,) = store.query("SELECT kind, headline, next_step FROM attribute.verdict").to_dicts()
    return verdict


def test_a_rank_that_calls_another_collective_is_the_verdict() -> None:
    both: list[Row] = [{}, {}]

    verdict = verdict_of_calls(both, both, [{}, {"collective_name": "reduce_scatter"}])

    assert str(verdict["headline"]).startswith("Ranks do not issue the same collectives in process group “dp”: rank 2")
    assert "reduce_scatter" in str(verdict["headline"])
    assert "what rank 2 does differently" in str(verdict["next_step"])


def test_a_recording_that_ends_earlier_is_no_mismatch() -> None:
    verdict = verdict_of_calls([{}, {}], [{}, {}], [{}])

    assert str(verdict["headline"]).startswith("Execution traces alone tell what ranks issue")


def test_a_rank_that_lacks_a_call_in_the_middle_is_the_verdict() -> None:
    calls: list[Row] = [{"in_bytes": 8 * place} for place in range(6)]

    verdict = verdict_of_calls(calls, calls, calls[:2] + calls[3:])

    assert "rank 2 lacks call 2, behind its node 1, where others make all_reduce 16 bytes" in str(verdict["headline"])


def test_a_recording_that_lost_a_call_is_no_verdict() -> None:
    calls: list[Row] = [{"in_bytes": 8 * place, "sequence": place} for place in range(6)]

    verdict = verdict_of_calls(calls, calls, calls[:2] + calls[3:])

    assert str(verdict["headline"]).startswith("Execution traces alone tell what ranks issue")


def test_a_send_that_is_not_received_is_the_verdict() -> None:
    pair: Row = {"source_rank": 0, "destination_rank": 1}
    sent, received = ({"collective_name": name, **pair} for name in ("send", "recv"))
    verdict = verdict_of_calls(
        [{**sent, "in_bytes": 8}, {**sent, "in_bytes": 16}, {**sent, "in_bytes": 24}],
        [{**received, "in_bytes": 8}, {**received, "in_bytes": 24}],
    )

    assert str(verdict["headline"]).startswith(
        "From rank 0 to rank 1, sends and receives do not match: rank 0 sends message 1 (node 1), which rank 1 does not"
    )
