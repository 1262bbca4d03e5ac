"""What NICs and connections report is a problem only where something failed."""

import pytest

from tests.fabric.logs import Process, fabric_of

EVENTS = {
    "NET/IB : Got async event : port error": "problem",
    "NET/IB : mlx5_0:1 Got async event : local access violation work queue error": "problem",
    "NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)": "problem",
    "NET/IB : mlx5_0:1 async fatal event on QP (0x7f) qpn=7 handle=3: local work queue catastrophic error": "problem",
    "NET/IB: Device 1 marked as failed. Initiating recovery? Yes (send comm=0x7f, outstandingRecovery=1)": "problem",
    "NET/IB : Got async event : client reregistration": "notice",
    "NET/IB : mlx5_0:1 Got async event : GID table change": "notice",
    "NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)": "notice",
    "NET/IB : mlx5_0:1 Got async error event: client reregistration": "notice",
    "NET/IB : mlx5_0:1 Got async error event: port error": "problem",
    "NET/IB : mlx5_0:1 GID table changed": "notice",
    "NET/IB : mlx5_0:1 speed change detected: 200000 -> 400000 Mbps": "notice",
    "socketPollConnect: connect to b<50> returned Connection refused, retrying (1/34) after sleep for 1 msec": "notice",
}


@pytest.mark.parametrize("message", EVENTS)
def test_what_a_port_lives_with_is_no_problem(message: str) -> None:
    with fabric_of([Process(0).init().says(message)]) as store:
        rows = store.query("SELECT code, severity, summary FROM fabric.finding").rows()

    ((code, severity, summary),) = rows
    assert (code, severity) == ("link_trouble", EVENTS[message])
    assert message in summary


def test_a_failed_operation_names_its_nic_in_every_form() -> None:
    # given the forms of 2.26, 2.28, 2.32 and of NCCL's own requests from the device
    start, end = "Got completion from peer 10.0.0.2<5116> with ", "localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2"
    named = "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)"
    messages = (
        f"NET/IB: {start}status=12 opcode=1 len=0 vendor err 129 (Send) {end} hca mlx5_1",
        f"NET/IB: {start}{named} reqSize=8 vendor_err=129 req_type=Send {end} hca mlx5_1",
        f"NET/IB: {start}{named} vendor_err=129 qp_num=7 {end} hca mlx5_1",
        f"NET/IB/GIN: {start}status=12 opcode=1 len=0 vendor err 129 (Send) {end} hca mlx5_1",
    )
    with fabric_of([Process(0).init().says(*messages)]) as store:
        events = store.query("SELECT DISTINCT nic_name, code, vendor_error, local_gid FROM raw.nccl_event").rows()
        found = store.query("SELECT code, subject, citation_count FROM fabric.finding").rows()

    assert events == [("mlx5_1", 12, 129, "::ffff:10.0.0.1")]
    assert found == [("completion_error", "a mlx5_1", 4)]


def test_a_closed_connection_is_a_problem_where_nccl_gave_up_on_it() -> None:
    # given the same warning on two hosts, of which one returns the error from function to function
    processes = [Process(rank, host="ab"[rank]).init() for rank in range(2)]
    for process in processes:
        head = process.lines[0].split(" NCCL INFO ")[0]
        process.lines.append(f"{head} misc/socket.cc:49 NCCL WARN Connection closed by remote peer c<50>")
    processes[1].says("misc/socket.cc:752 -> 6", "proxy.cc:905 -> 6 [Progress Thread]")
    with fabric_of(processes) as store:
        rows = store.query("SELECT subject, severity FROM fabric.finding ORDER BY subject").rows()

    assert rows == [("a", "notice"), ("b", "problem")]
