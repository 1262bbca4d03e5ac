"""Rings, connections and the load of NICs are rebuilt from what each rank prints."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fabric.logs import Process, fabric_of
from tests.fabric.network_stories import joined_by_nvlink
from traceforge.fabric.ring import is_closed, longest_walk

GDR = "NET/IB/{}/GDRDMA"


def two_hosts(via: str = GDR) -> list[Process]:
    """Two GPUs on each of two hosts; the ring 0 -> 1 -> 2 -> 3 -> 0 leaves a host on NIC 1 and arrives on NIC 0."""
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for process in processes:
        process.says("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>")
    for near, far in ((0, 1), (2, 3)):
        processes[near].sends(far, "P2P/IPC")
        processes[far].sends((far + 1) % 4, via.format(1))
        processes[(far + 1) % 4].receives(far, via.format(0))
    return processes


def test_both_ends_of_a_connection_make_one_edge_with_both_nics() -> None:
    with fabric_of(two_hosts(), asked="fabric.edge") as store:
        rows = store.query(
            "SELECT source_rank, target_rank, path_class, send_nic, receive_nic, source_host, target_host"
            " FROM fabric.edge ORDER BY source_rank"
        ).rows()

    assert rows == [
        (0, 1, "p2p", None, None, "a", "a"),
        (1, 2, "network_gdr", 1, 0, "a", "b"),
        (2, 3, "p2p", None, None, "b", "b"),
        (3, 0, "network_gdr", 1, 0, "b", "a"),
    ]


def test_a_ring_is_rebuilt_from_its_connections() -> None:
    with fabric_of(two_hosts(), asked="fabric.ring") as store:
        rows = store.query("SELECT position, rank, next_rank, origin, is_complete FROM fabric.ring").rows()

    assert rows == [
        (0, 0, 1, "edges", True),
        (1, 1, 2, "edges", True),
        (2, 2, 3, "edges", True),
        (3, 3, 0, "edges", True),
    ]


def test_a_ring_cut_short_in_its_line_is_taken_from_the_connections() -> None:
    # given a line that stops after two of four ranks, as NCCL's buffer makes it stop at 20
    processes = two_hosts()
    processes[0].says("Channel 00/01 :    0   1")

    with fabric_of(processes, asked="fabric.ring") as store:
        origin = store.query("SELECT DISTINCT origin, is_complete FROM fabric.ring").rows()

    assert origin == [("edges", True)]


def test_a_ring_with_a_missing_log_is_incomplete() -> None:
    # given the logs of host a alone: 3 -> 0 -> 1 -> 2 is told, 2 -> 3 is not
    with fabric_of(two_hosts()[:2], asked="fabric.ring") as store:
        rows = store.query("SELECT rank, is_complete FROM fabric.ring ORDER BY position").rows()

    assert [rank for rank, _ in rows] == [3, 0, 1, 2]
    assert not any(complete for _, complete in rows)


@given(order=st.permutations(range(9)))
def test_any_closed_walk_is_found_whole(order: list[int]) -> None:
    successors = dict(zip(order, [*order[1:], order[0]], strict=True))

    walk = longest_walk(successors)

    assert sorted(walk) == list(range(9))
    assert is_closed(successors, walk)


@given(successors=st.dictionaries(st.integers(0, 8), st.integers(0, 8), min_size=1))
def test_a_walk_passes_no_rank_twice_whatever_the_log_says(successors: dict[int, int]) -> None:
    walk = longest_walk(successors)

    assert len(set(walk)) == len(walk)
    assert all(successors[a] == b for a, b in itertools.pairwise(walk))


def test_bytes_of_calls_are_spread_over_the_nics_of_the_ring() -> None:
    # given one all-reduce of 4 x 256 bytes among 4 ranks: a ring link carries 2 x 3/4 of 1,024 bytes
    processes = [process.calls(size=4) for process in two_hosts()]

    with fabric_of(processes, asked="fabric.nic_load") as store:
        rows = store.query(
            "SELECT nic, name, ranks, edge_count, edge_share, send_bytes FROM fabric.nic_load"
            " WHERE host = 'a' ORDER BY nic"
        ).rows()

    assert rows == [
        (0, "mlx5_0", [0], 1, pytest.approx(0.5), None),
        (1, "mlx5_1", [1], 1, pytest.approx(0.5), 1_536),
        (2, "mlx5_2", [], 0, 0.0, None),
    ]


def test_a_choice_belongs_to_the_last_call_of_its_process_and_size() -> None:
    choice = "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"
    processes = [Process(rank).init().init(comm=0xB0, comm_hash="0x2").calls(comm=0xB0) for rank in range(2)]
    processes[0].says(choice).calls(comm=0xA0).says(choice)

    with fabric_of(processes, asked="fabric.choice fabric.communicator") as store:
        rows = store.query(
            "SELECT k.comm_hash, c.op, c.algorithm, c.protocol, c.channel_high, c.choices FROM fabric.choice AS c"
            " JOIN fabric.communicator AS k USING (run_id, communicator_id) ORDER BY ALL"
        ).rows()

    assert rows == [("0x2", "all_reduce", "ring", "ll", 3, 1), ("0xfeed", "all_reduce", "ring", "ll", 3, 1)]


def _two_hosts(second_end: str) -> list[Process]:
    """A rank on each of two hosts, which send to each other: one uses GPU Direct RDMA, the other this."""
    processes = [Process(rank, host="ab"[rank]).init() for rank in range(2)]
    for process, via in zip(processes, (GDR.format(0), second_end), strict=True):
        process.sends(1 - process.rank, via).receives(1 - process.rank, via)
    return processes


def test_an_end_that_copies_is_told_from_the_other() -> None:
    # given a second host that has GPU Direct RDMA off
    with fabric_of(_two_hosts("NET/IB/0")) as store:
        rows = store.query("SELECT subject_kind, subject, ranks, summary FROM fabric.finding").rows()

    ((kind, subject, ranks, summary),) = rows
    assert (kind, subject, ranks) == ("host", "b", [1])
    assert summary.startswith("GPU Direct RDMA is off at the end of host b for all 2 network connections (rank 1)")


def test_a_connection_with_a_socket_at_one_end_is_of_that_rank() -> None:
    with fabric_of(_two_hosts("NET/Socket/0")) as store:
        rows = store.query("SELECT code, ranks FROM fabric.finding").rows()

    assert rows == [("socket_fallback", [1])]


def test_nvlink_between_hosts_belongs_to_the_communicator_that_spans_them() -> None:
    # given a rank that is the first of a pair on its host and of a pair across hosts, and connects after both inits
    first = Process(0, host="a").init(0).init(0, comm=0xB0, comm_hash="0x2")
    near, far = Process(1, host="a", device=1).init(1), Process(2, host="b").init(1, comm=0xB0, comm_hash="0x2")

    with fabric_of([first.sends(1, "P2P/MNNVL"), near, far], asked="fabric.edge") as store:
        rows = store.query("SELECT path_class, source_host, target_host FROM fabric.edge").rows()

    assert rows == [("p2p", "a", "b")]


def test_nics_that_ucx_lists_as_those_of_infiniband_are_its_own() -> None:
    first, second = (Process(rank, host="ab"[rank]).init() for rank in range(2))
    for process in (first, second):
        process.says("NET/IB : Using [0]bnxt_re0:1/RoCE ; OOB eth0:10.0.0.1<0>", "Using network UCX")
        process.sends(1 - process.rank, "NET/UCX/0/GDRDMA")

    with fabric_of([first, second], asked="fabric.nic_load") as store:
        rows = store.query("SELECT host, name, edge_count FROM fabric.nic_load ORDER BY ALL").rows()

    assert rows == [("a", "bnxt_re0", 1), ("b", "bnxt_re0", 1)]


@pytest.mark.parametrize(
    ("domains", "state", "codes"),
    [("77", 3, ["nvlink_unused"]), ("79", 3, []), ("00", 3, []), ("77", 2, [])],
    ids=["one rack", "two racks", "no such machines", "not made"],
)
def test_nvlink_joins_hosts_of_one_domain_alone(domains: str, state: int, codes: list[str]) -> None:
    with fabric_of(joined_by_nvlink(domains=domains, state=state), asked="fabric.finding") as store:
        assert store.query("SELECT code FROM fabric.finding")["code"].to_list() == codes
