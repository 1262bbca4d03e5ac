"""Shapes in execution traces alone tell who is given more work."""

from tests.given import store_of
from tests.graph.recordings import add_execution_trace
from traceforge import api
from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.store.database import Store


def verdict_of(rows: list[int], *, calls: list[int] | None = None, op: str = "all_reduce") -> dict[str, object]:
    """The verdict on ranks that multiply (rows, 4) by (4, 8) once, and communicate once or as often as stated."""
    store: Store = store_of()
    for rank, own in enumerate(rows):
        times = calls[rank] if calls else 1
        record = {"origin": "record_param_comms", "collective_name": op, "process_group_name": "dp",
                  "group_size": len(rows), "in_elements": 8, "dtype": "Float"}  # fmt: skip
        source_id = add_execution_trace(
            store,
            [{"name": "aten::mm"}, *({"name": "record_param_comms"} for _ in range(times))],
            calls=[{**record, "position": at + 1} for at in range(times)],
            rank=rank,
        )
        shapes = ([own, 4], [4, 8])
        tensors = [
            {"part": 0, "position": 0, "node_id": 0, "direction": "input", "argument": argument, "shape": shape}
            for argument, shape in enumerate(shapes)
        ]
        frame = frame_of_rows("raw.chakra_tensor", tensors)
        store.append("raw.chakra_tensor", frame, source_id=source_id)
    api.analyze(store)
    (verdict,) = store.query("SELECT kind, headline, next_step FROM attribute.verdict").to_dicts()
    return verdict


def test_a_rank_that_multiplies_larger_matrices_than_most_is_told() -> None:
    verdict = verdict_of([100, 100, 250, 100])

    assert verdict["kind"] == "cannot_be_known"
    assert verdict["headline"] == (
        "By the shapes in the execution traces, the matrix products of rank 2 take 2.50 times the arithmetic of the "
        "median rank: where ranks meet, others may wait for it."
    )
    assert str(verdict["next_step"]).endswith("most of that is aten::mm of [[250,4],[4,8]].")


def test_work_that_differs_a_little_or_on_all_ranks_accuses_nobody() -> None:
    for rows in ([100, 105, 100, 100], [50, 100, 200, 400]):
        assert str(verdict_of(rows)["headline"]).startswith("Execution traces alone tell what ranks issue")


def test_recordings_of_other_lengths_are_not_compared() -> None:
    verdict = verdict_of([100, 100, 250, 100], calls=[1, 1, 2, 1])

    assert "matrix products" not in str(verdict["headline"])


def test_ranks_that_send_messages_may_be_stages() -> None:
    assert "matrix products" not in str(verdict_of([100, 100, 250, 100], op="send")["headline"])
