"""How far each call got: batches of messages, devices that have not begun, lost calls, dumps that say little."""

from typing import Any

import pytest

from tests.fabric.dumps import Groups, Recorder, recorders
from tests.fabric.test_hang import fabric_of_dumps, hangs

FOUR: Groups = {"0": [0, 1, 2, 3]}
STAGES: Groups = {"0": [0, 1, 2], "4": [0, 1, 2]}


def pipeline() -> list[Recorder]:
    """Three stages whose two batches have ended: parts of a batch stay `scheduled`.

    rank 0   send 0->1          recv 0<-1
    rank 1   recv 1<-0 | send 1->2          recv 1<-2 | send 1->0
    rank 2   recv 2<-1          send 2->1
    """
    ranks = recorders(STAGES)
    ranks[0].batch("4", "send 0->1", state="completed").batch("4", "recv 0<-1", state="completed")
    ranks[1].batch("4", "recv 1<-0", "send 1->2", state="completed")
    ranks[1].batch("4", "recv 1<-2", "send 1->0", state="completed")
    ranks[2].batch("4", "recv 2<-1", state="completed").batch("4", "send 2->1", state="completed")
    return ranks


def test_parts_of_a_batch_that_ended_do_not_hang() -> None:
    (hang,) = hangs(pipeline())

    assert (hang["kind"], hang["waiting_ranks"]) == ("none", [])


def test_whoever_makes_no_batch_that_its_neighbours_wait_for_is_named() -> None:
    # given that rank 1 stops where the others send to it and receive from it
    ranks = pipeline()
    ranks[0].batch("4", "send 0->1")
    ranks[2].batch("4", "recv 2<-1")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("absent", [1], [0, 2])


def test_behind_batches_the_collective_that_a_rank_never_made_is_found() -> None:
    ranks = pipeline()
    for rank in (0, 2):
        ranks[rank].got("0", 7, 6).calls("0", 7)
    ranks[1].got("0", 6, 6)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["sequence"]) == ("absent", [1], 7)


def test_collectives_beside_messages_in_one_group_are_compared_by_their_own_numbers() -> None:
    # given counters that count messages too, so that rank 1 looks ahead, and rank 2 that never made collective 6
    ranks = recorders({"0": [0, 1, 2]})
    for rank, counted in ((0, 6), (1, 40)):
        ranks[rank].got("0", counted, counted - 1).calls("0", 5, state="completed").calls("0", 6)
    ranks[1].sends("0", "send 1->2", sequence=6)
    ranks[2].got("0", 30, 30).calls("0", 5, state="completed")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["sequence"]) == ("absent", [2], 6)


def test_a_device_that_has_not_begun_what_others_have_begun_is_named() -> None:
    ranks = recorders(FOUR)
    for rank in ranks:
        rank.got("0", 9, 8).calls("0", 8, state="completed")
        rank.calls("0", 9, state="scheduled" if rank.rank == 2 else "started")
        rank.entries[0]["time_discovered_started_ns"] = 5

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("unstarted", [2], [0, 1, 3])
    assert "has not begun a call that other members have begun: all_reduce 9" in hang["summary"]


def test_without_recorded_starts_a_device_or_the_transfer_may_hang() -> None:
    (hang,) = hangs([rank.got("0", 9, 8).calls("0", 9) for rank in recorders(FOUR)])

    assert hang["kind"] == "transfer"
    assert "Either the transfer itself hangs, or the device of a member has not come to it" in hang["detail"]
    assert "TORCH_NCCL_ENABLE_TIMING=1" in hang["next_step"]


def test_dumps_that_are_not_of_one_moment_accuse_nobody() -> None:
    # given dumps written one after the other: rank 2 ended an all_reduce that rank 0 had not even made
    ranks = recorders(FOUR)
    for rank in ranks:
        made = 40 + rank.rank
        rank.got("0", made, made - 1).calls("0", made - 1, state="completed").calls("0", made)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("unknown", [])
    assert "Rank 2 had ended all_reduce 41" in hang["summary"]
    assert "which rank 0 had not yet made" in hang["summary"]
    assert hang["next_step"].startswith("Write the dumps of all ranks at one moment")


def test_a_broadcast_that_its_root_ended_says_nothing_of_the_moment() -> None:
    ranks = recorders({"0": [0, 1]})
    ranks[0].got("0", 9, 9).calls("0", 9, "broadcast", state="completed")
    ranks[1].got("0", 8, 8).calls("0", 8, "broadcast", state="completed")

    assert [hang["kind"] for hang in hangs(ranks)] == ["none"]


def test_a_ring_of_sends_that_each_wait_for_the_next_is_told_as_one() -> None:
    ranks = recorders(FOUR)
    for rank in ranks:
        rank.sends("0", f"send {rank.rank}->{(rank.rank + 1) % 4}")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("order", [0, 1, 2, 3])
    assert "in a ring" in hang["summary"]
    assert "rank 2 in send 2->3" in hang["summary"]


def test_two_ranks_that_both_send_first_wait_for_each_other() -> None:
    ranks = recorders({"0": [0, 1]})
    for rank in ranks:
        rank.got("0", 2, 2).sends("0", f"send {rank.rank}->{1 - rank.rank}")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("order", [0, 1])
    assert "rank 0 in send 0->1" in hang["summary"]
    assert hang["detail"].startswith("Each sends before it receives, so that nobody is at the other end")


def test_a_send_and_its_receive_of_other_sizes_do_not_match() -> None:
    ranks = recorders({"0": [0, 1]})
    ranks[0].got("0", 2, 2).sends("0", "send 0->1")
    ranks[1].got("0", 2, 2).sends("0", "recv 1<-0").entries[-1]["input_sizes"] = [[16]]

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("mismatch", [0, 1])
    assert hang["summary"] == (
        "Rank 0 calls send 0->1 ([8] Float), and at its other end rank 1 calls recv 1<-0 ([16] Float): these do not "
        "match."
    )


def test_a_message_that_is_missed_is_the_one_of_its_neighbour() -> None:
    # given a pipeline in which rank 2 stops: rank 1 waits for it, and rank 0 for rank 1
    ranks = recorders(FOUR)
    for rank in ranks:
        rank.got("0", 3, 3)
    ranks[0].sends("0", "recv 0<-1")
    ranks[1].sends("0", "recv 1<-2")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("absent", [2], [0, 1])
    assert hang["summary"].startswith(
        "Rank 2 never made the other end of recv 1<-2 of 0_GROUP (ranks 0\N{EN DASH}3), in"
    )
    assert hang["summary"].endswith("which rank 1 waits; because of that, 1 more waits in other calls.")


def test_one_rank_that_calls_what_the_many_do_not_may_be_the_odd_one() -> None:
    ranks = recorders(FOUR)
    for rank in ranks:
        rank.got("0", 6, 6)
    ranks[3].got("0", 7, 6).calls("0", 7)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("ahead", [3], [3])
    assert "Rank 3 alone waits in all_reduce 7" in hang["summary"]
    assert "ranks 0\N{EN DASH}2 never made that call, and wait in none" in hang["summary"]


def test_a_call_that_the_dump_has_lost_is_older_than_those_it_holds() -> None:
    # given that rank 0's dump holds calls 9 and 10 alone, and its counter says that 8, which rank 1 never made, waits
    ranks = recorders({"0": [0, 1]})
    ranks[0].got("0", 10, 7).calls("0", 9).calls("0", 10)
    ranks[1].got("0", 7, 7).calls("0", 7, state="completed")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["sequence"]) == ("absent", [1], 8)
    assert "call 8 of 0_GROUP" in hang["summary"]


def test_counters_tell_what_ended_where_entries_have_no_state() -> None:
    def stateless(waits: bool) -> list[dict[str, Any]]:
        ranks = recorders({"0": [0, 1]})
        ranks[0].got("0", 9, 8 if waits else 9).calls("0", 8).calls("0", 9)
        ranks[1].got("0", 8 if waits else 9, 8 if waits else 9).calls("0", 8)
        for rank in ranks:
            for entry in rank.entries:
                del entry["state"]
        return hangs(ranks)

    assert [hang["kind"] for hang in stateless(waits=False)] == ["none"]
    assert [(hang["kind"], hang["ranks"]) for hang in stateless(waits=True)] == [("absent", [1])]


def test_without_states_and_counters_nothing_is_known() -> None:
    ranks = recorders({"0": [0, 1]})
    for rank in ranks:
        rank.calls("0", 8).calls("0", 9)
        for entry in rank.entries:
            del entry["state"]
        rank.counts = False

    (hang,) = hangs(ranks)

    assert hang["kind"] == "unknown"
    assert "of 4 calls the dumps do not say" in hang["summary"]


def test_calls_of_no_known_group_leave_it_open_whether_the_job_hangs() -> None:
    ranks = recorders({"0": [0, 1]})
    for rank in ranks:
        rank.calls("0", 4)
        rank.entries[0] |= {"process_group": None, "collective_seq_id": None}

    (hang,) = hangs(ranks)

    assert hang["kind"] == "unknown"
    assert "of 2 calls the dumps do not say" in hang["summary"]


def test_a_group_that_nobody_described_goes_by_its_name() -> None:
    ranks = recorders({"0": [0, 1]})
    ranks[0].got("0", 2, 1).calls("0", 2)
    ranks[1].got("0", 1, 1)
    dumps = [rank.dump() for rank in ranks]
    for rank, dump in zip(ranks, dumps, strict=True):
        config: Any = dump["pg_config"]
        config["0"]["desc"] = "undefined"
        rank.dump = lambda dump=dump: dump  # type: ignore[method-assign, misc]

    (hang,) = hangs(ranks)

    assert "of process group 0 (ranks" in hang["summary"]


@pytest.mark.parametrize("ranks", ['[3, "x"]', "[0, 0, 1]", "[0, 99999999999]", "[]", "all"])
def test_members_that_are_no_ranks_count_as_not_stated(ranks: str) -> None:
    recorder = recorders({"0": [0, 1]})[0].got("0", 1, 1)
    dump = recorder.dump()
    config: Any = dump["pg_config"]
    config["0"]["ranks"] = ranks
    recorder.dump = lambda: dump  # type: ignore[method-assign]

    with fabric_of_dumps([recorder], asked="fabric.process_group") as store:
        assert store.query("SELECT ranks FROM fabric.process_group").rows() == [(None,)]
