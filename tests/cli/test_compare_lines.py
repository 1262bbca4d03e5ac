"""What `traceforge compare` prints where work came in the place of other work, and where much changed at once."""

from collections.abc import Iterator, Sequence

import pytest

from tests.given import MS, US, Trace, add_run
from traceforge import api
from traceforge.cli.compare import comparison_lines
from traceforge.store.database import Store

STEP = 60 * MS


def job(*work: tuple[str, str, int]) -> Sequence[Trace]:
    """Four ranks, each step of which runs these operations: name, kernel, ms of the only call."""
    traces = [Trace(rank) for rank in range(4)]
    for trace in traces:
        for number in range(8):
            at = start = number * STEP
            trace.step(number, start, start + STEP)
            for operation, kernel, took_ms in work:
                trace.host_work(operation, at, at + 10 * US).kernel(at, at + took_ms * MS, kernel, launch_ns=at)
                at += took_ms * MS + 20 * US
            trace.collective(at, start + STEP)
    return traces


MM = ("aten::mm", "ampere_gemm", 20)
CHAIN = [(f"aten::{name}", f"{name}_kernel", 4) for name in ("mul", "add", "pow", "tanh", "div")]
FUSED = "triton_poi_fused_add_div_mul_pow_tanh_{}"


@pytest.fixture(scope="module")
def runs() -> Iterator[Store]:
    jobs = {
        "eager": job(MM, *CHAIN),
        "fused": job(MM, (FUSED.format(3), FUSED.format(3), 6)),
        "renumbered": job(MM, (FUSED.format(17), FUSED.format(17), 6)),
        "other library": job(("aten::mm", "cutlass_gemm", 20), *CHAIN),
        "all slower": job(*((operation, kernel, ms + 1) for operation, kernel, ms in (MM, *CHAIN))),
    }
    with Store(None, threads=1, is_kept=False) as store:
        for name, traces in jobs.items():
            add_run(store, *traces, run_name=name, world_size=4)
        api.analyze(store)
        yield store


def lines(runs: Store, before: str, after: str) -> list[str]:
    found = comparison_lines(api.compare(runs, runs, run_before=before, run_after=after))
    assert len(found) <= 15
    return [" ".join(line.split()) for line in found]


def test_five_kernels_fused_into_one_are_told_with_their_sum(runs: Store) -> None:
    # given five operations of 4 ms, and one of 6 ms in their place
    text = " ".join(lines(runs, "eager", "fused"))
    assert "operation: \N{MINUS SIGN}14.0 ms together, of 1 new +6.00 ms (triton_poi_f" in text
    assert "and 5 gone \N{MINUS SIGN}20.0 ms (aten::add, aten::div, aten::mul and 2 more)" in text


def test_a_kernel_by_another_name_costs_nothing_by_that(runs: Store) -> None:
    text = " ".join(lines(runs, "eager", "other library"))
    assert (
        "kernel: 0 ns together, of 1 new +20.0 ms (cutlass_gemm) and 1 gone \N{MINUS SIGN}20.0 ms (ampere_gemm)" in text
    )


def test_the_number_that_a_compiler_gives_a_kernel_is_no_change(runs: Store) -> None:
    assert not [line for line in lines(runs, "fused", "renumbered") if "triton" in line]


def test_changes_without_room_are_counted(runs: Store) -> None:
    # given six operations with a kernel each, all slower: three operations and two kernels are shown
    told = lines(runs, "eager", "all slower")
    assert len([line for line in told if line.startswith("operation:")]) == 3
    assert [line for line in told if line.startswith("…")] != []
