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


def verdict_of_devices(
    kernels_us: list[int], *, calls: list[int] | None = None, listed: list[int] | None = None, **measured: int
) -> dict[str, str]:
    """The verdict on ranks whose device runs one kernel and an all-reduce of so many calls, as Chakra's nodes say."""
    store: Store = store_of()
    for rank, own_us in enumerate(kernels_us):
        times = calls[rank] if calls else 1
        work = {name: value * own_us for name, value in (measured or {"duration_ns": 1000}).items()}
        device = {"is_cpu": False}
        call = {"origin": "comm_type", "collective_name": "all_reduce", "process_group_name": "dp",
                "in_bytes": 32}  # fmt: skip
        add_execution_trace(
            store,
            [
                {"name": "gemm", "node_type": "COMP", **device, **work},
                {"name": "fill", "node_type": "COMP", "is_cpu": True, "duration_ns": 9_000_000 * rank},
                *({"name": "AllReduce", "node_type": "COMM_COLL", **device} for _ in range(times)),
            ],
            calls=[{**call, "position": at + 2} for at in range(times)],
            groups=[{"process_group_name": "dp", "ranks": listed}] if listed else [],
            rank=rank,
            file={"format": "protobuf"},
        )
    api.analyze(store)
    (verdict,) = store.query("SELECT headline, explanation, next_step FROM attribute.verdict").to_dicts()
    return verdict


def test_a_rank_whose_device_computes_longer_than_most_is_told() -> None:
    # given 16 ms on rank 2 and 8 ms on the others; work of hosts, 0 to 27 ms, is left out
    verdict = verdict_of_devices([8000, 8000, 16_000, 8000])

    assert "the device of rank 2 computes 2.00 times as much as the median rank's" in verdict["headline"]
    assert verdict["next_step"].endswith(
        "the largest difference is in gemm, 16.0 ms against 8.00 ms on the median rank."
    )


def test_operation_counts_tell_it_where_there_are_no_durations() -> None:
    verdict = verdict_of_devices([10, 10, 10, 30], operation_count=1_000_000)

    assert verdict["headline"].startswith(
        "By operation counts in the execution traces, the device of rank 3 computes 3."
    )
    assert "30,000,000 operations against 10,000,000 operations" in verdict["next_step"]


def test_devices_that_compute_alike_accuse_nobody() -> None:
    assert "the device of rank" not in verdict_of_devices([8000, 8100, 8000, 7900])["headline"]


def test_a_rank_that_records_a_call_fewer_is_told_with_what_it_may_mean() -> None:
    # given 8, 7, 8 and 8 calls of 32 bytes: 31 / 4 = 7.75
    verdict = verdict_of_devices([8000] * 4, calls=[8, 7, 8, 8])

    assert "on average 7.75 calls" in verdict["explanation"]
    assert "Rank 1 records 1 call fewer than others in group" in verdict["explanation"]
    assert "its recording begins later or ends earlier, or it skips one." in verdict["explanation"]


def test_a_rank_that_groups_list_and_that_has_no_file_is_told() -> None:
    verdict = verdict_of_devices([8000] * 3, listed=[0, 1, 2, 3])

    assert "The process groups list rank 3 as well, of which there is no file." in verdict["explanation"]
    assert "of which there is no file" not in verdict_of_devices([8000] * 3, listed=[0, 1, 2])["explanation"]
