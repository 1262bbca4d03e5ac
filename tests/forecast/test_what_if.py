"""Fixes and other networks, in throughput, GPUs and money."""

import pytest

from tests.forecast.scaling_table import points_of
from traceforge.forecast.ensemble import fit_ensemble
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.scale_point import ScalePoint, StepTerms
from traceforge.forecast.what_if import Recorded, changes_of, fixed, gpus_for, what_ifs

# 100 ms: 80 of work, 10 of exposed communication, 10 of waiting; compute hides 10 more of communication
POINT = ScalePoint("run", 8, 80.0, terms=StepTerms(0.08, 0.01, 0.01, 0.01))
FINDING = {
    "cause": "slow_compute", "subject_kind": "rank", "subject": "3", "gain_if_fixed": 0.25,
    "delay_ns_per_iteration": 20e6, "delay_low_ns": 16e6, "delay_high_ns": 24e6,
}  # fmt: skip
ONE_HOST = Recorded(hosts=1, collectives=2.0)
UNKNOWN = Recorded(hosts=None, collectives=0.0)


def test_a_fix_is_told_in_gpus_and_money() -> None:
    # given a finding whose fix brings 25 %, its delay known to a fifth
    found = fixed(POINT, None, FINDING, Assumptions(price=3.0, gpus_per_rank=4))

    # then it is worth 2 ranks of 4 GPUs, at 3.0 an hour each, give or take a fifth
    assert found.change == "Fix slow compute of rank 3"
    assert (found.throughput_ratio, found.low, found.high) == pytest.approx((1.25, 1.20, 1.30))
    assert (found.gpus, found.worth_per_hour) == pytest.approx((8, 24))
    assert found.break_even_price == pytest.approx(0.75)


def test_where_scaling_is_worse_a_gain_is_worth_more_gpus() -> None:
    points = points_of("baseline", up_to=32)
    ensemble = fit_ensemble(points)

    assert gpus_for(points[-1], None, 1.10, 1) == pytest.approx(3.2)
    along_the_curve = gpus_for(points[-1], ensemble, 1.10, 1)
    assert along_the_curve is not None
    assert along_the_curve > 6
    assert gpus_for(points[-1], ensemble, 3.0, 1) is None
    assert gpus_for(points[-1], ensemble, 0.9, 1) is None


def test_one_scale_does_not_tell_latency_from_bandwidth() -> None:
    found = {change.kind: change for change in changes_of(POINT, None, UNKNOWN, Assumptions())}

    # all latency: a fabric of twice the bandwidth brings nothing; all bytes: half of the exposed 10 ms
    fabric = found["faster_fabric"]
    assert (fabric.low, fabric.high) == pytest.approx((1.0, 100 / 95))
    assert "one scale" in fabric.basis
    assert found["tree"].low < 1 < found["tree"].high  # type: ignore[operator]
    assert "hierarchical" not in found


def test_no_more_of_a_transfer_is_latency_than_its_steps_may_take() -> None:
    # given 2 collectives of 14 steps: at most 14 µs each, 0.392 ms of the 20 ms, half of which show
    found = {change.kind: change for change in changes_of(POINT, None, ONE_HOST, Assumptions())}

    fabric = found["faster_fabric"]
    assert (fabric.low, fabric.high) == pytest.approx((100 / (90 + (0.392 + 19.608 / 2) / 2), 100 / 95))


def test_within_one_host_no_other_form_is_offered() -> None:
    found = {change.kind for change in changes_of(POINT, None, ONE_HOST, Assumptions())}

    assert found == {"faster_fabric"}


def test_each_rank_of_a_host_sends_its_own_part_of_the_bytes_between_hosts() -> None:
    # given 8 ranks on 2 hosts that move 2 x 7/8 x 200 MB in 20 ms, all bytes, and NVLink at 300 GB/s
    point = ScalePoint("run", 8, 80.0, terms=POINT.terms, facts={"size_bytes": 2e8})
    recorded = Recorded(hosts=2, collectives=1e-9)

    (found,) = (one for one in changes_of(point, None, recorded, Assumptions()) if one.kind == "hierarchical")

    # then 2 x 3/4 x 200 MB go within hosts, and a quarter of 2 x 1/2 x 200 MB between them
    communication_s = 1.5 * 2e8 / 300e9 + 20e-3 * (1 / 4) / (2 * 7 / 8)
    assert found.throughput_ratio == pytest.approx(0.1 / (0.09 + communication_s / 2), rel=1e-6)


def test_scales_that_tell_them_apart_narrow_the_interval() -> None:
    points = []
    for n in (2, 4, 8, 16):
        total = 40e-3 * 2 * (n - 1) / n
        terms = StepTerms(0.08, total / 2, total / 2, 1e-4)
        points.append(ScalePoint(str(n), n, n / (0.0801 + total / 2), error=1e-3, terms=terms))
    ensemble = fit_ensemble(points)

    (fabric,) = (
        one for one in changes_of(points[-1], ensemble, ONE_HOST, Assumptions()) if one.kind == "faster_fabric"
    )

    # 37.5 ms exposed of 117.6: half of it gone
    assert fabric.throughput_ratio == pytest.approx(117.6 / (117.6 - 18.75), rel=0.01)
    assert fabric.high - fabric.low < 0.05  # type: ignore[operator]


def test_two_levels_need_several_ranks_on_several_hosts() -> None:
    point = ScalePoint("run", 8, 80.0, terms=POINT.terms, facts={"size_bytes": 2e8})

    kinds = {change.kind for change in changes_of(point, None, Recorded(hosts=2, collectives=2.0), Assumptions())}

    assert "hierarchical" in kinds


def test_what_the_replay_tells_is_not_told_by_a_model_too() -> None:
    edits = [
        {
            "edit": "scale_transfer",
            "throughput_ratio": 1.04,
            "throughput_ratio_low": 1.03,
            "throughput_ratio_high": 1.05,
        }
    ]

    found = what_ifs(POINT, None, Recorded(1, 2.0, [FINDING], edits), Assumptions())

    assert [one.kind for one in found] == ["fix", "faster_fabric", "tree"] or found[0].kind == "fix"
    (fabric,) = (one for one in found if one.kind == "faster_fabric")
    assert (fabric.throughput_ratio, fabric.low, fabric.high) == (1.04, 1.03, 1.05)


def test_a_job_that_does_not_communicate_has_no_network_to_change() -> None:
    alone = ScalePoint("run", 1, 10.0, terms=StepTerms(0.1, 0.0, 0.0, 0.0))

    assert changes_of(alone, None, ONE_HOST, Assumptions()) == []
