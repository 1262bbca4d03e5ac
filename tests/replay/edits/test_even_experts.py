"""Even experts, worked by hand: two ranks, one of which gets three quarters of the tokens.

rank 0  |attend 10|take 30|expert 300··············|bring 30|
rank 1  |attend 10|take 30|expert 100|wait ········|bring 30|     370 ns; even: 10 + 20 + 200 + 20 = 250 ns
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.edits.jobs import ends_of, job_of
from tests.replay.models import THREE_KINDS, lockstep_model
from traceforge.replay.edit import EditedJob, InsufficientData, edits

EVEN = edits()["even_experts"]


def _routed(sent: object, received: object, work: object = None, **model: object) -> EditedJob:
    """Two iterations; what each rank sends and receives at each place."""
    own = [[10, 10], [300, 100]] if work is None else work
    job = job_of(lockstep_model([own] * 2, transfer_ns=30, **model), op="all_to_all")  # type: ignore[arg-type, list-item]
    amounts = {
        name: np.broadcast_to(np.array(values, dtype=np.int64), job.model.group.shape)
        for name, values in (("sent_elements", sent), ("received_elements", received))
    }
    return replace(job, places=replace(job.places, **amounts))  # type: ignore[arg-type]


TAKES, BRINGS = [200, 200], [300, 100]


def test_a_hot_expert_gives_its_tokens_to_the_others() -> None:
    job = _routed(sent=[TAKES, BRINGS], received=[BRINGS, TAKES])

    assert ends_of(job) == [370, 740]
    assert ends_of(EVEN.apply(job, {})) == [250, 500]
    assert list(EVEN.usual(job)) == [{}]


def test_a_rank_that_is_slow_with_its_share_of_tokens_stays_slow() -> None:
    # 201 tokens take rank 0 402 ns, 199 take rank 1 100 ns
    job = _routed(sent=[TAKES, [201, 199]], received=[[201, 199], TAKES], work=[[10, 10], [402, 100]])

    even = EVEN.apply(job, {})

    assert even.model.before_arrival_ns[0, 1, :, 0].tolist() == [400, 101]


def test_only_device_work_behind_tokens_goes_by_them() -> None:
    # kinds: compute, input, runtime; a third place brings nothing
    work = [[[10, 0, 0]] * 2, [[300, 40, 50], [100, 40, 50]], [[60, 0, 0], [60, 0, 0]]]
    job = _routed(sent=[TAKES, BRINGS, [-1, -1]], received=[BRINGS, TAKES, [-1, -1]], work=work, kinds=THREE_KINDS)

    even = EVEN.apply(job, {})

    assert even.model.before_arrival_ns[0, 1].tolist() == [[200, 40, 50], [200, 40, 50]]
    assert even.model.before_arrival_ns[0, 2].tolist() == [[60, 0, 0], [60, 0, 0]]
    assert even.model.transfer_ns[0].tolist() == [[20, 20], [20, 20], [30, 30]]


def test_uneven_batches_are_no_uneven_experts() -> None:
    # rank 0 has more tokens of its own, which it attends to for longer; experts get 200 each
    own, even = [300, 100], [200, 200]
    job = _routed(
        sent=[own, even, own, even], received=[even, own, even, own], work=[[10, 10], [5, 5], [90, 30], [5, 5]]
    )

    with pytest.raises(InsufficientData, match="takes more to some ranks"):
        EVEN.apply(job, {})


def test_uneven_experts_of_uneven_batches_leave_the_batches_as_they_are() -> None:
    own, routed = [300, 100], [100, 300]
    job = _routed(
        sent=[own, routed, own, routed],
        received=[routed, own, routed, own],
        work=[[10, 10], [5, 15], [90, 30], [5, 15]],
    )

    even = EVEN.apply(job, {})

    assert even.model.before_arrival_ns[0, :4, :, 0].tolist() == [[10, 10], [10, 10], [90, 30], [10, 10]]


def test_what_goes_beside_tokens_is_no_way_back() -> None:
    # tokens, then their scales (a tenth as many elements), then the tokens return
    scales, back = [20, 20], [30, 10]
    job = _routed(sent=[TAKES, scales, BRINGS], received=[BRINGS, back, TAKES], work=[[10, 10], [0, 0], [300, 100]])

    even = EVEN.apply(job, {})

    assert even.model.before_arrival_ns[0, 2, :, 0].tolist() == [200, 200]
    assert even.model.transfer_ns[0].tolist() == [[20, 20], [20, 20], [20, 20]]


def test_a_backward_pass_has_the_amounts_of_the_forward_pass() -> None:
    # out, back, out, back: nothing between the second and the third is an expert's
    job = _routed(
        sent=[TAKES, BRINGS, TAKES, BRINGS], received=[BRINGS, TAKES, BRINGS, TAKES],
        work=[[10, 10], [300, 100], [70, 70], [600, 200]],
    )  # fmt: skip

    even = EVEN.apply(job, {})

    assert even.model.before_arrival_ns[0, :4, :, 0].tolist() == [[10, 10], [200, 200], [70, 70], [400, 400]]


@pytest.mark.parametrize(
    ("sent", "received", "reason"),
    [
        ([-1, -1], [-1, -1], "takes more to some ranks"),
        ([200, 200], [200, 200], "takes more to some ranks"),
        ([200, -1], [300, -1], "takes more to some ranks"),
        ([200, 200], [300, 100], "brings it back"),
    ],
)
def test_what_does_not_tell_amounts_of_all_ranks_or_has_even_ones_is_refused(
    sent: list[int], received: list[int], reason: str
) -> None:
    job = _routed(sent=[sent, sent], received=[received, received])

    with pytest.raises(InsufficientData, match=reason):
        EVEN.apply(job, {})
    assert list(EVEN.usual(job)) == []


def test_a_job_without_experts_is_refused() -> None:
    with pytest.raises(InsufficientData, match="No all-to-all states"):
        EVEN.apply(job_of(), {})


def test_a_rank_without_tokens_keeps_its_work() -> None:
    job = _routed(sent=[TAKES, [400, 0]], received=[[400, 0], TAKES], work=[[10, 10], [400, 8]])

    assert EVEN.apply(job, {}).model.before_arrival_ns[0, 1, :, 0].tolist() == [200, 8]
