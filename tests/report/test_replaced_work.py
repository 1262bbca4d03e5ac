"""Work that came in the place of other work is one sentence with one sum; the rest is told by itself."""

from collections.abc import Sequence

from traceforge.compare import OperationChange
from traceforge.compare.operation_changes import Kind
from traceforge.report.replaced_work import is_replaced, kept, replaced

US = 1_000


def row(name: str, kind: Kind, before_us: int, after_us: int, *, rank: int | None = None) -> OperationChange:
    is_large = abs(after_us - before_us) >= 100
    return OperationChange(
        "operation", name, rank, kind, before_us * US, after_us * US, 1, 1, None, None, None, is_significant=is_large
    )


FUSION: Sequence[OperationChange] = [
    # name, what became of it, us before and after; significant from 100 us
    row("fused", "new", 0, 200),
    row("mul", "gone", 120, 0),
    row("add", "gone", 90, 0),
    row("mm", "slower_each", 500, 700),
    row("cat", "new", 0, 300, rank=2),
]


def test_the_sum_holds_small_changes_too() -> None:
    told = " ".join(replaced(FUSION).split())
    assert (
        told == "\N{MINUS SIGN}10.0 µs together, of 1 new +200 µs (fused) and 2 gone \N{MINUS SIGN}210 µs (mul and add)"
    )


def test_what_both_runs_do_and_what_one_rank_alone_does_stay_rows_of_their_own() -> None:
    assert is_replaced(FUSION)
    assert [one.name for one in kept(FUSION)] == ["mm", "cat"]


def test_work_that_only_went_is_in_the_place_of_nothing() -> None:
    only_gone = FUSION[1:]
    assert not is_replaced(only_gone)
    assert [one.name for one in kept(only_gone)] == ["mul", "mm", "cat"]


def test_small_work_that_comes_and_goes_as_names_vary_is_no_replacement() -> None:
    # given less than 100 us each
    assert not is_replaced([row("fill", "new", 0, 90), row("zero", "gone", 80, 0)])
