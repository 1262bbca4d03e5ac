"""Links that are always slower than others for as many bytes: what is said of them, and when nothing is.

host    a         b         c
rank    0 ──1 ms──1 ──4 ms──2        one pipeline, whose messages have one size
"""

from collections.abc import Sequence

import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import Run, told
from traceforge.attribute.link_text import UnevenLink, no_more_than_waited, uneven_link
from traceforge.attribute.longer_stages import StageLoad, told_of
from traceforge.attribute.verdict import _beside_finding

LOADS = """
SELECT low_host, high_host, messages, exchanges_per_iteration, transfer_ns, usual_transfer_ns
FROM timeline.link_load ORDER BY low_host, high_host
"""
VERDICT = "SELECT kind, headline, next_step, is_unbalanced FROM attribute.verdict"


def job(
    second_ns: int,
    *,
    hosts: str | None = "abc",
    iterations: int = 12,
    longer: Sequence[int] = (),
    is_answered: bool = False,
    middle_ns: int = 40 * MS,
) -> Run:
    """Three stages that compute 40 ms each; messages to the second take 1 ms, those to the third as long as asked.

    Args:
        longer: iterations in which the first stage computes 30 ms longer.
        is_answered: whether the receiver sends as many bytes back in the same kernel.
        middle_ns: what the second stage computes.
    """
    sends, receives = (["send", "recv"], ["recv", "send"]) if is_answered else (["send"], ["recv"])
    ranks = range(3)
    traces = [Trace(rank, host=host) for rank, host in zip(ranks, hosts or [None] * 3, strict=True)]
    now = 0
    for n in range(iterations):
        sent = now + (70 if n in longer else 40) * MS
        at = [sent, sent + MS, sent + MS + middle_ns, sent + MS + middle_ns + second_ns]
        traces[0].kernel(now, at[0]).exchange(at[0], at[1], [(way, 1) for way in sends], ranks=ranks)
        traces[1].exchange(now + 100, at[1], [(way, 0) for way in receives], ranks=ranks).kernel(at[1], at[2])
        traces[1].exchange(at[2], at[3], [(way, 2) for way in sends], ranks=ranks)
        traces[2].exchange(now + 100, at[3], [(way, 1) for way in receives], ranks=ranks).kernel(at[3], at[3] + 40 * MS)
        end = at[3] + 41 * MS
        for rank, since in zip(ranks, (at[1], at[3], at[3] + 40 * MS), strict=True):
            traces[rank].collective(since, end, group="all", ranks=list(ranks)).step(n, now, end)
        now = end
    return told(*traces)


def test_messages_that_always_take_four_times_as_long_as_between_other_hosts_are_told_and_nobody_is_accused() -> None:
    store = job(8 * MS)

    assert rows_of(store, LOADS) == [("a", "b", 12, 1, MS, 8 * MS), ("b", "c", 12, 1, 8 * MS, MS)]
    ((kind, headline, step, is_unbalanced),) = rows_of(store, VERDICT)
    assert (kind, is_unbalanced) == ("nothing_significant", True)
    assert str(headline).startswith(
        "Messages between hosts b and c take 8.00 ms, those of as many bytes between other hosts 1.00 ms, by a longer "
        "way or by a fault, which one run cannot tell"
    )
    assert "were they as fast, an iteration would be up to 7.00 ms (5.4 %) shorter" in str(headline)
    assert "another rack" in str(step)


def test_messages_between_devices_of_one_host_are_held_against_each_other() -> None:
    # given the same job on one host, as it states or not
    for hosts, others in (("aaa", "other ranks of one host"), (None, "other ranks")):
        store = job(8 * MS, hosts=hosts)

        ((_, headline, step, is_unbalanced),) = rows_of(store, VERDICT)
        assert is_unbalanced
        assert str(headline).startswith(
            f"Messages between ranks 1 and 2 take 8.00 ms, those of as many bytes between {others} 1.00 ms, by a longer"
        )
        assert "were they as fast, an iteration would be up to 7.00 ms (5.4 %) shorter" in str(headline)
        assert "nvidia-smi topo -m" in str(step)


def test_messages_there_and_back_in_one_kernel_are_one_exchange() -> None:
    store = job(8 * MS, is_answered=True)

    assert rows_of(store, LOADS) == [("a", "b", 24, 1, MS, 8 * MS), ("b", "c", 24, 1, 8 * MS, MS)]


@pytest.mark.parametrize(
    ("middle_ns", "first", "beside"),
    [
        (46 * MS, "Messages between hosts b and c", "Stage 1 (rank 1)"),
        (64 * MS, "Stage 1 (rank 1)", "Messages between"),
    ],
)
def test_a_slow_link_and_a_longer_stage_do_not_hide_one_another(middle_ns: int, first: str, beside: str) -> None:
    # given messages that take 7 ms longer, and a stage that computes 6 or 24 ms longer
    ((headline, explanation),) = rows_of(
        job(8 * MS, middle_ns=middle_ns), "SELECT headline, explanation FROM attribute.verdict"
    )

    assert str(headline).startswith(first)
    assert f"Beside that: {beside}" in str(explanation)
    assert "Nothing else is significant" in str(explanation)


def buffered(iterations: int = 12) -> Run:
    """Three messages an iteration to each next stage, sent from a buffer: those to the third stage take 8 ms.

    The receiver asks for the first of them early, and for the others when they are all but there.
    """
    ranks = range(3)
    traces = [Trace(rank, host=host) for rank, host in zip(ranks, "abc", strict=True)]
    now = 0
    for n in range(iterations):
        for sender, (begun, takes) in enumerate(((now, MS), (now + 41 * MS, 8 * MS))):
            traces[sender].kernel(begun, begun + 40 * MS)
            for k in range(3):
                sent = begun + (40 + 10 * k) * MS
                arrived, asked = sent + takes, now + 100 if k == 0 else sent + takes - 100 * US
                traces[sender].exchange(sent, sent + 20 * US, [("send", sender + 1)], ranks=ranks)
                traces[sender + 1].exchange(asked, arrived, [("recv", sender)], ranks=ranks, issue_ns=now + 50 + k * US)
        traces[2].kernel(now + 109 * MS, now + 149 * MS)
        end = now + 150 * MS
        for trace in traces:
            trace.collective(now + 149 * MS, end, group="all", ranks=list(ranks)).step(n, now, end)
        now = end
    return told(*traces)


def test_messages_whose_receiver_comes_late_do_not_hide_how_long_they_take() -> None:
    store = buffered()

    assert rows_of(store, LOADS) == [("a", "b", 36, 3, MS, 8 * MS), ("b", "c", 36, 3, 8 * MS, MS)]
    ((_, headline, _, _),) = rows_of(store, VERDICT)
    assert str(headline).startswith("Messages between hosts b and c take 8.00 ms")


def test_a_finding_does_not_hide_a_link_that_is_always_slow() -> None:
    ((headline, explanation),) = rows_of(
        job(8 * MS, longer=(3, 5, 8, 10)), "SELECT headline, explanation FROM attribute.verdict"
    )

    assert str(headline).startswith("Rank 0 computes longer")
    assert "Beside that: Messages between hosts b and c take 8.00 ms" in str(explanation)


@pytest.mark.parametrize(("extra_ns", "first"), [(30, "Messages between"), (29, "Stage 1 (ranks 2, 3)")])
def test_beside_a_finding_the_link_or_the_stage_is_told_that_costs_more(extra_ns: int, first: str) -> None:
    # a stage of 90 ns where the mean one takes 60
    loads = [StageLoad(1, (2, 3), True, 90, 30, 60), StageLoad(0, (0, 1), False, 30, 30, 60)]
    of_finding = {"state": "finding", "finding_mode": "synchronization_amplification", "finding_ranks": [0]}
    link = UnevenLink("between hosts b and c", 8, 1, extra_ns)

    said = _beside_finding({"longer_stages": told_of(loads, {}), **of_finding, "duration_ns": 100, "link": link})
    assert said.startswith(f"Beside that: {first}")


@pytest.mark.parametrize(("second_ns", "hosts"), [(2 * MS - 1, "abc"), (3 * MS, "abc"), (8 * MS, "aab")])
def test_what_is_alike_or_costs_little_or_has_no_peer_is_not_told(second_ns: int, hosts: str) -> None:
    # given messages not twice as long; thrice as long, which costs 2 ms of 124; or the only ones between hosts
    ((_, headline, _, is_unbalanced),) = rows_of(job(second_ns, hosts=hosts), VERDICT)

    assert not str(headline).startswith("Messages")
    assert not is_unbalanced


def load(low: str, high: str, transfer_ns: int, usual_ns: int = 10, quick_ns: int | None = None) -> dict[str, object]:
    return {
        "low_host": low, "high_host": high, "low_rank": None, "high_rank": None, "exchanges_per_iteration": 3.0,
        "transfer_ns": transfer_ns,
        "quick_transfer_ns": transfer_ns if quick_ns is None else quick_ns, "usual_transfer_ns": usual_ns,
    }  # fmt: skip


def test_where_all_links_of_a_host_are_slow_it_is_the_host_that_is_told() -> None:
    found = uneven_link([load("a", "b", 40), load("b", "c", 50), load("c", "d", 10)])

    assert found == UnevenLink("to and from host b", 50, 10, 3 * 30 + 3 * 40)


def test_slow_links_of_different_hosts_are_told_by_the_worst() -> None:
    found = uneven_link([load("a", "b", 40), load("c", "d", 50), load("b", "c", 10)])

    assert found == UnevenLink("between hosts c and d", 50, 10, 3 * 40)


def test_a_host_whose_links_are_all_slow_is_not_told_where_another_link_is_slow_too() -> None:
    found = uneven_link([load("a", "b", 40), load("b", "c", 50), load("d", "e", 40), load("e", "f", 10)])

    assert found == UnevenLink("between hosts b and c", 50, 10, 3 * 40)


def test_a_link_that_is_at_pace_in_a_quarter_of_its_messages_is_not_slow_throughout() -> None:
    assert uneven_link([load("a", "b", 40, quick_ns=19), load("b", "c", 10)]) is None
    assert uneven_link([load("a", "b", 40, quick_ns=20), load("b", "c", 10)]) is not None


def test_of_links_that_are_all_slow_none_is_at_pace() -> None:
    assert uneven_link([load("a", "b", 40), load("b", "c", 40)]) is None


@pytest.mark.parametrize(
    ("bubble_ns", "extra_ns"), [(None, 80), (70, 40), (110, 80), (29, 0)], ids=["unknown", "less", "more", "none"]
)
def test_a_link_costs_no_more_than_a_pipeline_waits_beyond_its_schedule(bubble_ns: int | None, extra_ns: int) -> None:
    # given messages that take 80 longer, and a schedule that makes ranks wait for 30
    link = UnevenLink("between hosts b and c", 8, 1, 80)

    found = no_more_than_waited(link, {"bubble_ns": bubble_ns, "fill_drain_ns": 30})
    assert found == UnevenLink("between hosts b and c", 8, 1, extra_ns)
