"""Messages that no others are like: what is said of them where stages of a pipeline wait for them.

host    a         a         b
rank    0 ──1 ms──1 ──8 ms──2        one pipeline; its only messages between hosts
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.attribute.test_link_text import job
from tests.given import MS, built, rows_of
from tests.synth.quiet_jobs import BARE
from tests.timeline.pipelines import simulated
from traceforge.attribute.common_loss import CommonLoss, headline_of_loss, loss_beside_finding, step_of_bubbles
from traceforge.attribute.lone_link import LoneLink, lone_links, next_step_of_lone_link, of_lone_link
from traceforge.attribute.stage_text import of_schedule
from traceforge.synth.cluster import Cluster
from traceforge.synth.pipeline import Pipeline

LINK = LoneLink("between hosts a and b", 16_000_000, 8 * MS)
# A step of 100 ms, of which 40 are bubble: 20 fill and drain, 15 messages, 5 unequal stages.
STATE = {
    "state": "nothing_significant", "duration_ns": 100 * MS, "lone_link": LINK, "stages": 3, "schedule": "1f1b",
    "pipeline_iteration_ns": 100 * MS, "is_first_left_out": False, "bubble_ns": 40 * MS, "fill_drain_ns": 20 * MS,
    "imbalance_ns": 5 * MS, "message_ns": 15 * MS, "late_peer_ns": 0, "more_microbatches": 16, "all_microbatches": 4,
    "more_fill_drain_share": 0.06, "losses": [CommonLoss("pipeline_bubble", "others are waited for", 0.4)],
    "host_bound": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("second_ns", "hosts", "between"),
    [
        (8 * MS, "aab", "between hosts a and b"),
        # the only messages within a host take longer
        (MS // 2, "aab", "between ranks 0 and 1"),
        (8 * MS, "abc", None),
        (8 * MS, "aaa", None),
    ],
)
def test_messages_are_alone_where_no_other_pair_of_their_kind_sends_as_much(
    second_ns: int, hosts: str, between: str | None
) -> None:
    told = job(second_ns, hosts=hosts)

    found = lone_links(told.store).get(told.run_id)

    assert (found and found.between) == between
    assert found is None or found.transfer_ns == max(second_ns, MS)


def test_the_longest_messages_of_a_pipeline_are_told_with_their_rate() -> None:
    assert of_lone_link(STATE) == (
        "Messages between hosts a and b take 8.00 ms for 16.0 MB (2.00 GB/s): no others are like them, so that one run "
        "cannot tell whether that is slow."
    )
    assert next_step_of_lone_link(STATE).startswith("Hold the 2.00 GB/s of messages between hosts a and b against")
    assert of_schedule(STATE).endswith(of_lone_link(STATE))


@pytest.mark.parametrize(
    "known", [{"lone_link": None}, {"bubble_ns": None}, {"message_ns": 3 * MS - 1}], ids=["peers", "unknown", "little"]
)
def test_nothing_is_said_where_nobody_waits_for_them(known: dict[str, object]) -> None:
    assert of_lone_link({**STATE, **known}) == next_step_of_lone_link({**STATE, **known}) == ""


@pytest.mark.parametrize(
    ("known", "mostly"),
    [
        ({}, "mostly fill and drain, and messages between hosts a and b"),
        ({"lone_link": None}, "mostly fill and drain, and messages"),
        ({"fill_drain_ns": 21 * MS, "lone_link": None}, "mostly fill and drain"),
        ({"fill_drain_ns": 21 * MS}, "mostly fill and drain, and messages between hosts a and b"),
    ],
)
def test_bubbles_lead_a_verdict_without_a_culprit_with_what_makes_most_of_them(
    known: dict[str, object], mostly: str
) -> None:
    said = headline_of_loss({**STATE, **known}, "Nothing significant.")

    assert said == (
        f"All ranks alike: for 40 % of each 100 ms step others are waited for ({mostly}). Nothing else is significant."
    )


def test_bubbles_that_lead_the_verdict_have_their_step_unless_what_bounds_the_job_says_so() -> None:
    step = step_of_bubbles({**STATE, "bound_step": "Look at the largest products first."})

    assert step.startswith("Use more micro-batches or chunks")
    assert step_of_bubbles({**STATE, "bound_step": f"{step} And more."}) == ""
    copies = [CommonLoss("copy_bound", "nothing but copies runs", 0.5)]
    assert step_of_bubbles({**STATE, "losses": copies, "bound_step": None}) == ""


def test_bubbles_are_not_told_twice_beside_a_finding() -> None:
    # given a finding, beside which a sentence of their own tells bubbles and another what copies cost
    copies = CommonLoss("copy_bound", "nothing but copies runs", 0.3)
    found = {**STATE, "state": "finding", "finding_subject": "rank"}

    assert loss_beside_finding(found) == ""
    assert "nothing but copies" in loss_beside_finding({**found, "losses": [*found["losses"], copies]})


def test_a_pipeline_over_two_hosts_leads_with_its_bubbles_and_tells_its_messages(tmp_path: Path) -> None:
    # given four stages on two hosts, two micro-batches: the pipeline crosses once, and 3 of 5 turns of a stage are idle
    pipeline = Pipeline(microbatches=2, message_bytes=64_000_000)
    scenario = replace(BARE, iterations=6, cluster=Cluster(2, 2, pipeline_parallel=4), pipeline=pipeline)

    with built(simulated(scenario, tmp_path).store, "attribute") as store:
        ((kind, headline, explanation, is_common),) = rows_of(
            store, "SELECT kind, headline, explanation, is_common FROM attribute.verdict"
        )

    assert (kind, is_common) == ("nothing_significant", True)
    assert str(headline).startswith("All ranks alike: for ")
    assert "other stages of the pipeline are waited for (mostly " in str(headline)
    assert "Messages between hosts node0 and node1 take " in str(explanation)
