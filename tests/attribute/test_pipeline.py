"""Pipelines judged: stages are held against the same stage elsewhere, and what cannot be seen is said."""

import re
from collections.abc import Callable

import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import Run, told

TRANSFER = MS
Work = Callable[[int, int], int]


def pipeline_job(
    replicas: int,
    work_ns: Work,
    iterations: int = 12,
    slow_link: int | None = None,
    lost: int | None = None,
    loads_ns: int = 0,
    *,
    is_synchronised: bool = False,
) -> Run:
    """Two stages: the first computes and sends, the second receives and computes; then replicas of a stage reduce.

        stage 0   |compute···|send|        |reduce|
        stage 1   |receive········|compute·|reduce|

    Rank = 2 * replica + stage.

    Args:
        work_ns: by iteration and rank.
        slow_link: replica whose messages take 10 ms longer.
        lost: rank whose file is not there.
        loads_ns: how long the first stage's host waits for its batch before it computes.
        is_synchronised: whether hosts issue all of a step at once and wait for their devices at its end.
    """
    traces = [Trace(rank) for rank in range(2 * replicas)]
    now = 0
    for n in range(iterations):
        done = []
        for replica in range(replicas):
            ranks = (2 * replica, 2 * replica + 1)
            begun = now + loads_ns
            if loads_ns:
                traces[ranks[0]].host_work("enumerate(DataLoader)#next", now, begun)
            sent = begun + work_ns(n, ranks[0])
            got = sent + TRANSFER + 10 * MS * (replica == slow_link)
            issued = [begun + US, now + US] if is_synchronised else [sent, got]
            pipe = f"pp{replica}"
            traces[ranks[0]].kernel(begun, sent)
            traces[ranks[0]].exchange(sent, got, [("send", 1)], ranks=ranks, group=pipe, issue_ns=issued[0])
            traces[ranks[1]].exchange(now + 100, got, [("recv", 0)], ranks=ranks, group=pipe)
            traces[ranks[1]].kernel(got, got + work_ns(n, ranks[1]), launch_ns=issued[1])
            done += [got, got + work_ns(n, ranks[1])]
        end = max(done) + TRANSFER
        for rank, trace in enumerate(traces):
            if replicas > 1:
                peers = range(rank % 2, 2 * replicas, 2)
                last = max(done[peer] for peer in peers)
                issued_ns = now + loads_ns * (rank % 2 == 0) + 7 * US if is_synchronised else done[rank]
                trace.collective(
                    done[rank], last + TRANSFER, issue_ns=issued_ns, group=f"dp{rank % 2}", ranks=list(peers)
                )
            if is_synchronised:
                trace.host_work("cudaDeviceSynchronize", now + loads_ns * (rank % 2 == 0) + 9 * US, end, "cuda_runtime")
            trace.step(n, now, end)
        now = end
    if lost is not None:
        # Without a message of the lost rank only the groups' own words tell which axis is the pipeline.
        for rank, trace in enumerate(traces):
            trace.groups = [(f"pp{rank // 2}", "mesh_pp", [rank - rank % 2, rank - rank % 2 + 1])]
    recorded = [trace for rank, trace in enumerate(traces) if rank != lost]
    return told(*recorded, world_size=len(traces))


def _even(n: int, rank: int) -> int:
    # the second stage has a head and takes longer by design; all vary by a few µs
    return (40 if rank % 2 else 20) * MS + (n * 7919 + rank * 104_729) % 20_000


def _findings(store: Run) -> list[tuple[object, ...]]:
    return rows_of(store, "SELECT subject_kind, subject, cause FROM attribute.finding WHERE confidence <> 'low'")


def test_a_stage_with_more_work_in_all_replicas_is_not_accused() -> None:
    store = pipeline_job(3, _even)

    assert _findings(store) == []
    assert rows_of(store, "SELECT DISTINCT axis FROM timeline.mesh ORDER BY 1") == [("dp",), ("pp",)]
    ((headline, explanation),) = rows_of(store, "SELECT headline, explanation FROM attribute.verdict")
    # 40 against 20 ms, one micro-batch: shared evenly it would go through both stages no sooner
    assert str(headline).startswith("Stage 1 (ranks 1, 3, 5) computes 33 % longer than the mean stage, by design or by")
    assert "at the others' pace, an iteration would be about 20.0 ms (32 %) shorter, evened out hardly any" in headline
    assert "a stage that is slow in all replicas" in str(explanation)
    # a rank that is late itself waits less: without that part the others would be more than the whole
    told = re.search(r"([\d.]+) % of a rank's own step .* stages\): (.*), less (.*)\. With 4 micro", str(explanation))
    assert told is not None
    assert "48 points fill and drain" in told[2]
    assert "of waits that late ranks are spared" in told[3]
    more, less = (sum(float(points) for points in re.findall(r"([\d.]+) points? ", part)) for part in told.groups()[1:])
    assert more - less == pytest.approx(float(told[1]), abs=1.5)


def test_who_computes_longer_than_its_peers_is_told_where_the_file_of_another_rank_is_missing() -> None:
    # given three replicas, of which rank 2 computes 25 instead of 20 ms, and no file of rank 5
    store = pipeline_job(3, lambda n, rank: _even(n, rank) + 5 * MS * (rank == 2), lost=5)

    # then no wait can be known, but what rank 2 computes can; the longer second stage is no news
    ((kind, headline, said),) = rows_of(store, "SELECT kind, headline, explanation FROM attribute.verdict")
    assert kind == "cannot_be_known"
    assert "5 of 6 ranks were recorded" in str(headline)
    assert "rank 2 computes for 25.0 ms an iteration, 25 % longer than is usual in its stage (0), in 12 of 12" in str(
        said
    )


def test_a_healthy_pipeline_of_which_a_file_is_missing_accuses_nobody() -> None:
    store = pipeline_job(3, _even, lost=5)

    assert "longer than is usual" not in str(rows_of(store, "SELECT explanation FROM attribute.verdict"))


def test_even_stages_are_not_called_uneven() -> None:
    store = pipeline_job(3, lambda n, rank: 30 * MS + (n * 7919 + rank * 104_729) % 20_000)

    ((headline, uneven),) = rows_of(store, "SELECT headline, is_unbalanced FROM attribute.verdict")
    assert str(headline).startswith("Nothing significant")
    assert uneven is False
    loads = rows_of(store, "SELECT stage, ranks, ROUND(excess_share, 2) FROM timeline.stage_load ORDER BY stage")
    assert loads == [(0, [0, 2, 4], 0.0), (1, [1, 3, 5], 0.0)]


def test_a_rank_that_is_slower_than_its_stage_elsewhere_is_named() -> None:
    store = pipeline_job(3, lambda n, rank: _even(n, rank) + 8 * MS * (rank == 2))

    assert _findings(store) == [("rank", "2", "slow_compute")]
    ((delay_ns, excess_ns),) = rows_of(
        store, "SELECT (SELECT delay_ns_per_iteration FROM attribute.finding), AVG(excess_ns) FROM attribute.excess"
    )
    # its own next stage waits for it, and the reduction of both stages
    assert float(str(excess_ns)) == pytest.approx(8 * MS, rel=0.02)
    assert float(str(delay_ns)) == pytest.approx(8 * MS, rel=0.05)


def test_a_link_that_is_slower_than_between_the_same_stages_elsewhere_is_named() -> None:
    store = pipeline_job(3, _even, slow_link=1)

    assert _findings(store) == [("link", "2, 3", "slow_path")]
    ((delay_ns,),) = rows_of(store, "SELECT delay_ns_per_iteration FROM attribute.finding WHERE confidence <> 'low'")
    assert float(str(delay_ns)) == pytest.approx(10 * MS, rel=0.02)


def test_a_stage_that_is_slow_for_a_while_in_all_replicas_is_one_subject() -> None:
    store = pipeline_job(3, lambda n, rank: _even(n, rank) + 8 * MS * (rank % 2 == 0 and 3 <= n < 7), iterations=14)

    assert _findings(store) == [("stage", "0", "slow_compute")]
    ((summary, step),) = rows_of(store, "SELECT summary, next_step FROM attribute.finding WHERE confidence <> 'low'")
    # no other rank does the same work: it is held against its own iterations
    assert str(summary).startswith("Stage 0 (ranks 0, 2, 4) computes longer than in other iterations")
    assert "with another iteration" in str(step)


def test_a_stage_of_one_rank_is_held_against_its_own_iterations() -> None:
    store = pipeline_job(1, lambda n, rank: _even(n, rank) + 8 * MS * (rank == 0 and n >= 9), iterations=14)

    ((summary, step),) = rows_of(store, "SELECT summary, next_step FROM attribute.finding WHERE confidence <> 'low'")
    assert str(summary).startswith(
        "Rank 0 computes longer than in other iterations, 8.00 ms in each of 5 of 14 iterations, since iteration 9"
    )
    assert "on rank 0 with another iteration" in str(step)


def test_of_one_replica_a_slow_stage_does_not_show_and_the_verdict_says_so() -> None:
    store = pipeline_job(1, lambda n, rank: _even(n, rank) + 8 * MS * (rank == 0))

    assert _findings(store) == []
    ((headline, explanation, confidence),) = rows_of(
        store, "SELECT headline, explanation, confidence FROM attribute.verdict"
    )
    assert str(headline).startswith("Stage 1 (rank 1) computes 18 % longer than the mean stage")
    assert "does not show, as there is one replica of each" in str(explanation)
    assert confidence == "low"
    sight = "SELECT DISTINCT smallest_delay_ns_per_iteration FROM attribute.sight WHERE subject_kind = 'rank'"
    # what it would have found are pauses
    assert "no rank that pauses" in str(explanation)
    assert rows_of(store, f"{sight} AND cause = 'slow_compute'") == [(None,)]
    ((pause_ns,),) = rows_of(store, f"{sight} AND cause = 'input_stall'")
    assert int(str(pause_ns)) < 8 * MS


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("is_synchronised", [False, True])
def test_a_stage_that_always_waits_for_its_input_is_named_for_that(replicas: int, is_synchronised: bool) -> None:
    # given a first stage whose device stands still for 8 of 70 ms while its batch is loaded, in all replicas
    store = pipeline_job(replicas, _even, loads_ns=8 * MS, is_synchronised=is_synchronised)

    # then it is no work that the stage has by design, though no other rank does the same
    kind, subject = ("rank", "0") if replicas == 1 else ("stage", "0")
    assert _findings(store) == [(kind, subject, "input_stall")]
    ((delay_ns,),) = rows_of(store, "SELECT delay_ns_per_iteration FROM attribute.finding WHERE confidence <> 'low'")
    assert float(str(delay_ns)) == pytest.approx(8 * MS, rel=0.05)


def test_the_share_that_is_matched_counts_messages() -> None:
    # rank 1 receives one of two messages of a batch of rank 0; its other message is to rank 2, whose file is not there
    ranks = [0, 1, 2]
    first = Trace(0).exchange(50, 90, [("send", 1), ("send", 2)], ranks=ranks)
    second = Trace(1).exchange(60, 90, [("recv", 0)], ranks=ranks)
    store = told(first, second)

    share = "SELECT call_count, matched_share FROM timeline.communicator"
    assert rows_of(store, share) == [(3, pytest.approx(2 / 3))]


def test_a_pipeline_of_which_a_stage_is_missing_cannot_be_judged_and_says_who_is_missing() -> None:
    # given four stages, of which each passes on what it receives; the file of the last one is not there
    ranks = (0, 1, 2, 3)
    traces = [Trace(rank) for rank in ranks[:3]]
    for n in range(12):
        for rank, trace in enumerate(traces):
            got = (60 * n + 20 * rank) * MS
            trace.step(n, 60 * n * MS, 60 * (n + 1) * MS)
            if rank:
                trace.exchange(60 * n * MS + MS, got, [("recv", rank - 1)], ranks=ranks)
            trace.kernel(got, got + 18 * MS)
            trace.exchange(got + 18 * MS, got + 20 * MS, [("send", rank + 1)], ranks=ranks)

    store = told(*traces, world_size=4)

    ((kind, headline, step),) = rows_of(store, "SELECT kind, headline, next_step FROM attribute.verdict")
    assert kind == "cannot_be_known"
    assert str(headline).startswith("Only 3 of 4 ranks were recorded, and no iteration is whole")
    assert str(step).startswith("Record the same steps on all ranks")
