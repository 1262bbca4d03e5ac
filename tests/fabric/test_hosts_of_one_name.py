"""Containers that are all called alike are hosts of their own where something else than the name tells them apart."""

import pytest

from tests.fabric.logs import Process, fabric_of

HOSTS = """
SELECT p.host, COUNT(*), MIN(c.rank), MAX(c.rank)
FROM fabric.process AS p
JOIN raw.nccl_communicator AS c USING (source_id, process_id)
GROUP BY p.host
ORDER BY p.host
"""


def members(*, address: str = "", ranks_of_node: int = 0) -> list[Process]:
    """Four ranks of one communicator on two nodes of two GPUs each, all called `a`."""
    found = []
    for rank in range(4):
        process = Process(rank, device=rank % 2)
        if address:
            process.says(f"Bootstrap: Using eth0:{address.format(rank // 2)}<0>")
        if ranks_of_node:
            process.says(
                f"comm 0xa0 rank {rank} nRanks 4 nNodes 2 localRanks {ranks_of_node} localRank {rank % 2} MNNVL 0"
            )
        found.append(process.init(size=4))
    return found


def hosts(processes: list[Process]) -> list[tuple[object, ...]]:
    with fabric_of(*([process] for process in processes), asked="fabric.process") as store:
        return store.query(HOSTS).rows()


@pytest.mark.parametrize("ranks_of_node", [0, 2])
def test_two_ranks_on_one_gpu_are_of_the_hosts_that_their_addresses_name(ranks_of_node: int) -> None:
    found = hosts(members(address="10.0.0.{}", ranks_of_node=ranks_of_node))

    assert found == [("a (10.0.0.0)", 2, 0, 1), ("a (10.0.0.1)", 2, 2, 3)]


def test_where_addresses_are_alike_the_ranks_of_a_node_tell_hosts_apart() -> None:
    found = hosts(members(address="172.17.0.2", ranks_of_node=2))

    assert found == [("a (of rank 0)", 2, 0, 1), ("a (of rank 2)", 2, 2, 3)]


def test_ranks_that_reach_each_other_at_the_loopback_are_of_one_host_whatever_nccl_is_told() -> None:
    # NCCL_HOSTID lets one machine pass for several; no other machine answers at 127.0.0.1.
    assert hosts(members(address="127.0.0.1", ranks_of_node=2)) == [("a", 4, 0, 3)]


def test_where_nothing_tells_hosts_apart_they_stay_one() -> None:
    assert hosts(members()) == [("a", 4, 0, 3)]


def test_a_host_of_which_no_gpu_has_two_ranks_keeps_its_name_whatever_its_addresses() -> None:
    processes = [Process(n, device=n).says(f"Bootstrap: Using eth{n}:10.0.0.{n}<0>").init() for n in range(2)]

    assert hosts(processes) == [("a", 2, 0, 1)]
