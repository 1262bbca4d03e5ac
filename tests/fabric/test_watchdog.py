"""Which rank a hung job waits for, from the lines that PyTorch's watchdogs print before they end it."""

from tests.fabric.logs import Process, fabric_of


def timeout(rank: int, sequence: int, *, op: str = "ALLREDUCE", elements: int = 4, own: int | None = None) -> str:
    """The line of a collective that timed out; it names no group, and the rank within it."""
    who = rank if own is None else own
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {who}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={sequence}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) "
        "ran for 600020 milliseconds before timing out."
    )


def stopped(rank: int, sequence: int, *, enqueued: int, group: str = "ID 0 PG GUID 0(default_pg)", own: int = 0) -> str:
    """The line behind it, which names the group."""
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:1785] [PG {group} Rank {own}] Exception (either an error or timeout) "
        f"detected by watchdog at work: {sequence}, last enqueued NCCL work: {enqueued}, last completed NCCL work: "
        f"{sequence - 1}."
    )


def signalled(rank: int, enqueued: int, *, group: str = "ID 0 PG GUID 0(default_pg)") -> str:
    """What a rank prints that did not wait in the collective."""
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:1554] [PG {group} Rank {rank}] Received a dump signal due to a "
        "collective timeout from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: "
        f"{enqueued}, last completed NCCL work: {enqueued}."
    )


def summary_of(*lines: str) -> str:
    process = Process(0)
    process.lines += lines
    with fabric_of([process]) as store:
        ((code, summary),) = store.query("SELECT code, summary FROM fabric.finding").rows()
    assert code == "hang"
    return str(summary)


def test_a_rank_that_only_got_the_signal_has_not_enqueued_it() -> None:
    summary = summary_of(timeout(0, 808), stopped(0, 808, enqueued=811), signalled(1, 807))

    assert summary == (
        "Collective 808 of process group 0(default_pg) (ALLREDUCE) timed out on 1 rank: rank 1 has not enqueued it."
    )


def test_progress_in_another_group_accuses_nobody() -> None:
    # given a timeout in a group of ranks 8 and 9, and a rank that is early in the group of all
    group = "ID 2 PG GUID 9(TP)"

    summary = summary_of(timeout(9, 50, own=1), stopped(9, 50, enqueued=50, group=group, own=1), signalled(1, 7))

    assert summary.endswith("timed out on 1 rank: these logs do not show which rank is missing.")
    assert "process group 9(TP)" in summary


def test_ranks_are_those_of_the_job_and_not_of_the_group() -> None:
    group = "3 (tensor_parallel)"

    summary = summary_of(
        timeout(9, 50, own=1),
        stopped(9, 50, enqueued=50, group=group, own=1),
        stopped(8, 48, enqueued=49, group=group, own=0),
    )

    assert summary.endswith("rank 8 has not enqueued it.")


def test_ranks_that_call_something_else_are_named() -> None:
    lines = [timeout(0, 5), timeout(1, 5), timeout(2, 5, elements=8)]
    lines += [stopped(rank, 5, enqueued=5, own=rank) for rank in range(3)]

    assert summary_of(*lines).endswith(
        "its ranks call different things there: ALLREDUCE of 4 elements on ranks 0, 1; ALLREDUCE of 8 elements on "
        "rank 2."
    )


def test_a_rank_whose_line_on_the_group_is_missing_counts_with_the_others() -> None:
    summary = summary_of(timeout(0, 808), stopped(0, 808, enqueued=811), timeout(1, 808))

    assert summary.startswith("Collective 808 of process group 0(default_pg) (ALLREDUCE) timed out on 2 ranks:")


def test_sizes_that_may_differ_are_no_difference() -> None:
    lines = [timeout(rank, 5, op="ALLTOALL", elements=rank) for rank in range(2)]
    lines += [stopped(rank, 5, enqueued=5, own=rank) for rank in range(2)]

    assert summary_of(*lines).endswith("these logs do not show which rank is missing.")


def test_the_watchdog_of_another_library_is_read_alike() -> None:
    lines = (timeout(0, 808), stopped(0, 808, enqueued=811), signalled(1, 807))

    assert summary_of(*(line.replace("NCCL", "XCCL") for line in lines)).endswith("rank 1 has not enqueued it.")


def test_the_only_rank_that_reports_nothing_is_told() -> None:
    # given four ranks of the group of all, of which rank 2 neither waits nor was told to dump
    lines = [line for rank in (0, 1, 3) for line in (timeout(rank, 26), stopped(rank, 26, enqueued=26, own=rank))]

    assert summary_of(*lines).endswith("timed out on 3 ranks: in these logs all ranks report it but 2.")
