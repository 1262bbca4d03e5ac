"""Each rule finds what it is for, cites the line, and stays silent on a healthy job."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.fabric.dumps import recorders
from tests.fabric.logs import Process, add_dumps, add_logs, built_fabric
from traceforge.errors import PluginError
from traceforge.fabric import finding
from traceforge.fabric.finding_rule import finding_rules, parse_rule
from traceforge.store.database import Store
from traceforge.store.stage import stage_documents

GDR = "NET/IB/{}/GDRDMA"
Pair = list[Process]


def pair(via: str = GDR) -> Pair:
    """Two ranks on two hosts, one NIC each, joined by a ring."""
    first, second = Process(0, host="a").init(), Process(1, host="b").init()
    for process in (first, second):
        process.says("NCCL version 2.27.5+cuda12.9", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>")
    first.sends(1, via.format(0)).receives(1, via.format(0))
    second.sends(0, via.format(0)).receives(0, via.format(0))
    return [first, second]


def sockets() -> Pair:
    return pair("NET/Socket/{}")


def no_gdr() -> Pair:
    return pair("NET/IB/{}")


def rails() -> Pair:
    first, second = pair()
    return [first.sends(1, GDR.format(0), channel=1), second.receives(0, GDR.format(1), channel=1).sends(
        0, GDR.format(0), channel=1)]  # fmt: skip


def far() -> Pair:
    first, second = pair()
    first.says("=== System : maxBw 24.0 totalBw 24.0 ===", "GPU/0-10000 :NET/0-0 (5/12.0/SYS) NET/0-1 (3/24.0/PIX) ")
    return [first, second]


def shared() -> Pair:
    """Two ranks a host, one NIC for both although there are two."""
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for process in processes:
        process.says("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>")
        process.sends((process.rank + 2) % 4, GDR.format(0)).receives((process.rank + 2) % 4, GDR.format(0))
    return processes


def relayed() -> Pair:
    first, second = pair()
    return [first.sends(1, "NET/IB/0(1)/GDRDMA", channel=1), second]


def through_memory() -> Pair:
    processes = [Process(rank, device=rank).init() for rank in range(2)]
    processes[0].sends(1, "SHM/direct/direct").says("NCCL_P2P_DISABLE set by environment to 1.")
    return [processes[0], processes[1].sends(0, "SHM/direct/direct")]


def across_numa() -> Pair:
    """Four GPUs, two a NUMA node, in the ring 0 2 1 3: it crosses four times."""
    processes = [Process(rank, device=rank).init(size=4) for rank in range(4)]
    bus = [f"GPU/0-{0x10000 * (rank + 1):x}" for rank in range(4)]
    for a, process in enumerate(processes):
        paths = " ".join(f"{bus[b]} (2/10.0/{'SYS' if a // 2 != b // 2 else 'PIX'})" for b in range(4))
        process.says(f"{bus[a]} :{paths} ")
    ring = [0, 2, 1, 3]
    for a, b in zip(ring, [*ring[1:], 0], strict=True):
        processes[a].sends(b, "P2P/IPC")
    return processes


def few_channels() -> Pair:
    return [
        process.says(
            "4 coll channels, 4 p2p channels, 1 p2p channels per peer", "NCCL_MAX_NCHANNELS set by environment to 4."
        )
        for process in pair()
    ]


def no_nvls() -> Pair:
    first, second = pair()
    first.says("NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)")
    return [first, second.says("NVLS multicast support is not available on dev 0")]


def slow_link() -> Pair:
    """NICs state their speeds; that of the second host has come up at a quarter of it."""
    first, second = pair()
    for process, speed in ((first, 400_000), (second, 100_000)):
        process.says(f"NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed={speed} context=0x5 pciPath=/sys/x ar=0")
    return [first, second]


def environments() -> Pair:
    first, second = pair()
    first.says("NCCL_BUFFSIZE set by environment to 8388608.")
    return [first, second.says("NCCL_BUFFSIZE set by environment to 1048576.")]


def versions() -> Pair:
    first, second = pair()
    second.lines = [line.replace("2.27.5", "2.26.2") for line in second.lines]
    return [first, second]


def slow_init() -> Pair:
    timing = "Init timings - ncclCommInitRank: rank {} nranks 2 total 31.20 (kernels 30.10, alloc 0.20, bootstrap 0.50)"
    return [process.says(timing.format(process.rank)) for process in pair()]


def late() -> Pair:
    processes = pair()
    for process in processes:
        for _ in range(120):
            process.calls()
        process.init(comm=0xB0, comm_hash="0x2")
    return processes


def unbound() -> Pair:
    text = "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-111)."
    return [process.says(text) for process in pair()]


def broken_link() -> Pair:
    first, second = pair()
    first.says(
        "NET/IB: Got completion from peer 10.0.0.2<5116> with status=12 opcode=0 len=0 vendor err 129 (Send)"
        " localGid ::1 remoteGids::2 hca mlx5_0"
    )
    return [first, second]


def _failed(process: Process, *, gave_up: bool) -> Process:
    """A connection fails: NCCL tries again, or gives up, and the functions that return say so."""
    head = process.lines[0].split(" NCCL INFO ")[0]
    process.lines.append(
        f"{head} /src/misc/socket.cc:64 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.3<38541> failed : "
        "Connection reset by peer"
    )
    return process.says("misc/socket.cc:807 -> 6") if gave_up else process


def broken_connection() -> Pair:
    first, second = pair()
    return [first, _failed(second, gave_up=True)]


def failure_survived() -> Pair:
    return [_failed(process, gave_up=False) for process in pair()]


def flapping() -> Pair:
    first, second = pair()
    return [first.says("NET/IB : mlx5_0:1 Got async error event: port error"), second]


def out_of_step() -> Pair:
    first, second = pair()
    return [first.calls().calls("AllReduce"), second.calls().calls("Broadcast")]


def stuck() -> Pair:
    first, second = pair()
    for rank, enqueued in ((0, 7), (1, 6)):
        first.lines.append(
            f"[rank{rank}]:[E] [PG 0 Rank {rank}] Timeout at NCCL work: 7, last enqueued NCCL work: {enqueued}, last "
            "completed NCCL work: 6."
        )
    first.lines.append(
        "[rank0]:[E] [PG 0 Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE,"
        " NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )
    return [first, second]


def forced() -> Pair:
    return [process.says("NCCL_ALGO set by environment to Ring") for process in pair()]


def host_straggler() -> Pair:
    """Three ranks of a host; rank 2 calls 5 ms after the others, each time."""
    processes = [Process(rank, device=rank).init(size=3) for rank in range(3)]
    for call in range(25):
        for process in processes:
            process.calls(size=3)
            stamp = f"[2026-03-03 12:00:{call:02}.{5 * (process.rank == 2):03}] "
            process.lines[-1] = stamp + process.lines[-1]
    return processes


STORIES: dict[str, tuple[Callable[[], Pair], str, list[int]]] = {
    "socket_fallback": (sockets, "although NIC mlx5_0 was found", [0, 1]),
    "gdr_off": (no_gdr, "all 2 network connections", [0, 1]),
    "rail_mismatch": (rails, "mlx5_0 to 1", []),
    "far_nic": (far, "at distance SYS from its GPU, although NIC 1 is at PIX", [0]),
    "nic_below_speed": (slow_link, "1 NIC of 100 Gbit/s in use, where others of the job run at 400", [1]),
    "shared_nic": (shared, "1 of 2 NICs", [0, 1, 2, 3]),
    "proxy_relay": (relayed, "1 of 3 connections", [0]),
    "p2p_disabled": (through_memory, "NCCL_P2P_DISABLE=1 is set", [0, 1]),
    "ring_across_numa": (across_numa, "4 times where 2 would do", [0, 1, 2, 3]),
    "few_channels": (few_channels, "4 channels for collectives; NCCL_MAX_NCHANNELS=4 is set", []),
    "nvls_lost": (no_nvls, "1 of 2 processes", [1]),
    "environment_differs": (environments, "NCCL_BUFFSIZE differs", [1]),
    "version_differs": (versions, "2.26.2 (1), 2.27.5 (1)", []),
    "slow_init": (slow_init, "31.2 s, most of it in kernels", [0]),
    "late_communicator": (late, "2 communicator sides", [0, 1]),
    "cpu_affinity": (unbound, "On 2 hosts, such as a", [0, 1]),
    "completion_error": (broken_link, "12/129 (retry timeout", [0]),
    "failed_call": (broken_connection, "1 call failed on host b (rank 1): socketProgressOpt: Call to recv", [1]),
    "link_trouble": (flapping, "async event 1 time", [0]),
    "desynchronised": (out_of_step, "Call 1 of communicator 0 differs", [0]),
    "hang": (stuck, "rank 1 never entered it", [1]),
    "odd_algorithm": (forced, "NCCL_ALGO=Ring overrides NCCL's choice", []),
    "late_enqueue": (host_straggler, "Rank 2 calls the collectives of communicator 0 5.0 ms later", [2]),
}


def healthy() -> Pair:
    return [process.calls() for process in pair()]


def only_sockets() -> Pair:
    processes = sockets()
    for process in processes:
        process.lines = [line.replace("NET/IB : Using [0]mlx5_0:1/IB [RO]", "NET/Socket : Using [0]eth0:10.0.0.1<0>")
                         for line in process.lines]  # fmt: skip
    return processes


def braces() -> Pair:
    first, second = pair()
    first.says("NCCL_BUFFSIZE set by environment to {subject}<b>")
    return [first, second.says("NCCL_BUFFSIZE set by environment to 1")]


def problem_and_notice() -> Pair:
    """A problem that one line shows, and a notice that two lines show."""
    return [process.says("NCCL_ALGO set by environment to Ring") for process in environments()]


def error_and_setting() -> Pair:
    """An error that one line shows, and a setting that two lines show."""
    text = "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-111)."
    return [process.says(text) for process in broken_link()]


def test_every_rule_has_its_story() -> None:
    assert {*STORIES, "hang_recorded"} == set(finding_rules())


@pytest.fixture(scope="module")
def stories() -> Iterator[Store]:
    """Every story as a run of one database, named after the finding it causes or after its function."""
    with Store(None, is_kept=False) as store:
        for code, (story, _, _) in STORIES.items():
            add_logs(store, story(), run_name=code)
        for story in (healthy, only_sockets, braces, problem_and_notice, error_and_setting, failure_survived):
            add_logs(store, story(), run_name=story.__name__)
        ranks = [rank.got("0", 9, 8).calls("0", 9) for rank in recorders({"0": [0, 1, 2]})]
        ranks[2] = recorders({"0": [0, 1, 2]})[2].got("0", 7, 7)
        add_dumps(store, *(rank.dump() for rank in ranks), run_name="hang_recorded")
        yield built_fabric(store)


def findings_of(store: Store, run_name: str) -> list[dict[str, Any]]:
    rows = store.query(
        "SELECT f.* FROM fabric.finding AS f JOIN meta.run USING (run_id) WHERE run_name = ? ORDER BY finding_id",
        [run_name],
    )
    return rows.to_dicts()


def test_flight_recorders_tell_who_is_behind(stories: Store) -> None:
    rows = findings_of(stories, "hang_recorded")

    assert [(row["code"], row["subject"], row["ranks"]) for row in rows] == [("hang_recorded", "2", [2])]
    assert "Rank 2 never made the call that 2 ranks wait in: all_reduce 9" in rows[0]["summary"]
    assert "Look at the stacks of rank 2" in rows[0]["next_step"]


@pytest.mark.parametrize("code", STORIES)
def test_a_rule_finds_what_it_is_for_and_cites_a_line(stories: Store, code: str) -> None:
    _, words, ranks = STORIES[code]

    found = {row["code"]: row for row in findings_of(stories, code)}

    assert code in found
    row = found[code]
    assert words in row["summary"]
    assert row["ranks"] == ranks
    assert row["line"] >= 1
    assert row["citation_count"] >= 1
    assert row["severity"] in ("problem", "notice")


def test_an_error_comes_before_a_setting_that_more_lines_show(stories: Store) -> None:
    found = findings_of(stories, "error_and_setting")

    assert [(row["code"], row["severity"], row["citation_count"]) for row in found[:2]] == [
        ("completion_error", "problem", 1),
        ("cpu_affinity", "problem", 2),
    ]


def test_each_finding_cites_a_line_that_exists(stories: Store) -> None:
    # given that one story has one log a run, then source and line lie in that log
    rows = stories.query(
        "SELECT f.code FROM fabric.finding AS f ANTI JOIN ("
        "SELECT s.run_id, r.source_id, r.line FROM raw.nccl_record AS r JOIN meta.source AS s USING (source_id)"
        ") USING (run_id, source_id, line) WHERE f.basis <> 'flight recorder'"
    )

    assert rows.rows() == []


def test_a_further_file_is_a_further_finding(stories: Store, tmp_path: Path) -> None:
    # given a file that quotes counts, shares and ranks, and text behind its last statement
    (tmp_path / "socket_edges.sql").write_text(
        """-- Connections over sockets.
-- Mode: fabric_contention
-- Severity: notice
-- Summary: {edges:count connection} ({share:share}) over sockets
--   on {hosts}{of_ranks}.
-- Next step: Look at the network.
SELECT run_id, 'job' AS subject_kind, 'all' AS subject, COUNT(*) AS edges, 0.25 AS share,
  LIST(DISTINCT source_host ORDER BY source_host) AS hosts, LIST(source_rank) AS ranks,
  MIN((source_id, line)) AS first, COUNT(*) AS citation_count
FROM fabric.edge
WHERE path_class = 'socket'
GROUP BY run_id -- as every finding
""",
        encoding="utf-8",
    )

    run_id = stories.query("SELECT run_id FROM meta.run WHERE run_name = 'socket_fallback'").item()
    found = finding.rows(stories, tmp_path).filter(pl.col("run_id") == run_id)

    assert found.select("code", "mode", "severity", "ranks", "summary", "next_step", "basis").rows() == [
        ("socket_edges", "fabric_contention", "notice", [0, 1],
         "2 connections (25 %) over sockets on a, b (ranks 0\N{EN DASH}1).",
         "Look at the network.", "configuration evidence")
    ]  # fmt: skip


RULE = "-- Mode: gpu_locality\n-- Severity: problem\n-- Summary: One.\n-- Next step: Two.\nSELECT 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RULE.replace("-- Mode: gpu_locality\n", ""), "lacks `-- Mode: ...`"),
        (RULE.replace("Two.", ""), "lacks `-- Next step: ...`"),
        (RULE.replace("problem", "disaster"), "severity is not one of problem, notice"),
    ],
)
def test_a_file_of_another_form_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(PluginError, match=rf"^odd\.sql: .*{message}"):
        parse_rule(text, "odd.sql")


def test_findings_are_made_after_all_that_their_queries_may_read() -> None:
    documents = {document.name: document for document in stage_documents("traceforge.fabric")}

    assert documents["fabric.finding"].reads >= documents.keys() - {"fabric.finding"}


def test_a_healthy_job_has_no_finding(stories: Store) -> None:
    assert findings_of(stories, "healthy") == []


def test_problems_come_before_notices(stories: Store) -> None:
    rows = findings_of(stories, "problem_and_notice")

    assert [(row["finding_id"], row["code"], row["citation_count"]) for row in rows] == [
        (0, "environment_differs", 1),
        (1, "odd_algorithm", 2),
    ]


def test_a_single_rank_is_named_in_the_singular(stories: Store) -> None:
    (row,) = findings_of(stories, "completion_error")

    assert row["summary"].endswith("towards 10.0.0.2 (rank 0).")


def test_a_failure_after_which_nccl_went_on_is_no_finding(stories: Store) -> None:
    assert findings_of(stories, "failure_survived") == []


def test_sockets_are_no_problem_where_nothing_faster_is_known(stories: Store) -> None:
    rows = findings_of(stories, "only_sockets")

    assert [(row["code"], row["severity"]) for row in rows] == [("socket_fallback", "notice")]


def test_text_from_a_log_is_quoted_and_never_taken_for_a_format(stories: Store) -> None:
    (row,) = findings_of(stories, "braces")

    assert row["code"] == "environment_differs"
    assert "{subject}<b>" in row["summary"]
