"""Tables of operations as frameworks' own timers write them: who ran what when, and who met whom."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import zstandard

from tests.sources.operation_tables import PLACES, Timed, parquet, pipeline
from tests.sources.reading import Reading
from traceforge import api
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.operation_table import SOURCE, OperationTableSource
from traceforge.store.spool import kind_of

MS = 1_000_000


def read(path: Path, rank: int) -> Reading:
    """All that is said of one rank."""
    batches: list[Batch] = []
    summary = SOURCE.read(path, batches.append, ReadOptions(part=f"rank {rank}"))
    return Reading(summary, batches)


def written(folder: Path, operations: Sequence[Timed], **columns: object) -> Path:
    path = folder / "timers.parquet"
    path.write_bytes(parquet(operations, **columns))
    return path


def test_a_table_is_recognised_by_its_columns_wherever_they_stand_and_other_parquet_is_not(tmp_path: Path) -> None:
    # A file whose columns are named beyond the first 256 KiB.
    many = [Timed(0, 0, step, "forward-compute", step * 1.37, step * 1.37 + 1, seq_id=step) for step in range(40_000)]
    large = written(tmp_path, many)
    other = tmp_path / "dataset.parquet"
    pl.DataFrame({"text": ["a"], "rank": [1]}).write_parquet(other)

    assert large.stat().st_size > 256 * 1024
    assert kind_of(large, api.sources()) == "operation_table"
    assert kind_of(other, api.sources()) is None


def test_every_rank_of_a_table_is_read_as_a_file_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, pipeline(2))
    source = SOURCE
    assert isinstance(source, OperationTableSource)

    assert source.parts(path) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    summary = read(path, 2).summary
    assert (summary.rank, summary.world_size, summary.event_count, summary.stored_count) == (2, 4, 14, 14)


def test_steps_that_count_from_their_own_start_are_laid_one_after_another(tmp_path: Path) -> None:
    # step 5: 0 to 8 ms on the longer rank; step 9 begins where that ends.
    operations = [
        Timed(0, 0, 5, "forward-compute", 1, 4),
        Timed(1, 0, 5, "forward-compute", 0, 8),
        Timed(0, 0, 9, "forward-compute", 2, 3),
        Timed(1, 0, 9, "forward-compute", 0, 3),
    ]

    events = read(written(tmp_path, operations), 0).events

    assert [(event["name"], event["raw_start_ns"] / MS, event["duration_ns"] / MS) for event in events] == [
        ("ProfilerStep#5", 0, 8),
        ("forward-compute", 1, 3),
        ("ProfilerStep#9", 8, 3),
        ("forward-compute", 10, 1),
    ]


def test_steps_that_follow_one_another_keep_their_times(tmp_path: Path) -> None:
    operations = [Timed(0, 0, step, "forward-compute", 20 * step + 1, 20 * step + 4) for step in (1, 2)]

    events = read(written(tmp_path, operations), 0).events

    assert [event["raw_start_ns"] / MS for event in events if event["name"] == "forward-compute"] == [21, 41]


def test_what_moves_data_names_its_group_and_a_message_its_peer(tmp_path: Path) -> None:
    reading = read(written(tmp_path, pipeline(1)), 0)

    groups = {row["process_group_name"]: json.loads(row["ranks"]) for row in reading.rows("process_group")}
    assert groups == {"data_parallel_0": [0, 1], "pipeline_parallel_0": [0, 2], "world": [0, 1, 2, 3]}
    names = {event["event_id"]: event["name"] for event in reading.events}
    assert {names[row["event_id"]]: json.loads(row["args"]) for row in reading.rows("argument")} == {
        "live:send": {"Dst Rank": 2},
        "live:recv": {"Src Rank": 2},
    }
    assert {row["collective_name"]: row["process_group_name"] for row in reading.rows("collective")} == {
        "send": "pipeline_parallel_0",
        "recv": "pipeline_parallel_0",
        "reduce_scatter": "data_parallel_0",
        "all_reduce": "world",
    }


def test_the_first_and_the_last_stage_share_the_embedding_and_all_ranks_the_norm(tmp_path: Path) -> None:
    operations = [
        Timed(dp, stage, 0, name, 5 * place, 5 * place + 4)
        for dp, stage in PLACES
        for place, name in enumerate(
            ("forward-compute", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "optimizer-clip-main-grad")
        )
    ]

    reading = read(written(tmp_path, operations), 3)

    groups = {row["process_group_name"]: json.loads(row["ranks"]) for row in reading.rows("process_group")}
    # Of the tensor-parallel group nobody else is in the table.
    assert groups == {"embedding_1": [1, 3], "tensor_parallel_3": [3], "world": [0, 1, 2, 3]}


def test_calls_of_one_time_are_told_apart_in_one_order_of_all_ranks(tmp_path: Path) -> None:
    operations = [
        Timed(0, 0, 0, "forward-compute", 0, 5),
        Timed(0, 0, 0, "forward-send", 5, 6),
        Timed(0, 0, 0, "backward-recv", 5, 6),
        Timed(0, 1, 0, "forward-compute", 0, 5),
    ]

    events = [event for event in read(written(tmp_path, operations), 0).events if event["name"].startswith("live:")]

    assert [(event["name"], event["raw_start_ns"], event["duration_ns"]) for event in events] == [
        ("live:recv", 5 * MS, MS),
        ("live:send", 5 * MS + 1, MS - 1),
    ]


def test_an_end_just_behind_the_next_start_is_jitter_and_a_later_one_is_not(tmp_path: Path) -> None:
    # 0.1 ms is within what timers agree to, 1 ms is not.
    operations = [
        Timed(0, 0, 0, "forward-compute", 0, 5.1),
        Timed(0, 0, 0, "backward-compute", 5, 9),
        Timed(0, 0, 0, "optimizer", 8, 10),
    ]

    reading = read(written(tmp_path, operations), 0)

    lasting = {event["name"]: event["duration_ns"] / MS for event in reading.events}
    assert lasting == {"ProfilerStep#0": 10, "forward-compute": 5, "backward-compute": 4, "optimizer": 2}
    assert reading.issue("operation_table_end_cut").count == 1


def met(step: int, done: tuple[float, float], following: tuple[float, float]) -> list[Timed]:
    """A step of the two replicas of one stage: when each has computed, and when it reduces gradients."""
    return [
        one
        for dp in (0, 1)
        for one in (
            Timed(dp, 0, step, "backward-compute", 0, done[dp]),
            Timed(dp, 0, step, "grads-reduce-scatter", following[dp], 40),
        )
    ]


def test_ranks_that_go_on_only_when_the_last_has_computed_have_met(tmp_path: Path) -> None:
    # rank 0   compute ----------|  20                reduce at 22
    # rank 1   compute ---|  8        waits           reduce at 21
    operations = [one for step in range(6) for one in met(step, (20, 8), (22, 21))]

    reading = read(written(tmp_path, operations), 1)

    waits = [event for event in reading.events if event["name"] == "live:barrier"]
    assert [(event["raw_start_ns"] % (40 * MS), event["duration_ns"]) for event in waits] == [(8 * MS, 13 * MS)] * 6
    assert reading.issue("operation_table_inferred_barrier").count == 6


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ([one for step in range(6) for one in met(step, (20, 8), (22, 9))], "rank 1 goes on before rank 0 is done"),
        ([one for step in range(6) for one in met(step, (20, 19.5), (22, 21))], "they are done at about one time"),
        ([one for step in range(4) for one in met(step, (20, 8), (22, 21))], "four steps are too few"),
    ],
)
def test_ranks_have_not_met_where(operations: list[Timed], why: str, tmp_path: Path) -> None:
    assert "live:barrier" not in read(written(tmp_path, operations), 1).names, why


def test_rows_that_cannot_be_used_are_counted_once(tmp_path: Path) -> None:
    operations = [
        Timed(0, 0, 0, "forward-compute", 0, 5),
        Timed(1, 0, 0, "forward-compute", float("nan"), 5),
        Timed(1, 0, 0, "forward-compute", 0, float("inf")),
        Timed(1, 0, -3, "forward-compute", 0, 5),
        Timed(1, 0, 0, "backward-compute", 6, 5),
    ]
    path = written(tmp_path, operations)

    first, second = read(path, 0), read(path, 1)

    assert (first.issue("operation_table_unusable_row").count, first.summary.event_count) == (3, 4)
    assert second.codes == ["operation_table_negative_duration"]
    assert [event["duration_ns"] for event in second.events if event["name"] == "backward-compute"] == [0]


def test_of_ranks_that_are_no_grid_nobody_says_who_meets_whom(tmp_path: Path) -> None:
    reading = read(written(tmp_path, [one for one in pipeline(1) if (one.dp_rank, one.stage) != (1, 1)]), 0)

    assert reading.codes == ["operation_table_no_grid"]
    assert not reading.rows("collective")
    assert "grads-reduce-scatter" in reading.names


def test_a_compressed_table_is_read_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    data = parquet(pipeline(1))
    packed, damaged = tmp_path / "timers.parquet.gz", tmp_path / "damaged.parquet"
    packed.write_bytes(gzip.compress(data))
    damaged.write_bytes(data[:200] + bytes(200) + data[400:])

    assert read(packed, 0).summary.stored_count == 7
    with pytest.raises(InputUnusableError, match="damaged"):
        read(damaged, 0)


def test_names_with_wildcards_read_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "timers1.parquet").write_bytes(parquet(pipeline(3)))
    path = tmp_path / "timers[12].parquet"
    path.write_bytes(parquet(pipeline(1)))

    assert read(path, 0).summary.stored_count == 7


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(parquet(pipeline(1)))[:-20],
        zstandard.compress(parquet(pipeline(1))) + b"what is no frame",
        zstandard.compress(parquet(pipeline(1)))[:-20],
    ],
)
def test_a_packed_table_that_is_damaged_is_refused_with_the_reason(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "table.parquet.gz").write_bytes(data)

    with pytest.raises(InputUnusableError, match="the compressed file is damaged"):
        SOURCE.parts(tmp_path / "table.parquet.gz")
