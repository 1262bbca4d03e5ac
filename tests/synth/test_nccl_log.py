"""The generator's own debug logs: what each version words differently, and what faults leave in them."""

import re
from functools import cache
from pathlib import Path

import pytest

from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, wiring_of
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_channels import communicator_of
from traceforge.synth.nccl_grammar import GRAMMARS, NcclLogs
from traceforge.synth.nccl_log import log_files
from traceforge.synth.scenario import Scenario, run, scenario_of
from traceforge.synth.wiring import Wiring


@cache
def logs(version: str = "2.27.5", *faults: Injection, stamped: bool = False, by_host: bool = False) -> dict[str, str]:
    """Logs of two hosts of four devices, tensor-parallel in pairs, two iterations."""
    scenario = Scenario("job", 1, 2, cluster=Cluster(2, 4, 2), faults=faults)
    return dict(log_files(run(scenario), NcclLogs(version, stamped, by_host)))


def test_shards_log_what_they_gather_and_scatter() -> None:
    scenario = Scenario("job", 1, 2, cluster=Cluster(2, 2, shard=4))
    text = dict(log_files(run(scenario), NcclLogs("2.27.5")))["nccl.node0.1001.log"]

    # two iterations of four layers of 50,000,000 bytes, gathered twice; a rank's part is a quarter
    calls = re.findall(r"INFO (\w+): opCount \w+ .* count (\d+) datatype 9 .* \[nranks=4\]", text)
    assert calls.count(("AllGather", "6250000")) == 2 * 4 * 2
    assert calls.count(("ReduceScatter", "6250000")) == 2 * 4


@pytest.mark.parametrize("version", GRAMMARS)
def test_each_rank_logs_the_collectives_of_the_program_in_order(version: str) -> None:
    # given two iterations of: 4 forward and 4 backward all-reduces of a pair, and 2 buckets of all pairs
    text = logs(version)["nccl.node0.1001.log"]

    # then each is a line, behind the barrier and the broadcast of the parameters
    calls = re.findall(r"INFO (\w+): opCount \w+ .* count (\d+) datatype (\d+) .* \[nranks=(\d)\]", text)
    assert calls[:2] == [("AllReduce", "1", "1", "8"), ("Broadcast", "100000000", "9", "4")]
    assert len(calls) == 2 + 2 * 10
    assert calls[2:12].count(("AllReduce", "8000000", "9", "2")) == 8
    assert calls[2:12].count(("AllReduce", "50000000", "9", "4")) == 2


def test_versions_word_choices_differently() -> None:
    old, new = logs("2.21.5")["nccl.node0.1000.log"], logs("2.27.5")["nccl.node0.1000.log"]

    assert re.search(r"INFO 16000000 Bytes -> Algo 1 proto 2 time \d+\.\d+\n", old)
    assert "INFO AllReduce: 16000000 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n" in new


def test_connections_are_made_in_the_init_until_2_21_and_at_the_first_call_since() -> None:
    old, new = logs("2.21.5")["nccl.node1.1006.log"], logs("2.27.5")["nccl.node1.1006.log"]

    assert old.index("Channel 00/0 :") < old.index("Init COMPLETE") < old.index("opCount")
    assert new.rindex("Init COMPLETE") < new.index("opCount") < new.index("Channel 00/0 :")


def test_op_count_stands_still_within_a_node_since_2_27() -> None:
    count = r"opCount (\w+) .* \[nranks=2\]"

    assert set(re.findall(count, logs("2.27.5")["nccl.node0.1000.log"])) == {"0"}
    assert len(set(re.findall(count, logs("2.21.5")["nccl.node0.1000.log"]))) == 16


def test_stamps_ascend_and_the_lines_of_a_host_are_mixed_by_time() -> None:
    text = logs(stamped=True, by_host=True)["nccl.node1.log"]

    stamps = [line[:28] for line in text.splitlines()]
    assert stamps == sorted(stamps)
    assert re.fullmatch(r"\[2025-01-01 00:00:\d\d\.\d{6}\]", stamps[0])
    assert len(set(re.findall(r"node1:(\d+):", text))) == 4


@pytest.mark.parametrize("settings", [NcclLogs("1.0"), NcclLogs("2.21.5", stamped=True)])
def test_what_a_version_cannot_print_is_a_usage_error(settings: NcclLogs) -> None:
    with pytest.raises(UsageError):
        settings.grammar()


def test_a_healthy_job_uses_near_nics_directly() -> None:
    text = "".join(logs().values())

    assert "via SHM" not in text
    assert set(re.findall(r"via NET/IB/\d(?:\(\d\))?(.*)", text)) == {"/GDRDMA"}


def test_a_far_nic_shows_in_paths_and_connections() -> None:
    # given rank 1, whose NIC 1 is near and whose NIC 3 hangs on the other socket
    text = logs("2.27.5", Injection("far_nic", 1))["nccl.node0.1001.log"]

    assert "NET/0-1 (3/48.0/PIX)" in text
    assert "NET/0-3 (7/10.0/SYS)" in text
    assert re.search(r"\[receive\] via NET/IB/3\n", text)
    assert "GPU Direct RDMA Disabled for GPU 1b000 / HCA 3 (distance 9 > 5)" in text


def test_lost_peer_access_shows_as_shared_memory_on_that_host_alone() -> None:
    found = logs("2.27.5", Injection("p2p_lost", 1))

    assert [("via SHM" in text, "via P2P" in text) for text in found.values()] == [(False, True)] * 4 + [
        (True, False)
    ] * 4
    assert "NCCL_P2P_DISABLE set by environment to 1." in found["nccl.node1.1004.log"]


def test_a_fault_that_comes_later_does_not_show_at_the_start() -> None:
    assert wiring_of(Cluster(2, 4), [Injection("slow_nic", 1, first=5)], 10).speed_megabits == {}
    assert wiring_of(Cluster(2, 4), [Injection("slow_nic", 1)], 10).speed_megabits[1, 0] == 100_000


@pytest.mark.parametrize("ranks", [(0, 1), (0, 2, 4, 6), tuple(range(8)), (1, 5)])
def test_rings_pass_each_rank_once_and_trees_reach_all(ranks: tuple[int, ...]) -> None:
    for channel in communicator_of(ranks, Wiring(Cluster(2, 4))).channels:
        assert sorted(channel.order) == list(range(len(ranks)))
        roots = [rank for rank in range(len(ranks)) if channel.parent[rank] < 0]
        below = set(roots)
        for _ in ranks:
            below |= {child for rank in below for child in channel.children(rank)}
        assert (len(roots), below) == (1, set(range(len(ranks))))


def test_a_scenario_on_disk_asks_for_logs(tmp_path: Path) -> None:
    made = scenario_of('iterations = 1\n[cluster]\nnodes = 1\ndevices = 2\n[nccl]\nversion = "2.27.5"\n', "job.toml")
    write_scenario(made, tmp_path)

    assert sorted(path.name for path in tmp_path.glob("nccl*")) == ["nccl.node0.1000.log.gz", "nccl.node0.1001.log.gz"]
    assert scenario_of((tmp_path / "scenario.toml").read_text(), "again") == made
