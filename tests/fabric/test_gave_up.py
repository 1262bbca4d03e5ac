"""Why NCCL gave up is told where a warning stands right before the functions that return."""

import pytest

from tests.fabric.logs import Process, fabric_of

FOUND = "SELECT code, summary FROM fabric.finding WHERE severity = 'problem' ORDER BY code, citation_count DESC"


def warning(process: Process, text: str, place: str = "init.cc:943") -> Process:
    head = f"{process.host}:{1000 + process.rank}:{1000 + process.rank} [{process.device}]"
    process.lines.append(f"{head} {place} NCCL WARN {text}")
    return process


def found(*processes: Process) -> list[tuple[str, str]]:
    with fabric_of(list(processes)) as store:
        return store.query(FOUND).rows()


def test_a_warning_that_functions_return_for_is_the_reason() -> None:
    process = warning(Process(0), "Attribute arch of node cpu not found").says("graph/topo.cc:4 (fill) -> 3")

    assert found(process) == [("gave_up", "NCCL gave up on host a: Attribute arch of node cpu not found")]


def test_a_warning_of_earlier_work_is_no_reason() -> None:
    process = warning(Process(0), 'Missing "iommu=pt" from kernel command line').init()

    assert found(process.says("transport/net.cc:4 -> 6")) == []


def test_a_warning_that_nothing_returned_for_is_no_reason() -> None:
    assert found(warning(Process(0), "Attribute arch of node cpu not found").init()) == []


def test_what_nccl_did_without_is_no_reason() -> None:
    process = warning(Process(0), "NET/OFI Only EFA provider is supported").says("plugin/net.cc:4 -> 2")

    assert found(process.says("Using network Socket").init()) == []


def test_what_another_finding_tells_is_told_once() -> None:
    # given a CUDA call that failed, of which the one that made it warns as well
    process = warning(warning(Process(0), "Cuda failure 2 'out of memory'"), "Failed to CUDA calloc 6291456 bytes")

    assert [code for code, _ in found(process.says("transport/p2p.cc:204 -> 1"))] == ["failed_call"]


def test_sizes_that_do_not_match_are_told_without_any_function() -> None:
    # given NCCL_DEBUG=WARN
    text = "NET/IB : req 0/1 tag 0 peer 10.0.0.2<5000> collective mismatch error, local size 8 remote size 4"

    assert found(warning(Process(0), text)) == [("gave_up", f"NCCL gave up on host a: {text}")]


def test_an_exception_is_told_where_functions_return_without_a_warning() -> None:
    process = Process(0).says("proxy.cc:4 -> 3")
    process.lines.append("[rank0]: NCCL error in: /c10d/ProcessGroupNCCL.cpp:3690, internal error, NCCL version 2.27.3")

    assert found(process) == [("failed_operation", "NCCL failed (rank 0): internal error.")]


@pytest.mark.parametrize("what", ["rank count from procs 16 : 8", "info from procs, nranks 16 vs 16, offset 0 vs -98"])
def test_another_number_or_version_of_ranks_is_a_reason_without_a_function_that_returns(what: str) -> None:
    process = warning(Process(0), f"Bootstrap Root : mismatch in {what}")

    assert found(process) == [("gave_up", f"NCCL gave up on host a: Bootstrap Root : mismatch in {what}")]


ALONE = {
    # as NCCL_DEBUG=WARN prints them: no function says that it returns
    "Call to connect to 10.0.0.2<5000> failed : Connection refused": ("failed_call", "notice"),
    "socketPollConnect: connect to 10.0.0.2<50> returned Connection refused, exceeded error retry count after 35 "
    "attempts": ("failed_call", "problem"),
    "Cuda failure 1 'invalid argument'": ("failed_call", "notice"),
    "Cuda failure 700 'an illegal memory access was encountered'": ("failed_call", "problem"),
    "Error while creating shared memory segment /dev/shm/nccl-Ab12 (size 9637888)": ("warned", "notice"),
    "Error: network IBext not found.": ("gave_up", "problem"),
}


@pytest.mark.parametrize("text", ALONE)
def test_a_warning_is_told_where_the_log_holds_warnings_alone(text: str) -> None:
    with fabric_of([warning(Process(0), text)]) as store:
        ((code, severity, summary),) = store.query("SELECT code, severity, summary FROM fabric.finding").rows()

    assert (code, severity) == ALONE[text]
    assert text in summary


def test_a_warning_alone_is_a_problem_where_an_exception_ends_the_job() -> None:
    # given vLLM's words of the exception
    process = warning(Process(0), "Cuda failure 1 'invalid argument'")
    process.lines.append("RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)")

    assert found(process) == [("failed_call", "1 call failed on host a: Cuda failure 1 'invalid argument'")]


STEPS = {
    "Call to posix_fallocate failed : No space left on device": "enough shared memory",
    "Call to ibv_create_cq failed with error Cannot allocate memory": "limit of locked memory",
    "Call to recv from b<5> failed : Connection reset by peer": "the log of the rank at the other end",
    "Cuda failure 2 'out of memory'": "Leave memory of the GPU for NCCL",
    "Cuda failure 719 'unspecified launch failure'": "Xid errors",
    "Cuda failure 801 'operation not supported'": "IMEX",
}


@pytest.mark.parametrize("text", STEPS)
def test_what_to_do_depends_on_the_call_that_failed(text: str) -> None:
    process = warning(Process(0), text, "transport/nvls.cc:91").says("transport.cc:30 -> 2")

    with fabric_of([process]) as store:
        ((code, step),) = store.query("SELECT code, next_step FROM fabric.finding").rows()

    assert code == "failed_call"
    assert STEPS[text] in step


def test_each_function_that_fails_on_a_host_is_told() -> None:
    # given two processes of a host that fail alike, of which one fails otherwise, too
    process, other = Process(0), Process(1)
    for one in (process, other):
        warning(one, "Call to posix_fallocate failed : No space left on device")
    warning(process, "Call to ibv_create_cq failed with error Cannot allocate memory")

    for one in (process, other):
        one.says("transport.cc:30 -> 2")

    assert found(process, other) == [
        ("failed_call", "2 calls failed on host a: Call to posix_fallocate failed : No space left on device"),
        ("failed_call", "1 call failed on host a: Call to ibv_create_cq failed with error Cannot allocate memory"),
    ]


def test_what_fails_after_the_device_is_no_finding_of_its_own() -> None:
    process = warning(Process(0), "Cuda failure 700 'an illegal memory access was encountered'")
    warning(process, "Call to recv from 10.0.0.2<5000> failed : Connection reset by peer")

    assert [words for _, words in found(process)] == [
        "1 call failed on host a: Cuda failure 700 'an illegal memory access was encountered'"
    ]


def test_nvlink_between_hosts_that_does_not_work_names_its_service() -> None:
    process = warning(Process(0), "MNNVL (cliqueSize 8) is available but not working on some or all nodes.")

    with fabric_of([process.says("init.cc:1044 -> 3")]) as store:
        ((code, step),) = store.query("SELECT code, next_step FROM fabric.finding").rows()

    assert code == "gave_up"
    assert "nvidia-imex" in step
