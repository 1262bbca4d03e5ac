"""Networks that NCCL cannot start, and what it does without them."""

from tests.fabric.logs import Process, fabric_of
from tests.fabric.network_stories import fallen_back
from tests.given import rows_of

FINDINGS = "SELECT code, severity FROM fabric.finding ORDER BY finding_id"


def test_a_plug_in_that_does_not_start_is_one_problem_of_several_nodes() -> None:
    with fabric_of(fallen_back()) as store:
        assert rows_of(store, FINDINGS) == [("plugin_failed", "problem")]


def test_a_job_of_one_node_needs_no_plug_in() -> None:
    with fabric_of(fallen_back(nodes=1)) as store:
        assert rows_of(store, FINDINGS) == []


def test_a_plug_in_that_does_not_start_is_a_notice_where_the_nodes_are_not_known() -> None:
    with fabric_of(fallen_back()[:1]) as store:
        assert rows_of(store, FINDINGS) == [("plugin_failed", "notice")]


def test_one_node_that_is_known_does_not_make_sockets_between_nodes_a_problem() -> None:
    # given ranks of one node, which are two of the four of a further communicator, too
    here = fallen_back(nodes=1)
    for process in here:
        process.init(size=4, comm=0xB0, comm_hash="0xbeef")

    with fabric_of(here) as store:
        assert ("plugin_failed", "notice") in rows_of(store, FINDINGS)


def test_connections_over_sockets_say_that_the_plug_in_did_not_start() -> None:
    # given the same two nodes, which connect
    first, second = fallen_back()
    both = [first.sends(1, "NET/Socket/0"), second.receives(0, "NET/Socket/0")]

    with fabric_of(both) as store:
        assert rows_of(store, FINDINGS) == [("socket_fallback", "problem")]
        ((summary,),) = rows_of(store, "SELECT summary FROM fabric.finding")

    assert "1 of 1 connections between nodes run over TCP sockets (ranks 0\N{EN DASH}1); the plug-in" in summary


def test_no_network_at_all_ends_the_job_also_in_a_log_of_warnings_alone() -> None:
    alone = Process(0)
    alone.lines.append(alone.head.replace("INFO", "WARN Failed to initialize any NET plugin").rstrip())

    with fabric_of([alone]) as store:
        assert rows_of(store, FINDINGS) == [("gave_up", "problem")]
        ((step,),) = rows_of(store, "SELECT next_step FROM fabric.finding")

    assert "NCCL_NET" in step
