"""Logs of another job, or of a part of the ranks, beside timelines."""

import pytest

from tests.fabric.logs import Process, add_logs, fabric_of
from tests.given import Trace, built, rows_of, store_of
from traceforge.attribute.log_text import lasting_problems
from traceforge.store.database import Store

ISSUES = "SELECT code, count FROM meta.issue WHERE stage = 'fabric'"
TRUNK = "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"


def _timelines(ranks: int, *, are_stated: bool = True) -> Store:
    """Three iterations of ranks that reduce together; whether they state who takes part."""
    members = list(range(ranks))
    groups = (("0", "default_pg", members),) if are_stated else ()
    traces = [Trace(rank, groups=groups) for rank in members]
    for trace in traces:
        for turn in range(3):
            trace.step(turn, 1_000 * turn, 1_000 * turn + 1_000)
            stated = {"group": "0", "ranks": members} if are_stated else {}
            trace.collective(1_000 * turn + 600, 1_000 * turn + 700, **stated)  # type: ignore[arg-type]
    return store_of(*traces)


def _logs(ranks: int, of: int) -> list[Process]:
    """Logs of the first ranks of a communicator."""
    return [Process(rank, host="ab"[rank % 2]).init(size=of) for rank in range(ranks)]


def test_logs_of_all_ranks_are_not_questioned() -> None:
    store = _timelines(2)
    add_logs(store, _logs(2, of=2))

    assert rows_of(built(store, "fabric"), ISSUES) == []


def test_logs_of_some_ranks_speak_for_these() -> None:
    store = _timelines(4)
    add_logs(store, _logs(1, of=4))

    assert rows_of(built(store, "fabric"), ISSUES) == [("nccl_log_of_part", 3)]


def test_logs_whose_largest_communicator_is_smaller_are_of_another_job() -> None:
    store = _timelines(4)
    add_logs(store, _logs(2, of=2))

    assert rows_of(built(store, "fabric"), ISSUES) == [("nccl_log_other_job", 2)]


def test_ranks_that_communicate_on_their_hosts_are_in_no_log() -> None:
    # given four ranks that reduce by gloo, and logs of two processes
    traces = [Trace(rank) for rank in range(4)]
    for trace in traces:
        for turn in range(3):
            trace.step(turn, 1_000 * turn, 1_000 * turn + 1_000).gloo(1_000 * turn + 600, 1_000 * turn + 700)
    store = store_of(*traces)
    add_logs(store, _logs(2, of=2))

    assert rows_of(built(store, "fabric"), ISSUES) == []


def test_members_that_timelines_do_not_state_accuse_no_log() -> None:
    store = _timelines(4, are_stated=False)
    add_logs(store, _logs(2, of=2))

    assert rows_of(built(store, "fabric"), ISSUES) == [("nccl_log_of_part", 2)]


def test_what_logs_of_another_job_show_is_no_problem_of_this_one() -> None:
    # given logs in which a rank reaches another host through a socket, though there is InfiniBand
    verdicts = []
    for of in (4, 2):
        store = _timelines(4)
        processes = _logs(2, of=of)
        for process in processes:
            process.says(TRUNK).sends(1 - process.rank, "NET/Socket/0")
        add_logs(store, processes)
        built(store, "fabric")
        verdicts.append(bool(lasting_problems(store)))

    assert verdicts == [True, False]


def test_connections_of_a_log_that_begins_behind_its_inits_are_counted() -> None:
    # given one log that holds no init, and one that does
    late = [Process(0).says("Connected all trees").sends(1, "NET/IB/0").sends(1, "NET/IB/0", channel=1)]
    whole = [Process(rank, host="cd"[rank]).init().sends(1 - rank, "NET/IB/0") for rank in range(2)]

    with fabric_of(late, whole) as store:
        rows = rows_of(store, "SELECT source_id, code, count, first_at FROM meta.issue WHERE stage = 'fabric'")

    assert rows == [(0, "nccl_link_unplaced", 2, "line 2")]


def _late_pair() -> list[Process]:
    """Two hosts whose log begins behind the inits: each connection between them is logged at both ends."""
    first, second = Process(0, host="a").says("Connected all trees"), Process(1, host="b").says("Connected all trees")
    return [first.sends(1, "NET/IB/0").receives(1, "NET/IB/0"), second.sends(0, "NET/IB/0").receives(0, "NET/IB/0")]


def test_connections_of_logs_that_all_begin_late_are_judged_but_name_no_communicator() -> None:
    with fabric_of(_late_pair()) as store:
        assert rows_of(store, "SELECT code, ranks FROM fabric.finding") == [("gdr_off", [])]
        assert rows_of(store, "SELECT rank, host, identity, global_rank_origin FROM fabric.member ORDER BY ALL") == [
            (0, "a", "implied", "unknown"),
            (1, "b", "implied", "unknown"),
        ]
        assert rows_of(store, "SELECT source_host, target_host FROM fabric.edge") == [("a", "b"), ("b", "a")]
        assert rows_of(store, "SELECT DISTINCT origin FROM fabric.link") == [("implied",)]
        assert rows_of(store, "FROM fabric.communicator") == []
        assert rows_of(store, "FROM fabric.ring") == []
        assert rows_of(store, ISSUES) == [("nccl_communicator_implied", 2)]


@pytest.mark.parametrize(
    "more",
    [
        # The same rank in a second process, as of another communicator.
        [Process(1, host="c").sends(0, "NET/IB/0")],
        # A process that is two ranks.
        [Process(2, host="c").sends(0, "P2P/IPC").sends(2, "P2P/IPC", rank=3)],
        # The same connection in two ways.
        [Process(2, host="c").sends(3, "P2P/IPC").sends(3, "NET/IB/0")],
    ],
)
def test_connections_of_several_communicators_that_no_log_names_are_not_judged(more: list[Process]) -> None:
    with fabric_of(_late_pair(), more) as store:
        assert rows_of(store, "FROM fabric.edge") == []
        assert {code for code, _ in rows_of(store, ISSUES)} == {"nccl_link_unplaced"}


def test_a_connection_that_states_its_communicator_needs_no_init() -> None:
    # given RCCL, which prints the communicator behind each connection
    tail = "comm 0xa0 nRanks 02 busId 1000"
    late = [Process(0).says(f"Channel 00/0 : 0[0] -> 1[0] via SHM/direct/direct {tail}")]

    with fabric_of(late) as store:
        assert rows_of(store, "SELECT rank_count, member_count, ranks FROM fabric.communicator") == [(2, 1, None)]
        assert rows_of(store, "SELECT path_class, source_host FROM fabric.edge") == [("shared_memory", "a")]
