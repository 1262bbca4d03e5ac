"""What a replay without a finding leaves out: what follows from a pause, and what slows others; times in ns."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from tests.attribute.findings.runs import judged_run
from tests.replay.models import lockstep_model, lockstep_plan, model_of
from traceforge.attribute.cause import causes
from traceforge.attribute.findings.candidates import _with_followers, blamed_time
from traceforge.attribute.findings.counterfactual import working_alone
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.lost_time import lost_time
from traceforge.attribute.findings.subjects import Subject
from traceforge.attribute.ledger.ledger_input import LedgerInput, by_cause
from traceforge.replay.coupling import Couplings


def candidate(ranks: tuple[int, ...], parts: Mapping[str, float], confidence: str = "high") -> FindingCandidate:
    delay = sum(parts.values())
    effect = Effect(delay, None, delay / 100, confidence, "persistent", np.arange(4), delay, np.full(4, delay))
    name = ", ".join(map(str, ranks))
    subject = Subject("rank" if len(ranks) == 1 else "ranks", name, ranks, name)
    return FindingCandidate(causes()[next(iter(parts))], effect, subject, dict(parts))


def test_without_a_pause_the_launches_that_came_late_after_it_are_on_time() -> None:
    # given rank 2, whose host pauses for 20 in each iteration, after which its launches are 5 late until it has its
    # lead again; the others have neither
    work = np.zeros((4, 1, 4, 3), dtype=np.int64)
    work[..., 0] = 90
    work[:, :, 2, 1:] = (20, 5)
    kinds = (("slow_compute", None), ("host_stall", None), ("late_launch", None))
    model = lockstep_model(work, kinds=kinds)
    run = replace(judged_run(4, 4), ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)))
    pause = candidate((2,), {"host_stall": 20.0})

    # then the pause costs 25, of which it has 20 itself
    whole = _with_followers(pause, [pause])
    assert whole.followers == ("late_launch",)
    assert whole.parts == {"host_stall": 20.0}
    assert blamed_time(run, pause).rank_seconds_ns().tolist() == [20.0] * 4
    assert blamed_time(run, whole).rank_seconds_ns().tolist() == [25.0] * 4


def test_late_launches_that_are_a_finding_of_their_own_are_not_the_pauses() -> None:
    pause, launches = candidate((2,), {"input_stall": 20.0}), candidate((2, 3), {"late_launch": 15.0})
    assert _with_followers(pause, [pause, launches]).followers == ()
    # but what does not count, or is another rank's, leaves them to the pause
    assert _with_followers(pause, [pause, replace(launches, companion_of="x")]).followers == ("late_launch",)
    assert _with_followers(pause, [pause, candidate((3,), {"late_launch": 15.0})]).followers == ("late_launch",)


def test_nothing_follows_from_slow_kernels_or_transfers() -> None:
    slow, transfers = candidate((2,), {"slow_compute": 20.0}), candidate((2,), {"slow_transfer": 20.0})
    assert _with_followers(slow, [slow]).followers == ()
    assert _with_followers(transfers, [transfers]).followers == ()
    launches = candidate((2,), {"late_launch": 9.0})
    now_and_then = replace(launches, effect=replace(launches.effect, pattern="transient"))
    assert _with_followers(now_and_then, [now_and_then]).followers == ()


def test_a_host_that_always_launches_late_is_as_slow_between_operations() -> None:
    # given a host that launches late in all iterations, and stands still for 2 between operations of which none is
    # recorded
    launches, stands = candidate((2,), {"late_launch": 9.0}), candidate((2,), {"host_stall": 2.0})

    assert _with_followers(launches, [launches]).followers == ("host_stall",)
    # unless that is a finding of its own
    assert _with_followers(launches, [launches, stands]).followers == ()
    assert _with_followers(stands, [stands]).followers == ("late_launch",)


def test_a_slow_rank_is_held_against_what_others_take_while_nobody_slows_them() -> None:
    # given rank 0, late by 40 at a first meeting that nobody awaits, after which all work 40: the others do so beside
    # the wait, which doubles the time of work
    #
    # rank 0   |work 50··············|work 40······|
    # rank 1   |work 10|work 40 beside a wait······|
    plan = lockstep_plan([[[50, 10, 10], [40, 40, 40]]] * 4, transfer_ns=5)
    plan.awaited[:, 0] = -1
    model = by_cause(model_of(plan))
    run = replace(judged_run(4, 3), ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)))
    slow = candidate((0,), {"slow_compute": 40.0})

    # then it is 40 slower as recorded, and 60 slower than who would work alone for 10 and 20
    assert blamed_time(run, slow).rank_seconds_ns()[0] == 40
    alone = working_alone(model, Couplings(waiting=1.0))
    assert blamed_time(replace(run, alone=alone), slow).rank_seconds_ns()[0] == 60
    assert working_alone(model, Couplings(spread=0.5)) is model

    # then by their own work the others are not slow alike, as they seem as recorded
    delays = pl.DataFrame({"iteration": [0], "owner": [0], "cause": ["slow_compute"], "delay_ns": [40]})
    assert lost_time(replace(run, alone=alone), delays).own_ns[0, :, 0].tolist() == [60.0, 0.0, 0.0]
