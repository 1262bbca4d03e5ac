"""What is worked on, before and after: called more often, slower each, new or gone."""

from collections.abc import Iterator

import pytest

from tests.given import MS, US, Trace, add_run, built
from traceforge.compare import OperationChange, Side
from traceforge.compare.comparability import other_program
from traceforge.compare.operation_changes import operation_changes
from traceforge.store.database import Store

STEP = 20 * MS


def job(*calls: tuple[str, int, int], ranks: int = 4, spread_us: int = 0) -> list[Trace]:
    """Each step of each rank runs operations: name, calls, ns each (and rank x `spread_us` more in the first)."""
    traces = [Trace(rank) for rank in range(ranks)]
    for rank, trace in enumerate(traces):
        for number in range(6):
            at = start = number * STEP
            trace.step(number, start, start + STEP)
            for place, (name, count, duration_ns) in enumerate(calls):
                for _ in range(count):
                    took = duration_ns + (rank * spread_us * US if place == 0 else 0)
                    trace.host_work(name, at, at + 10 * US).kernel(at, at + took, "gemm", launch_ns=at)
                    at += took + 20 * US
            trace.collective(at, start + STEP)
    return traces


def products(width: int, duration_ns: int) -> list[Trace]:
    """Three ranks whose steps make one product of `width` in a module, and one of 512 that never changes."""
    traces = [Trace(rank) for rank in range(3)]
    for trace in traces:
        for number in range(6):
            start = number * STEP
            trace.step(number, start, start + STEP)
            trace.host_work("nn.Module: Linear_0", start, start + MS, "python_function")
            for at, size, took in ((start, width, duration_ns), (start + 5 * MS, 512, MS)):
                trace.operation("aten::mm", at + US, at + 20 * US, [[size, size], [size, size]], ["c10::Half"] * 2)
                trace.kernel(at + 30 * US, at + 30 * US + took, f"gemm_{size}", launch_ns=at + 2 * US)
            trace.collective(start + 10 * MS, start + STEP)
    return traces


MM, CAT = ("aten::mm", 2, 2 * MS), ("aten::cat", 1, MS)


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, Side]]:
    jobs = {
        "before": job(MM, CAT),
        "more": job(("aten::mm", 4, 2 * MS), CAT),
        "slower": job(("aten::mm", 2, 3 * MS), CAT, spread_us=1),
        "uneven": job(("aten::mm", 2, 19 * MS // 10), CAT, spread_us=100),
        "other": job(MM, ("aten::stack", 1, 2 * MS)),
        "strange": job(("aten::mul", 2, 2 * MS), CAT),
        "rank_2": [*job(MM, CAT)[:2], job(("aten::mm", 5, 2 * MS), CAT)[2], job(MM, CAT)[3]],
        "wide": products(4096, MS),
        "wide_slower": products(4096, 2 * MS),
        "narrow": products(1024, MS),
        "alone": job(MM, CAT, ranks=1),
        "alone_slower": job(("aten::mm", 2, 3 * MS), CAT, ranks=1),
    }
    with Store(None, threads=1, is_kept=False) as store:
        runs = {name: add_run(store, *traces, run_name=name) for name, traces in jobs.items()}
        built(store, "operation")
        yield {name: Side(store, run_id) for name, run_id in runs.items()}


def changed(sides: dict[str, Side], before: str, after: str, level: str = "operation") -> list[OperationChange]:
    return [one for one in operation_changes(sides[before], sides[after], STEP) if one.level == level]


def told(changes: list[OperationChange]) -> list[tuple[str, str, bool]]:
    return [(one.name, one.kind, one.is_significant) for one in changes if one.difference_ns or one.is_significant]


def test_more_calls_are_counted_and_need_no_test(sides: dict[str, Side]) -> None:
    (found, _) = changed(sides, "before", "more")

    assert (found.name, found.kind, found.is_significant) == ("aten::mm", "more_calls", True)
    assert (found.before_calls, found.after_calls, found.difference_ns) == (2.0, 4.0, 4 * MS)
    assert found.p_value is None


def test_calls_that_take_longer_on_every_rank_are_slower(sides: dict[str, Side]) -> None:
    (found, _) = changed(sides, "before", "slower")

    # 2 calls of 3 in the place of 2 ms, and 0, 2, 4 and 6 us more on the ranks: 3 us
    assert (found.name, found.kind, found.is_significant) == ("aten::mm", "slower_each", True)
    assert found.difference_ns == pytest.approx(2 * MS + 3 * US)
    assert found.p_value is not None
    assert found.p_value < 1e-6


def test_what_is_slower_here_and_faster_there_is_no_change(sides: dict[str, Side]) -> None:
    # given ranks that take -200, 0, 200 and 400 us more than before
    assert told(changed(sides, "before", "uneven")) == [("aten::mm", "slower_each", False)]


def test_another_operation_is_one_gone_and_one_new(sides: dict[str, Side]) -> None:
    assert told(changed(sides, "before", "other")) == [("aten::stack", "new", True), ("aten::cat", "gone", True)]


def test_what_changed_on_one_rank_is_told_of_that_rank(sides: dict[str, Side]) -> None:
    (found, _) = changed(sides, "before", "rank_2")

    assert (found.rank, found.kind, found.is_significant) == (2, "more_calls", True)
    assert (found.before_calls, found.after_calls, found.difference_ns) == (2.0, 5.0, 6 * MS)


def test_one_rank_cannot_tell_whether_calls_are_slower(sides: dict[str, Side]) -> None:
    (found, *_) = changed(sides, "alone", "alone_slower")

    assert (found.name, found.is_significant, found.p_value) == ("aten::mm", False, None)
    assert found.difference_ns == 2 * MS


def test_a_run_against_itself_changes_no_operation(sides: dict[str, Side]) -> None:
    assert told(changed(sides, "before", "before")) == []


def test_the_shapes_and_the_kernel_that_became_slower_are_told_apart(sides: dict[str, Side]) -> None:
    for level, name, other in (
        ("shapes", "aten::mm [[4096,4096],[4096,4096]]", "aten::mm [[512,512],[512,512]]"),
        ("kernel", "gemm_4096", "gemm_512"),
    ):
        slower, same = changed(sides, "wide", "wide_slower", level)
        assert (slower.name, slower.kind, slower.is_significant) == (name, "slower_each", True)
        assert (same.name, same.difference_ns, same.is_significant) == (other, 0, False)
        # 2 x 4096^3 FLOP in 1 ms, then in 2 ms
        assert slower.before_flops_per_s == pytest.approx(137.4e12, rel=1e-3)
        assert slower.after_flops_per_s == pytest.approx(68.7e12, rel=1e-3)


def test_other_shapes_are_new_and_gone_where_the_operation_is_the_same(sides: dict[str, Side]) -> None:
    assert told(changed(sides, "wide", "narrow")) == []
    assert told(changed(sides, "wide", "narrow", "shapes")) == [
        ("aten::mm [[1024,1024],[1024,1024]]", "new", True),
        ("aten::mm [[4096,4096],[4096,4096]]", "gone", True),
    ]


def test_a_module_is_compared_by_its_kernels(sides: dict[str, Side]) -> None:
    (module,) = changed(sides, "wide", "wide_slower", "module")

    assert (module.name, module.before_calls, module.difference_ns) == ("Linear_0", 1.0, MS)


@pytest.mark.parametrize(("after", "fields"), [("other", []), ("strange", ["operations"])])
def test_runs_that_share_little_work_are_of_other_programs(
    sides: dict[str, Side], after: str, fields: list[str]
) -> None:
    # given 4 ms of aten::mm and 1 ms of aten::cat, then with aten::stack in place of cat, or with mul in place of mm
    changes = operation_changes(sides["before"], sides[after], STEP)

    assert [one.field for one in other_program(changes)] == fields
