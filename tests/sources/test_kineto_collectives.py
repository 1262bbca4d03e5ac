"""Arguments of communication are kept: the text as written, and the known keys as columns."""

import json
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sources.reading import Read
from traceforge.reading.communication_args import CommunicationArgs
from traceforge.sources.kineto.issues import new_log

ALL_REDUCE = {
    "Collective name": "allreduce",
    "In msg nelems": 1048576,
    "Out msg nelems": 1048576,
    "In split size": "[]",
    "Out split size": "[]",
    "dtype": "BFloat16",
    "Group size": 8,
    "Process Group Name": "3",
    "Process Group Description": "mesh_tp",
    "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
    "Seq": 17,
    "Is asynchronized op": 1,
    "Rank": 2,
    "Global rank start": 0,
    "Global rank stride": 1,
}


def test_arguments_of_a_collective_become_a_row(read_kineto: Read) -> None:
    kernel = {"ph": "X", "name": "ncclDevKernel_AllReduce", "ts": 1, "args": {"stream": 20, **ALL_REDUCE}}
    reading = read_kineto([{"ph": "X", "name": "aten::add", "ts": 0}, kernel])
    assert reading.rows("collective") == [
        {
            "event_id": 1,
            "collective_name": "allreduce",
            "process_group_name": "3",
            "process_group_description": "mesh_tp",
            "process_group_ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
            "group_size": 8,
            "in_elements": 1048576,
            "out_elements": 1048576,
            "dtype": "BFloat16",
            "in_split": "[]",
            "out_split": "[]",
            "sequence": 17,
            "is_asynchronous": True,
            "group_rank": 2,
            "global_rank_start": 0,
            "global_rank_stride": 1,
        }
    ]


def test_arguments_are_stored_as_written(read_kineto: Read) -> None:
    text = '{"External id": 5,\n "Process Group Ranks":"[0, 1]", "odd": 1.50}'
    reading = read_kineto('[{"ph": "X", "name": "c10d::allreduce_", "ts": 1, "args": ' + text + "}]")
    assert reading.rows("argument") == [{"event_id": 0, "args": text}]


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("record_param_comms", True),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", True),
        ("NCCL:all_gather", True),
        ("rcclGenericKernel", True),
        ("hccl:reduce", True),
        ("xccl:all_reduce", True),
        ("mccl:all_reduce", True),
        ("cncl:all_gather", True),
        ("gloo:all_reduce", True),
        ("c10d::broadcast_", True),
        ("mpi:barrier", True),
        ("ucc:alltoall", True),
        ("aten::mm", False),
        ("ProfilerStep#7", False),
    ],
)
def test_only_arguments_of_communication_are_kept_by_default(read_kineto: Read, name: str, is_kept: bool) -> None:
    trace = [{"ph": "X", "name": name, "ts": 1, "args": {"External id": 1}}]
    assert bool(read_kineto(trace).rows("argument")) is is_kept
    assert read_kineto(trace, keep_all_args=True).rows("argument") == [{"event_id": 0, "args": '{"External id": 1}'}]


def test_a_collective_is_recognised_by_its_arguments_whatever_its_name(read_kineto: Read) -> None:
    reading = read_kineto([{"ph": "X", "name": "deep_ep_kernel", "ts": 1, "args": ALL_REDUCE}])
    assert [row["collective_name"] for row in reading.rows("collective")] == ["allreduce"]
    assert reading.rows("argument") == []


def test_missing_keys_of_older_versions_are_null(read_kineto: Read) -> None:
    # given the keys of PyTorch 2.3
    args = {
        key: ALL_REDUCE[key] for key in ("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size")
    }
    (row,) = read_kineto([{"ph": "X", "name": "nccl", "ts": 1, "args": args}]).rows("collective")
    assert (row["collective_name"], row["group_size"]) == ("allreduce", 8)
    assert (row["sequence"], row["process_group_name"], row["is_asynchronous"]) == (None, None, None)


def test_odd_values_of_a_collective_become_null_and_are_counted(read_kineto: Read) -> None:
    args = {
        "Collective name": "wait",
        "Group size": 2**31,
        "In msg nelems": "many",
        "Seq": "12",
        "Is asynchronized op": "x",
    }
    reading = read_kineto([{"ph": "X", "name": "nccl", "ts": 1, "args": args}])
    (row,) = reading.rows("collective")
    assert (row["group_size"], row["in_elements"], row["sequence"], row["is_asynchronous"]) == (None, None, 12, None)
    assert reading.issue("kineto_out_of_range").count == 1
    assert reading.issue("kineto_wrong_type").count == 2
    assert reading.issue("kineto_wrong_type").first_at == "event 0"


def test_ranks_given_as_a_list_are_kept_as_text(read_kineto: Read) -> None:
    args = {"Collective name": "broadcast", "Process Group Ranks": [0, 1]}
    (row,) = read_kineto([{"ph": "X", "name": "nccl", "ts": 1, "args": args}]).rows("collective")
    assert row["process_group_ranks"] == "[0, 1]"


@pytest.mark.parametrize("unit_bytes", [1, 300, 100_000])
def test_rows_point_at_their_events_whatever_the_unit_size(read_kineto: Read, unit_bytes: int) -> None:
    # given a collective as every third event
    events = [
        {
            "ph": "X",
            "name": "nccl" if number % 3 == 0 else "aten::mm",
            "ts": number,
            "args": {"Seq": number, **ALL_REDUCE},
        }
        if number % 3 == 0
        else {"ph": "X", "name": "aten::mm", "ts": number}
        for number in range(30)
    ]
    for number in range(0, 30, 3):
        events[number]["args"] = {**ALL_REDUCE, "Seq": number}
    reading = read_kineto({"traceEvents": events}, unit_bytes=unit_bytes)
    assert [(row["event_id"], row["sequence"]) for row in reading.rows("collective")] == [
        (number, number) for number in range(0, 30, 3)
    ]
    assert [json.loads(row["args"])["Seq"] for row in reading.rows("argument")] == list(range(0, 30, 3))


MEMBERS = [
    '"Seq": 5', '"Seq": 6', '"Seq":0', '"Seq": 07', '"Seq": -3', '"Seq": "5"', '"Seq": 5.0',
    '"Seq": 99999999999999999999',
    '"deep": {"Seq": 5}', '"deep": {"Seq": 6}', '"name": "\\"Seq\\": 5"', '"External id": 5', '"External id": 6',
    '"correlation": 5', '"deep": {"correlation": 5}', '"Group size": 8', '"Group size": 9', '"Group size": "many"',
    '"Collective name": "allreduce"', '"Collective name": "External id"', '"Is asynchronized op": "x"', '"Rank": 2',
]  # fmt: skip


def said_of(texts: list[str]) -> tuple[list[dict[str, object]], dict[str, int]]:
    """Rows of raw.collective and issues, of events that come one after the other."""
    issues = new_log()
    collector = CommunicationArgs(keep_all=False, issues=issues)
    for place, text in enumerate(texts):
        collector.add_text(place, text.encode(), is_communication=True)
    rows = [row for batch in collector.flush() if batch.table == "raw.collective" for row in batch.rows.to_dicts()]
    return rows, {issue.code: issue.count for issue in issues}


@settings(max_examples=300, deadline=None)
@example([['"Seq": 5', '"deep": {"correlation": 5}'], ['"External id": 5', '"deep": {"Seq": 5}']])
@example([['"Seq": 7', '"\\u0053eq": 7'], ['"Seq": 5', '"\\u0053eq": 7']])
@example([['"Rank": 2 "External id": 5'], ['"Rank": 2 ']])
@given(st.lists(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=4), min_size=1, max_size=6))
def test_what_is_read_of_one_call_does_not_depend_on_the_calls_before(events: list[list[str]]) -> None:
    texts = ["{" + ", ".join(['"In msg nelems": 1', *members]) + "}" for members in events]

    rows, issues = said_of(texts)

    alone = [said_of([text]) for text in texts]
    assert [row | {"event_id": 0} for row in rows] == [row for own, _ in alone for row in own]
    assert issues == sum((Counter(own) for _, own in alone), Counter())


def test_calls_that_differ_in_counting_numbers_alone_keep_their_own() -> None:
    texts = [json.dumps(ALL_REDUCE | {"Seq": 17 + n, "External id": 100 + n, "correlation": n}) for n in range(3)]

    rows, _ = said_of(texts)

    assert [row["sequence"] for row in rows] == [17, 18, 19]
    assert len({json.dumps(row | {"event_id": 0, "sequence": 0}) for row in rows}) == 1


def test_a_sequence_number_of_something_within_the_arguments_is_not_the_calls() -> None:
    texts = [f'{{"In msg nelems": 1, "deep": {{"Seq": {number}}}}}' for number in (5, 6)]

    rows, _ = said_of(texts)

    assert [row["sequence"] for row in rows] == [None, None]
