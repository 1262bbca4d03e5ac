"""Policies by name: whatever file is added to the folder keeps these promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.examples import examples
from tests.replay.models import lockstep_model, lockstep_plan, model_of
from traceforge.errors import UsageError
from traceforge.replay.coupling import Couplings
from traceforge.replay.engine import Arm, measured, replay, replay_arms
from traceforge.replay.policy import Past, Policy, parse_policy, policies
from traceforge.replay.settings import format_settings

every_policy = pytest.mark.parametrize("policy", policies().values(), ids=list(policies()))
causal = [policy for policy in policies().values() if not policy.sees_future]
causal_policy = pytest.mark.parametrize("policy", causal, ids=[policy.name for policy in causal])
briefly = examples(50)

RANKS = 3


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """What three ranks may have seen in up to eight iterations."""
    shape = (draw(st.integers(0, 8)), RANKS)
    wait, delay, rest = (draw(arrays(np.int64, shape, elements=st.integers(0, 1_000_000))) for _ in range(3))
    return Past(wait, delay, wait + delay + rest + 1)


@every_policy
@briefly
@given(past=pasts())
def test_a_delay_is_never_negative_and_never_longer_than_an_iteration(policy: Policy, past: Past) -> None:
    delay = policy.delay(past, policy.defaults)

    assert delay.shape == (RANKS,)
    assert (delay >= 0).all()
    assert (delay <= (past.duration_ns.max() if len(past.duration_ns) else 0)).all()


@every_policy
@briefly
@given(past=pasts(), other=pasts())
def test_a_rank_uses_only_what_it_has_seen_itself(policy: Policy, past: Past, other: Past) -> None:
    # given what rank 0 saw, once beside the same other ranks and once beside others
    length = min(len(past.wait_ns), len(other.wait_ns))
    names = ("wait_ns", "delay_ns", "duration_ns")
    same = Past(*(getattr(past, name)[:length] for name in names))
    mixed = Past(*(np.column_stack([getattr(past, n)[:length, :1], getattr(other, n)[:length, 1:]]) for n in names))

    # then rank 0 does the same
    assert policy.delay(same, policy.defaults)[0] == policy.delay(mixed, policy.defaults)[0]


@causal_policy
@examples(15)
@given(order=st.permutations(range(8)), work=arrays(np.int64, (16, 1, RANKS), elements=st.integers(1, 1_000)))
def test_permuting_the_future_changes_no_delay_before_it(policy: Policy, order: list[int], work: np.ndarray) -> None:
    # given a run of sixteen iterations, and the same one with its second half in another order
    other = np.concatenate([work[:8], work[8:][order]])

    # when both are paced, with a coupling that makes the past matter
    paced = [
        replay(
            lockstep_model(run, transfer_ns=500),
            measured(lockstep_model(run, transfer_ns=500)),
            lambda past: policy.delay(past, policy.defaults),
            couplings=Couplings(spread=1.0),
        )
        for run in (work, other)
    ]

    # then the delays agree up to the first iteration that differs, whose delay comes before it
    np.testing.assert_array_equal(paced[0].delay_ns[:9], paced[1].delay_ns[:9])


def test_one_policy_sees_the_future_and_says_so() -> None:
    assert [policy.name for policy in policies().values() if policy.sees_future] == ["oracle"]


@causal_policy
def test_the_future_is_not_shown_to_others(policy: Policy) -> None:
    # given a policy beside the oracle
    shown: list[Past] = []
    model = lockstep_model([[[100, 60]]] * 3)

    def delay(past: Past) -> np.ndarray:
        shown.append(past)
        return policy.delay(past, policy.defaults)

    oracle = policies()["oracle"]
    arms = [Arm(delay), Arm(lambda past: oracle.delay(past, {}), sees_future=True)]

    replay_arms(model, measured(model), arms)

    assert all(past.slack_ahead_ns is None for past in shown)


@causal_policy
def test_what_is_still_to_come_changes_no_delay(policy: Policy) -> None:
    # given a run of twelve iterations in which rank 1 waits, and the same run with another second half
    plan = lockstep_plan([[[100, 60]]] * 12, transfer_ns=10)
    work = plan.before_arrival_ns.copy()
    work[6:, 0] = [[20], [300]]
    model, other = model_of(plan), model_of(replace(plan, before_arrival_ns=work))

    # when both are paced
    delays = [
        replay(run, measured(run), lambda past: policy.delay(past, policy.defaults)).delay_ns for run in (model, other)
    ]

    # then the delays agree up to the first iteration that differs, whose delay comes before it
    np.testing.assert_array_equal(delays[0][:7], delays[1][:7])


def test_the_policy_that_delays_nobody_leaves_the_run_as_it_was() -> None:
    # given a run with a straggler
    model = lockstep_model([[[100, 60, 80]], [[90, 70, 300]], [[100, 60, 80]]], transfer_ns=10)
    policy, parameters = parse_policy("none")

    # when it is replayed under `none`
    outcome = replay(model, measured(model), lambda past: policy.delay(past, parameters))

    # then it is the recorded run
    np.testing.assert_array_equal(outcome.end_ns, model.end_ns)


def test_parameters_that_are_not_given_keep_their_defaults() -> None:
    policy, parameters = parse_policy("bounded_delay:window=8,gain=0.25")

    assert policy.name == "bounded_delay"
    assert parameters == {"window": 8, "threshold": 0.02, "gain": 0.25, "max_delay": 0.05}


def test_parameters_are_written_as_they_are_read() -> None:
    text = "window=8,threshold=0.02,gain=0.25,max_delay=0.05"

    assert format_settings(parse_policy(f"bounded_delay:{text}")[1]) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "bounded_delay:speed=2",
            (
                "policy `bounded_delay` has no parameter `speed`\n\n"
                "hint: its parameters are: window, threshold, gain, max_delay"
            ),
        ),
        ("none:window=2", "policy `none` has no parameter `window`\n\nhint: its parameters are: none"),
        ("bounded_delay:gain=much", "`gain=much` is not a number\n\nhint: such as gain=0.5"),
        ("bounded_delay:gain", "`gain=` is not a number\n\nhint: such as gain=0.5"),
        ("bounded_delay:gain=-1", "`gain=-1` must not be negative\n\nhint: usually it is 0.5"),
        ("bounded_delay:gain=inf", "`gain=inf` must be a finite number"),
        *(
            (
                f"{policy}={value}",
                (
                    f"`{policy.partition(':')[2]}={value}` is no number of iterations\n\n"
                    f"hint: it counts iterations: a whole number from 1 on, usually {usual}"
                ),
            )
            for policy, value, usual in (
                ("bounded_delay:window", "0", 4),
                ("bounded_delay:window", "2.5", 4),
                ("adaptive:memory", "0", 32),
            )
        ),
        ("bounded_delay:gain=nan", "`gain=nan` must be a finite number"),
    ],
)
def test_what_cannot_be_a_policy_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_policy(text)

    assert str(error.value) == message


def test_a_policy_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(UsageError) as error:
        parse_policy("hurry:window=2")

    assert error.value.what == "there is no policy `hurry`"
    assert error.value.hint == f"policies are: {', '.join(policies())}"
    assert {"none", "bounded_delay"} <= set(policies())
