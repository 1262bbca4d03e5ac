"""Lines as launchers, clocks and torn pipes leave them still give their records."""

import gc
import weakref
from collections.abc import Callable

import pytest

from tests.sources.nccl_logs import HEAD, LogReading, call, init
from traceforge.sources.nccl_log import SOURCE, calls, communicators, processes, reader
from traceforge.sources.nccl_log.state import LogState
from traceforge.sources.nccl_log.tables import Tables

ReadLog = Callable[..., LogReading]
SETTING = HEAD + "NCCL_DEBUG set by environment to INFO"

PREFIXES = {
    "mpirun --tag-output": ("[1,3]<stdout>:", "mpirun_tag", 3),
    "srun --label": (" 3: ", "srun_label", 3),
    "torchrun rank": ("[rank3]:", "torchrun_tag", 3),
    "torchrun role": ("[default0]:", "torchrun_role", None),
    "Ray with colours": ("\x1b[36m(RayWorkerWrapper pid=17, ip=10.0.0.7)\x1b[0m ", "ray_actor", None),
    "Kubernetes": ("2026-03-03T12:11:38.123456789Z ", "none", None),
    "files of Kubernetes": ("2026-03-03T12:11:38.123456789Z stdout F ", "none", None),
    "a progress bar": ("validation:  98%|####| ", "other", None),
    "nothing": ("", "none", None),
}


@pytest.mark.parametrize("launcher", PREFIXES)
def test_launchers_prefixes_are_told_from_records(read_log: ReadLog, launcher: str) -> None:
    prefix, style, rank = PREFIXES[launcher]

    log = read_log(prefix + SETTING, prefix + call())

    assert log.file["prefix_style"] == style
    assert log.row("process")["launcher_rank"] == rank
    assert log.row("process")["host"] == "node-1"
    assert len(log.rows("collective_call")) == 1


RAY = "\x1b[36m(RayWorkerWrapper pid=17, ip=10.0.0.7)\x1b[0m "
ADVICE = " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://x.)"


@pytest.mark.parametrize("advice", ["", ADVICE])
def test_what_ray_says_of_lines_it_left_out_is_no_part_of_a_record(read_log: ReadLog, advice: str) -> None:
    # given two lines, of which each stands for three that differ in numbers
    said = f"\x1b[32m [repeated 3x across cluster]{advice}\x1b[0m"

    log = read_log(RAY + HEAD + "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0" + said, RAY + call() + said)

    assert log.row("link")["network"] == "Socket"
    assert len(log.rows("collective_call")) == 1
    (issue,) = log.summary.issues
    assert (issue.code, issue.count, issue.first_at) == ("nccl_repeats_left_out", 4, "line 1")


STAMPS = {
    "[2026-03-03 12:11:38] ": 0,
    "[2026-03-03 12:11:38.250] ": 250_000_000,
    "2026-03-03T12:11:38.250000001Z ": 250_000_001,
    "2026-03-03T12:11:38.250000001Z stderr F ": 250_000_001,
    "03/03/26 12:11:38 ": 0,
    "Mar  3 12:11:38 2026 ": 0,
    "1772539898.5 ": 500_000_000,
}


@pytest.mark.parametrize("stamp", STAMPS)
def test_time_stamps_of_any_form_are_exact(read_log: ReadLog, stamp: str) -> None:
    (record,) = read_log(stamp + SETTING).rows("record")

    assert record["raw_time_ns"] == 1_772_539_898_000_000_000 + STAMPS[stamp]


COLLECTORS = {
    "Docker": '{{"log": "{text}\\n", "stream": "stderr", "time": "2026-03-03T12:11:38.25Z"}}',
    "a logger": '{{"timestamp": "2026-03-03 12:11:38.250", "level": "info", "message": "{text}"}}',
    "Google Cloud": '{{"severity": "INFO", "textPayload": "{text}", "timestamp": "2026-03-03T12:11:38.250Z"}}',
}


@pytest.mark.parametrize("collector", COLLECTORS)
def test_lines_that_a_collector_wrapped_in_json_are_those_of_the_program(read_log: ReadLog, collector: str) -> None:
    # given a line of training output, then one of NCCL, then one that is not wrapped
    lines = [COLLECTORS[collector].format(text=text) for text in ("loss 3.2", SETTING)]
    assert SOURCE.recognises("\n".join(lines).encode())

    log = read_log(*lines, call())

    assert [record["line"] for record in log.rows("record")] == [2, 3]
    assert log.rows("record")[0]["raw_time_ns"] == 1_772_539_898_250_000_000
    assert log.rows("environment") == read_log(SETTING).rows("environment")
    assert len(log.rows("collective_call")) == 1


def test_two_records_in_one_line_are_taken_apart(read_log: ReadLog) -> None:
    log = read_log(SETTING + HEAD + "Using network IB")

    assert log.rules == ["environment", "plugin"]
    assert {"nccl_torn_line", "nccl_glued_host"} <= set(log.codes)


def test_a_record_cut_by_another_ranks_text_is_no_fact(read_log: ReadLog) -> None:
    log = read_log(HEAD + "Channel 00/0 : 3[3] -> 4[0] via P2P/Cx3006c0s1b1n0")

    assert log.rows("link") == []
    assert log.row("unparsed")["record_count"] == 1


def test_text_glued_to_a_known_host_does_not_make_a_process(read_log: ReadLog) -> None:
    log = read_log(SETTING, "12.5" + SETTING)

    assert [row["host"] for row in log.rows("process")] == ["node-1"]


def test_text_of_one_rank_in_the_host_of_another_makes_no_host(read_log: ReadLog) -> None:
    # given lines into which other processes wrote, at a blank, in a number and in a head
    other = "node-1:4712:4712 [1] NCCL INFO Using network IB"
    third = other.replace("4712", "4713")

    log = read_log(SETTING, f"{HEAD}comm 0xa0 rank 0 busId a8{other}", f"node-1:4711:47{third}")

    assert [(row["host"], row["pid"]) for row in log.rows("process")] == [
        ("node-1", 4711),
        ("node-1", 4712),
        ("node-1", 4713),
    ]
    assert [row["name"] for row in log.rows("plugin")] == ["IB", "IB"]


def test_a_host_whose_name_ends_with_that_of_another_is_a_host(read_log: ReadLog) -> None:
    log = read_log(SETTING, "gpu-" + SETTING.replace("4711", "4712"))

    assert [row["host"] for row in log.rows("process")] == ["node-1", "gpu-node-1"]


def test_a_torn_line_still_tells_the_rank_of_its_communicator(read_log: ReadLog) -> None:
    init_line = "ncclCommInitRankConfig comm 0x5581 rank 7 nranks 8 cudaDev 7 nvmlDev 7 busId ca"

    row = read_log(HEAD + init_line + HEAD + "Using network IB").row("communicator")

    assert (row["comm_pointer"], row["rank"], row["rank_count"]) == (0x5581, 7, 8)
    assert (row["pci_address"], row["complete_record_id"]) == (None, None)


ENDS = {
    "a line that another rank wrote into": "ncclCommInitRankConfig comm 0x55 rank 7 nranks 8 cudaDev 7 nvmlDev 7 ",
    "its timings": "Init timings - ncclCommInitRankConfig: rank 7 nranks 8 total 2.46 (kernels 0.32, alloc ",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_torn_line_still_ends_an_init_that_began(read_log: ReadLog, end: str) -> None:
    start = "ncclCommInitRankConfig comm 0x55 rank 7 nranks 8 cudaDev 7 nvmlDev 7 busId ca000 commId 0xd3 - Init START"

    other = HEAD.replace("4711", "4712") + "Using network IB"
    row = read_log(HEAD + start, HEAD + ENDS[end] + other).row("communicator")

    assert (row["comm_hash"], row["start_record_id"], row["complete_record_id"]) == ("0xd3", 0, 1)


def test_records_of_processes_beyond_the_bound_are_kept_without_theirs(
    read_log: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given three processes where two may be kept, with calls of each, and the first once more
    monkeypatch.setattr(processes, "MOST_PROCESSES", 2)

    log = read_log(*(call(host=f"node-{host}", op_count=count) for count, host in enumerate((1, 2, 3, 3, 1))))

    assert [row["process_id"] for row in log.rows("record")] == [0, 1, None, None, 0]
    assert [(row["host"], row["record_count"]) for row in log.rows("process")] == [("node-1", 2), ("node-2", 1)]
    assert [row["op_count"] for row in log.rows("collective_call")] == [0, 1, 2, 3, 4]
    assert next(issue.count for issue in log.summary.issues if issue.code == "nccl_too_many_processes") == 2


def test_nothing_of_a_log_stays_in_memory_once_it_is_read(read_log: ReadLog, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a reading without the collector of garbage, which may come much later
    held: list[weakref.ref[object]] = []

    def noted(tables: Tables) -> LogState:
        state = LogState(tables)
        held.extend(weakref.ref(one) for one in (state, state.communicators, state.calls))
        return state

    monkeypatch.setattr(reader, "LogState", noted)
    gc.disable()
    try:
        read_log(init(), call())
        assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()


def test_records_of_communicators_beyond_the_bound_are_kept_without_theirs(
    read_log: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given inits of three communicators where two may be kept
    monkeypatch.setattr(communicators, "MOST_COMMUNICATORS", 2)

    log = read_log(*(init(comm=one) for one in (0xA0, 0xB0, 0xC0)))

    assert [row["comm_pointer"] for row in log.rows("communicator")] == [0xA0, 0xB0]
    assert len(log.rows("record")) == 3
    assert next(issue.count for issue in log.summary.issues if issue.code == "nccl_too_many_communicators") == 1


def test_calls_on_pointers_beyond_the_bound_are_kept_without_a_communicator(
    read_log: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST_COMMUNICATORS", 1)

    log = read_log(call(comm=0xA0), call(comm=0xB0, op_count=1))

    first, second = log.rows("collective_call")
    assert first["handle_id"] is not None
    assert second["handle_id"] is None
    assert next(issue.count for issue in log.summary.issues if issue.code == "nccl_too_many_communicators") == 1


def test_carriage_returns_and_a_missing_last_newline_do_no_harm(read_log: ReadLog) -> None:
    log = read_log(call() + "\r", call(op_count=1) + "\r")

    assert [row["op_count"] for row in log.rows("collective_call")] == [0, 1]
    assert [row["stream"] for row in log.rows("collective_call")] == [0x55, 0x55]


def test_one_process_makes_a_file_of_one_host(read_log: ReadLog) -> None:
    assert read_log(SETTING).summary.host == "node-1"
    assert read_log(SETTING, init(host="node-2", pid=9)).summary.host is None


@pytest.mark.parametrize(
    "text",
    [
        SETTING,
        "NCCL version 2.27.5+cuda12.9",
        "a long\ntraining output\n" + SETTING,
        "# Collective test starting: all_reduce_perf\n#  size  count  type  redop  root  time",
    ],
)
def test_logs_are_recognised_by_content(text: str) -> None:
    assert SOURCE.recognises(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": []}',
        '{"log": "loss 3.2"}\n{"log": 7}\n{"log": "lost"',
        "<system version='1'>",
        "loss 3.2\nloss 3.1",
        'import os\ndef f():\n  return "NCCL INFO"',
        "",
    ],
)
def test_other_texts_are_no_logs(text: str) -> None:
    assert not SOURCE.recognises(text.encode())


@pytest.mark.parametrize(
    "prefix", ["2026-05-03T11:22:00.123456789Z stdout F ", "2026-05-03T11:22:00Z ", "trainer-1  | ", "[rank0]: "]
)
def test_a_banner_is_found_behind_a_stamp(read_log: ReadLog, prefix: str) -> None:
    log = read_log(f"{prefix}NCCL version 2.21.5+cuda12.4", f"{prefix}{SETTING}")

    assert [row["version"] for row in log.rows("version")] == ["2.21.5", "12.4"]
