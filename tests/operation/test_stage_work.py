"""Why a stage computes longest, worked by hand from what its kernels and those of the others take."""

import polars as pl
import pytest

from traceforge.operation.stage_work import StageWork, stage_work

Kernel = tuple[bool, int, int, int, int]
NAMES = ("is_work_fixed", "calls", "duration_ns", "peer_calls", "peer_duration_ns")

# 8 calls an iteration of 100, 30, 30, 40 (attention) and 20 ns (bound by memory): whether their work is fixed, calls,
# time, and both of the others.
EVEN: tuple[Kernel, ...] = (
    (True, 8, 800, 8, 800), (True, 8, 240, 8, 240), (True, 8, 240, 8, 240), (False, 8, 320, 8, 320),
    (True, 8, 160, 8, 160),
)  # fmt: skip


def of(*kernels: Kernel) -> StageWork:
    found = stage_work(pl.DataFrame(kernels, schema=NAMES, orient="row"))
    assert found is not None
    return found


def slowed(*factors: float, is_known: bool = True) -> list[Kernel]:
    return [
        (fixed and is_known, calls, round(spent * factor), peer_calls, peer)
        for (fixed, calls, spent, peer_calls, peer), factor in zip(EVEN, factors, strict=True)
    ]


def test_calls_that_all_take_a_fifth_longer_on_the_same_shapes_are_slower() -> None:
    found = of(*slowed(1.2, 1.2, 1.2, 1.2, 1.2))

    # 1,760 ns become 2,112
    assert (found.slower_ns, found.more_calls_ns, found.own_ns, found.missing_ns) == (352, 0, 0, 0)
    assert (found.low, found.high) == pytest.approx((0.2, 0.2))
    assert found.reason(352) == "slower"


def test_what_memory_bounds_need_not_be_slowed_by_a_lower_clock() -> None:
    found = of(*slowed(1.25, 1.25, 1.25, 1.25, 1.02))

    assert (found.low, found.high) == pytest.approx((0.02, 0.25), abs=0.002)
    assert found.reason(403) == "slower"


def test_without_shapes_the_inputs_may_be_larger() -> None:
    assert of(*slowed(1.2, 1.2, 1.2, 1.2, 1.2, is_known=False)).reason(352) == "perhaps_slower"
    # products alone are longer: a wider layer, as far as is known
    assert of(*slowed(1.2, 1.2, 1.2, 1, 1, is_known=False)).reason(256) is None


def test_attention_alone_that_takes_longer_is_no_slow_device() -> None:
    # a window or a mask is seen in no shape
    found = of(*slowed(1, 1, 1, 2.5, 1))

    assert found.slower_ns == 480
    assert found.reason(480) is None


def test_half_as_many_calls_more_are_more_work_whether_or_not_shapes_are_known() -> None:
    for is_known in (True, False):
        more = [(fixed and is_known, 12, 3 * spent // 2, 8, spent) for fixed, _, spent, _, _ in EVEN]
        found = of(*more)

        assert (found.slower_ns, found.more_calls_ns) == (0, 880)
        assert found.reason(880) == "more"


def test_kernels_that_no_other_stage_runs_are_more_work_even_beside_fewer_layers() -> None:
    # given a head of 900 ns, and three quarters of the layers
    found = of(*((fixed, 6, 3 * spent // 4, 8, spent) for fixed, _, spent, _, _ in EVEN), (True, 1, 900, 0, 0))

    assert (found.own_ns, found.more_calls_ns) == (900, -440)
    assert found.reason(460) == "more"


def test_other_kernels_in_place_of_the_usual_ones_give_no_reason() -> None:
    # given a product of 800 ns that another kernel does in 1,100
    found = of((True, 8, 1_100, 0, 0), (True, 0, 0, 8, 800), *EVEN[1:])

    assert (found.own_ns, found.missing_ns) == (1_100, 800)
    assert found.reason(300) is None


def test_a_head_on_a_slow_device_gives_two_parts_and_no_reason() -> None:
    found = of(*slowed(1.2, 1.2, 1.2, 1.2, 1.2), (True, 1, 300, 0, 0))

    assert (found.slower_ns, found.own_ns) == (352, 300)
    assert found.reason(652) is None


def test_kernels_that_explain_little_of_what_devices_compute_longer_give_no_reason() -> None:
    assert of(*slowed(1.2, 1.2, 1.2, 1.2, 1.2)).reason(500) is None


@pytest.mark.parametrize(
    "kernels",
    [EVEN[:2], [(True, 1, 900, 0, 0), *EVEN[:2]], EVEN, slowed(1, 1, 1, 0.9, 1)],
    ids=["two kernels", "two shared ones", "no longer", "shorter"],
)
def test_too_few_kernels_or_no_longer_ones_say_nothing(kernels: list[Kernel]) -> None:
    assert stage_work(pl.DataFrame(kernels, schema=NAMES, orient="row")) is None


def test_calls_that_take_longer_say_nothing_beside_kernels_of_other_work() -> None:
    # given calls that take a fifth longer, a kernel that no other stage runs, and one as long that only others run
    other: list[Kernel] = [(True, 4, 200, 0, 0), (True, 0, 0, 4, 200)]
    found = of(*slowed(1.2, 1.2, 1.2, 1.2, 1.2), *other)

    assert (found.slower_ns, found.own_ns, found.missing_ns) == (352, 200, 200)
    assert found.reason(352) is None
