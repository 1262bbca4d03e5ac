"""Which file is used for each rank, and which steps it marks."""

import json
import re
from pathlib import Path
from time import process_time

from tests.given import Trace, add_facts, built, rows_of, store_of
from tests.stories import told
from traceforge.align import rank
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.scenario import Scenario

RANKS = "SELECT rank, source_id, host, raw_first_ns, raw_last_ns, has_device FROM align.rank ORDER BY rank"
ISSUES = "SELECT code, severity, count, first_at FROM meta.issue WHERE stage = 'align' ORDER BY code"
DETAILS = "SELECT detail FROM meta.issue WHERE code = 'rank_repeated'"
STEPS = "SELECT rank, iteration, raw_start_ns, raw_end_ns, is_marked FROM align.step ORDER BY rank, iteration"


def test_each_rank_has_the_file_that_claims_it() -> None:
    # rank 0   |gloo 10–90      (host threads only)
    # rank 1   |kernel 20–95    (a device)
    store = built(store_of(Trace(1, host="b").kernel(20, 95), Trace(0, host="a").gloo(10, 90)), "align")

    assert rows_of(store, RANKS) == [(0, 1, "a", 10, 90, False), (1, 0, "b", 20, 95, True)]
    assert rows_of(store, ISSUES) == [("clock_unaligned", "warning", 1, "rank 1")]


def test_what_a_file_says_once_is_not_read_again_for_each_of_its_events() -> None:
    # one file of 20,000 kernels, with a header of some bytes and with one of 200 kB
    def cost_s(metadata: str) -> float:
        trace = Trace(0)
        for place in range(20_000):
            trace.kernel(10 * place, 10 * place + 5)
        with built(store_of(trace), "align") as store:
            store.execute("UPDATE raw.profile SET metadata = ?", [metadata])
            begin = process_time()
            rank.rows(store)
            return process_time() - begin

    assert cost_s(json.dumps({"process": 1, "text": "x" * 200_000})) < cost_s('{"process": 1}') + 0.1


def test_of_two_files_of_a_rank_the_earlier_speaks_and_the_other_is_counted() -> None:
    # second.json             |kernel 500–600|
    # first.json   |kernel 10–90|
    store = built(
        store_of(Trace(0, path="second.json").kernel(500, 600), Trace(0, path="first.json").kernel(10, 90)), "align"
    )

    assert rows_of(store, "SELECT rank, source_id FROM align.rank") == [(0, 1)]
    assert rows_of(store, ISSUES) == [("rank_repeated", "warning", 1, "second.json")]
    ((detail,),) = rows_of(store, DETAILS)
    assert "rank 0: first.json is used, second.json is left out, which lies at another time" in detail
    assert detail.endswith("ingest it as a run of its own")


def test_files_of_a_rank_that_overlap_in_time_are_told_to_be_of_different_jobs() -> None:
    # a.json, b.json, c.json, d.json, e.json   |kernel 10–90|
    traces = [Trace(0, path=f"{name}.json").kernel(10, 90) for name in "abcde"]

    store = built(store_of(*traces), "align")

    assert rows_of(store, "SELECT rank, source_id FROM align.rank") == [(0, 0)]
    ((detail,),) = rows_of(store, DETAILS)
    assert "rank 0: a.json is used, b.json is left out, which overlaps it in time" in detail
    assert detail.endswith("of another job or a copy; and 1 more")


def test_of_two_jobs_in_one_folder_the_one_with_more_ranks_speaks_alone() -> None:
    # one job:      rank 0 |··|                     another, an hour later:  rank 0 |··|
    #                                                                        rank 1 |··|
    hour = 3_600_000_000_000
    traces = [
        Trace(0, path="early.json").step(0, 0, 10),
        Trace(0, path="late0.json").step(0, hour, hour + 10),
        Trace(1, path="late1.json").step(0, hour, hour + 10),
    ]

    store = built(store_of(*traces), "align")

    assert rows_of(store, "SELECT rank, source_id FROM align.rank ORDER BY rank") == [(0, 1), (1, 2)]
    assert rows_of(store, "SELECT code, count, first_at FROM meta.issue") == [("rank_repeated", 1, "early.json")]


def test_two_tools_that_recorded_a_rank_at_once_are_not_called_two_jobs() -> None:
    # profiler     |kernel 10–90|
    # recorder        |kernel 50–60|
    store = store_of(Trace(0, path="rank0.json").kernel(10, 90), Trace(0, path="rank0.live").kernel(50, 60))
    store.execute("UPDATE meta.source SET kind = 'live_log' WHERE path = 'rank0.live'")
    built(store, "align")

    ((detail,),) = rows_of(store, DETAILS)
    assert "rank0.live is left out, which overlaps it in time, so it is by another tool" in detail


def test_a_rank_that_only_the_other_job_has_is_not_mixed_in() -> None:
    # one job:  ranks 0, 1 |··|      another, an hour later:  ranks 0, 2 |··|
    hour = 3_600_000_000_000
    traces = [
        Trace(0, path="a0.json").step(0, 0, 10),
        Trace(1, path="a1.json").step(0, 0, 10),
        Trace(0, path="b0.json").step(0, hour, hour + 10),
        Trace(2, path="b2.json").step(0, hour, hour + 10),
    ]

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT rank FROM align.rank ORDER BY rank") == [(0,), (1,)]
    assert rows_of(store, "SELECT code FROM meta.issue ORDER BY code") == [
        ("rank_of_another_window",),
        ("rank_repeated",),
    ]


def test_a_lone_file_without_a_rank_is_taken_as_rank_0_and_that_is_said() -> None:
    store = told(Trace(None, path="trace.json").kernel(10, 90), stage="align")

    assert rows_of(store, "SELECT rank FROM align.rank") == [(0,)]
    assert rows_of(store, ISSUES) == [("rank_assumed", "info", 1, "trace.json")]


def test_files_without_a_rank_among_others_are_left_out_and_counted() -> None:
    store = told(Trace(3).kernel(10, 90), Trace(None, path="stray.json").kernel(10, 90), stage="align")

    assert rows_of(store, "SELECT rank FROM align.rank") == [(3,)]
    assert rows_of(store, ISSUES) == [("rank_unknown", "warning", 1, "stray.json")]


def test_files_that_state_no_rank_are_told_apart_by_their_devices() -> None:
    # given two files of one host, whose kernels ran on devices 1 and 0
    files = [
        Trace(None, path=f"{name}.json").event("kernel", "gemm", 10, 90, device=device, stream=7)
        for name, device in (("a", 1), ("b", 0))
    ]

    store = built(store_of(*files), "align")

    assert rows_of(store, "SELECT rank, source_id FROM align.rank ORDER BY rank") == [(0, 1), (1, 0)]
    assert rows_of(store, ISSUES) == [("rank_from_device", "warning", 2, "a.json")]


def of_device(path: str, device: int, host: str, start_ns: int = 10) -> Trace:
    return Trace(None, path=path, host=host).event("kernel", "gemm", start_ns, start_ns + 80, device=device, stream=7)


def test_devices_of_several_hosts_are_ranked_host_by_host() -> None:
    # given two devices on each of two hosts, whose names do not sort as text
    files = [of_device(f"{host}-{n}", n, host) for host in ("node10", "node2") for n in (1, 0)]

    store = built(store_of(*files), "align")

    ranks = rows_of(store, "SELECT r.rank, path FROM align.rank AS r JOIN meta.source USING (source_id) ORDER BY ALL")
    assert ranks == [(0, "node2-0"), (1, "node2-1"), (2, "node10-0"), (3, "node10-1")]
    assert ("rank_from_device", "warning", 4, "node10-1") in rows_of(store, ISSUES)


def test_a_name_that_counts_hosts_is_no_rank_of_all_that_the_report_holds() -> None:
    # given reports that are called by the host's number, with two processes each
    files = [of_device(f"r{host}.sqlite/device {n}", n, f"node{host}") for host in (0, 1) for n in (0, 1)]
    store = store_of(*files)
    store.execute("UPDATE meta.source SET rank = source_id // 2, rank_origin = 'folder_name'")

    built(store, "align")

    ranks = rows_of(store, "SELECT r.rank, path FROM align.rank AS r JOIN meta.source USING (source_id) ORDER BY ALL")
    assert ranks == [(n, f"r{n // 2}.sqlite/device {n % 2}") for n in range(4)]


def test_hosts_that_were_recorded_at_different_times_are_not_put_together() -> None:
    # given wall clocks that say so; clocks without an epoch would not
    epoch = 1_700_000_000_000_000_000
    files = [of_device(f"{host}", 0, host, epoch + n * 1_000) for n, host in enumerate(("a", "b"))]

    store = told(*files, stage="align")

    assert rows_of(store, "SELECT rank FROM align.rank") == []


def test_a_time_of_zero_is_one_where_clocks_have_no_epoch() -> None:
    # given a trace that begins before its own zero, as exports of a part of a session do
    store = built(store_of(Trace(0).event("kernel", "gemm", -20, 0, stream=7).event("kernel", "gemm", 10, 90)), "align")

    assert rows_of(store, "SELECT raw_first_ns, raw_last_ns FROM align.rank") == [(-20, 90)]


def test_files_of_one_device_are_not_told_apart() -> None:
    files = [Trace(None, path=f"{name}.json").event("kernel", "gemm", 10, 90, device=0, stream=7) for name in "ab"]

    store = told(*files, stage="align")

    assert rows_of(store, "SELECT rank FROM align.rank") == []
    assert rows_of(store, ISSUES) == [("rank_unknown", "warning", 2, "a.json")]


def test_steps_are_those_of_the_annotation_on_the_host_not_of_its_copy_on_the_device() -> None:
    # host     |ProfilerStep#4 10–50|ProfilerStep#5 50–90|
    # device         |ProfilerStep#4 30–70|
    trace = Trace().step(4, 10, 50).step(5, 50, 90).event("gpu_user_annotation", "ProfilerStep#4", 30, 70)

    store = told(trace, stage="align")

    assert rows_of(store, STEPS) == [(0, 4, 10, 50, True), (0, 5, 50, 90, True)]


def test_a_trace_without_steps_is_one_step_that_is_not_marked() -> None:
    store = told(Trace().kernel(10, 40).kernel(60, 90), stage="align")

    assert rows_of(store, STEPS) == [(0, 0, 10, 90, False)]


def test_hosts_that_only_logs_name_reach_the_ranks(tmp_path: Path) -> None:
    # given a job on two hosts whose timelines do not name them, and NCCL's logs beside
    logs = NcclLogs(version="2.21.5")
    write_scenario(Scenario("job", 3, 3, cluster=Cluster(2, 2), nccl=logs), tmp_path, compressed=False)
    for trace in tmp_path.glob("*.pt.trace.json"):
        trace.write_text(re.sub(r'"host_name": "node\d+",?', "", trace.read_text()))

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "align.rank")
        hosts = rows_of(store, "SELECT rank, host FROM align.rank ORDER BY rank")

    assert hosts == [(0, "node0"), (1, "node0"), (2, "node1"), (3, "node1")]
