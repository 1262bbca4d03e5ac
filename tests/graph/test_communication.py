"""What ranks say they communicate, compared without any times."""

import pytest

from tests.given import rows_of, store_of
from tests.graph.recordings import add_execution_trace, compared
from traceforge.store.database import Store

Recording = tuple[list[dict[str, object]], list[dict[str, object]]]
GROUP = {"process_group_name": "dp", "size": 2, "ranks": [0, 1]}


def call(name: str = "all_reduce", elements: int = 1000, **columns: object) -> dict[str, object]:
    stated = {"in_bytes": 4 * elements, "dtype": "Float", "process_group_name": "dp", "group_size": 2}
    return {"origin": "record_param_comms", "collective_name": name, **stated, **columns}


def job(*ranks: list[dict[str, object]], on_host: bool = True) -> Store:
    """Execution traces of some ranks, each with its calls in order; node ids count from 100."""
    store = store_of()
    for rank, calls in enumerate(ranks):
        nodes = [{"name": "call", "node_id": 100 + place, "is_cpu": on_host} for place in range(len(calls))]
        placed = [{"position": place, "node_id": 100 + place, **one} for place, one in enumerate(calls)]
        add_execution_trace(store, nodes, calls=placed, groups=[GROUP], rank=rank)
    return compared(store)


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

    assert rows_of(compared(store), "SELECT status FROM graph.divergence") == [("not_comparable",)]


def test_volumes_count_each_kind_of_group_once_and_messages_where_they_are_sent() -> None:
    # given two ranks, each in a tensor-parallel group of its own, and a message from rank 0 to rank 1
    store = store_of()
    for rank, message in enumerate((call("send", 10, destination_rank=1), call("recv", 10, source_rank=0))):
        own = {"process_group_name": f"{rank}", "description": "mesh_tp", "size": 2, "ranks": [rank, rank + 2]}
        calls = [call(elements=1000 + rank, process_group_name=f"{rank}"), {**message, "process_group_name": "pp"}]
        nodes = [{"name": "record_param_comms", "node_id": 100 + place} for place in range(2)]
        placed = [{"position": place, "node_id": 100 + place, **one} for place, one in enumerate(calls)]
        add_execution_trace(store, nodes, calls=placed, groups=[own], rank=rank)

    found = rows_of(compared(store), "SELECT * EXCLUDE (run_id) FROM graph.volume")

    assert found == [("mesh_tp", 2, 2, 2, 8004), ("pp", 1, 1, 1, 40)]


OPERATIONS = ("aten::mm", "aten::add", "aten::relu", "aten::layer_norm", "aten::gelu")


def program(calls: list[dict[str, object]], lacking: int | None = None, until: int | None = None) -> Recording:
    """Nodes and calls of a rank that does something of its own before each call, and once more behind the last one."""
    nodes: list[dict[str, object]] = []
    made: list[dict[str, object]] = []
    for place, one in enumerate(calls):
        nodes += [{"name": OPERATIONS[place % 5]}] * (1 + place // 5)
        if place == until:
            return nodes, made
        if place != lacking:
            made.append({**one, "position": len(nodes), "node_id": len(nodes)})
            nodes.append({"name": "record_param_comms"})
    return [*nodes, {"name": "aten::lerp_"}], made


def recorded(*ranks: Recording) -> Store:
    """Execution traces of ranks by their nodes and calls."""
    store = store_of()
    for rank, (nodes, calls) in enumerate(ranks):
        add_execution_trace(store, nodes, calls=calls, groups=[GROUP], rank=rank)
    return compared(store)


GAP = "SELECT status, first_place, last_place, call_count, rank, found, expected, peer_count FROM graph.divergence"


def test_a_call_that_one_rank_lacks_in_the_middle_is_missing() -> None:
    # given four ranks of which rank 2 lacks the fourth call of twenty, each of another size
    calls = [call(elements=100 + place) for place in range(20)]

    store = job(calls, calls, calls[:3] + calls[4:], calls)

    # then it is told which call rank 2 lacks, and where
    assert rows_of(store, GAP) == [("missing", 3, 3, 1, 2, "no call", "all_reduce 412 bytes float", 3)]
    said = (
        "ranks do not issue the same collectives in process group dp: at call 3, rank 2 has no call, others all_reduce "
        "412 bytes float"
    )
    issues = rows_of(store, "SELECT first_at, detail FROM meta.issue WHERE code = 'sequence_diverges'")
    assert issues == [("rank 2, node 102", said)]


def test_a_call_that_only_one_rank_makes_is_one_too_many() -> None:
    calls = [call(elements=100 + place) for place in range(6)]

    store = job(calls, [*calls[:2], call("broadcast", 7), *calls[2:]], calls)

    assert rows_of(store, GAP) == [("extra", 2, 2, 1, 1, "broadcast 28 bytes float", "no call", 2)]


def test_what_lies_between_equal_calls_tells_which_one_is_missing() -> None:
    # given twenty equal calls, of which rank 2 lacks the twelfth, and goes on to the end of the program
    whole = program([call()] * 20)

    store = recorded(whole, whole, program([call()] * 20, lacking=11), whole)

    # then it is no recording that ends earlier
    assert rows_of(store, GAP) == [("missing", 11, 11, 1, 2, "no call", "all_reduce 4000 bytes float", 3)]


def test_a_recording_of_equal_calls_that_stops_in_the_middle_is_merely_shorter() -> None:
    whole = program([call()] * 20)

    store = recorded(whole, whole, program([call()] * 20, until=11), whole)

    assert rows_of(store, GAP)[0][:5] == ("shorter", 11, 11, 9, 2)
    assert rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'graph'") == []


def test_a_recording_that_begins_one_call_later_is_merely_shorter() -> None:
    calls = [call(elements=100 + place) for place in range(6)]

    assert rows_of(job(calls, calls[1:], calls), "SELECT status FROM graph.divergence") == [("shorter",)]


def test_a_recording_that_begins_later_and_ends_earlier_is_merely_shorter() -> None:
    calls = [call(elements=100 + place) for place in range(6)]

    assert rows_of(job(calls, calls[1:-1], calls), "SELECT status FROM graph.divergence") == [("shorter",)]


def test_a_skipped_call_is_missing_although_later_calls_are_numbered_on() -> None:
    # given numbers from 300 on all ranks; rank 1 does not make the fourth call, and counts on
    calls = [call(elements=100 + place) for place in range(8)]
    less = calls[:3] + calls[4:]
    numbered = [[{**one, "sequence": 300 + at} for at, one in enumerate(own)] for own in (calls, less, calls)]

    assert rows_of(job(*numbered), GAP)[0][:5] == ("missing", 303, 303, 1, 1)


def test_a_number_that_a_rank_skips_is_a_call_that_its_recording_lost() -> None:
    # given numbers from 300 on all ranks; rank 1 has no record of number 303, and 304 for what others number 304
    calls = [{**call(elements=100 + place), "sequence": 300 + place} for place in range(8)]

    store = job(calls, calls[:3] + calls[4:], calls)

    # then nothing is said of its program
    assert rows_of(store, GAP)[0][:5] == ("unrecorded", 303, 303, 1, 1)
    assert rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'graph'") == [("call_not_recorded",)]


PAIR = (
    "SELECT source_rank, destination_rank, status, first_place, send_node_id, receive_node_id FROM graph.message_pair"
)


def messages(*sizes: int, sent: bool) -> list[dict[str, object]]:
    """Messages from rank 0 to rank 1 as one of both records them."""
    if sent:
        return [call("send", size, source_rank=0, destination_rank=1, tag=1) for size in sizes]
    return [call("recv", size, source_rank=0, destination_rank=1, tag=1) for size in sizes]


@pytest.mark.parametrize(
    ("sent", "received", "found"),
    [
        ((1, 2, 3), (1, 2, 3), ("agrees", None, None, None)),
        ((1, 2, 3), (1, 3), ("unreceived", 1, 101, None)),
        ((1, 3), (1, 2, 3), ("unsent", 1, None, 101)),
        ((1, 2, 3), (1, 5, 3), ("size", 1, 101, 101)),
        ((1, 2, 3), (1, 3, 2), ("order", 1, 101, 101)),
        ((1, 2, 3), (1, 2), ("shorter", 2, 102, None)),
        ((1, 2, 3, 4), (2, 3), ("shorter", 0, 100, None)),
    ],
)
def test_a_message_that_only_one_side_records_is_told(
    sent: tuple[int, ...], received: tuple[int, ...], found: tuple[object, ...]
) -> None:
    store = job(messages(*sent, sent=True), messages(*received, sent=False))

    assert rows_of(store, PAIR) == [(0, 1, *found)]
    codes = {"agrees": [], "shorter": [("message_side_not_recorded",)]}.get(
        str(found[0]), [("message_without_partner",)]
    )
    assert rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'graph'") == codes


def test_a_last_message_is_unreceived_if_the_receiver_goes_on_with_a_later_collective() -> None:
    # given a send that nobody receives, and an all-reduce of both ranks behind it
    store = job([*messages(1, sent=True), call()], [call()])

    assert rows_of(store, PAIR) == [(0, 1, "unreceived", 0, 100, None)]


def test_a_message_to_a_rank_without_a_file_is_not_judged() -> None:
    assert rows_of(job([call("send", destination_rank=7), call()], [call()]), PAIR) == []


def test_calls_of_unknown_kind_make_no_rank_look_odd() -> None:
    # given that rank 2 states the kind of none of its calls, and rank 1 not that of one
    calls = [call(elements=size, origin="attributes") for size in (1, 2, 3)]
    unknown = {"collective_name": None}

    store = job(
        calls, [calls[0], {**calls[1], **unknown}, calls[2]], [{**one, **unknown} for one in calls], on_host=False
    )

    assert rows_of(store, STATUS)[0][:2] == ("agrees", 3)
    assert rows_of(store, "SELECT COUNT(*) FROM graph.communication WHERE op IS NULL") == [(4,)]


def test_a_host_operation_that_launches_a_call_is_no_call_of_its_own() -> None:
    calls = [call(origin="attributes"), call(origin="attributes", collective_name=None)]

    assert rows_of(job(calls, calls), "SELECT COUNT(*) FROM graph.communication") == [(2,)]
