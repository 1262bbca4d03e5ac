"""What NCCL 2.30 to 2.32 changed: functions in places, further words, and levels of their own."""

from collections.abc import Callable

from tests.sources.nccl_logs import HEAD, LogReading

ReadLog = Callable[..., LogReading]


def test_functions_beside_places_hide_no_unwinding(read_log: ReadLog) -> None:
    log = read_log(HEAD + "init.cc:20 (initTransports) -> 1", HEAD + "group.cc:7 (asyncJob) -> 1 [Async thread]")

    events = [(row["kind"], row["place"], row["code"]) for row in log.rows("event")]
    assert events == [("unwinding", "init.cc:20", 1), ("unwinding", "group.cc:7", 1)]


def test_allocations_are_known_with_and_without_a_function(read_log: ReadLog) -> None:
    log = read_log(
        *(
            HEAD + f"{place} {text}"
            for place in ("init.cc:20", "init.cc:20 (ncclInit)")
            for text in (
                "Cuda Alloc Size 16 pointer 0x7f4e memType 1",
                "Cuda Host Alloc Size 4 pointer 0x204a",
                "Ib Alloc Size 64 pointer 0x7f",
                "memory stack hunk malloc(65536)",
            )
        )
    )

    assert set(log.rules) == {"allocation"}


def test_choices_with_the_size_of_a_cluster_are_read_both_ways(read_log: ReadLog) -> None:
    # given lines of which the first teaches the fast way what such lines look like, among lines without those words
    choice = HEAD + "AllReduce: {} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}}"
    sizes = range(1024, 1024 + 200)

    log = read_log(*(choice.format(size) + " cgaClusterSize 4" * (size % 2) for size in sizes))

    assert [row["size_bytes"] for row in log.rows("tuning")] == list(sizes)
    assert {(row["algorithm"], row["protocol"], row["channel_high"]) for row in log.rows("tuning")} == {
        ("ring", "ll", 1)
    }
    assert log.rows("unparsed") == []


def test_what_deserves_attention_is_kept_and_is_no_warning(read_log: ReadLog) -> None:
    line = "[2026-11-01 10:00:00] node-1:4711:4720 [0] net.cc:10 (ncclNetInit) NCCL ATTN Something to look at"

    log = read_log(line)

    assert (log.row("event")["kind"], log.row("event")["place"]) == ("attention", "net.cc:10")
    assert (log.row("record")["level"], log.row("process")["pid"]) == ("ATTN", 4711)


def test_diagnostics_of_ras_which_name_no_thread_have_their_process(read_log: ReadLog) -> None:
    log = read_log("node-1:4711 NCCL DIAG Xid 79 detected 12 s ago on host node-1")

    assert (log.row("event")["kind"], log.row("event")["text"]) == (
        "diagnosis",
        "Xid 79 detected 12 s ago on host node-1",
    )
    assert (log.row("process")["host"], log.row("process")["pid"]) == ("node-1", 4711)
    assert log.row("record")["tid"] is None
