"""What a job bound by copies is told: the direction, the size and the pace of what is copied."""

from tests.given import DEVICE, US, Trace, rows_of
from tests.stories import told

PAGEABLE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)"
BOUND = "SELECT bound, sentence, next_step FROM attribute.bound WHERE rank IS NULL"


def copy(trace: Trace, name: str, start_ns: int, end_ns: int, size_bytes: int | None, stream: int = 9) -> Trace:
    return trace.event("gpu_memcpy", name, start_ns, end_ns, track_id=DEVICE, stream=stream, size_bytes=size_bytes)


def bound_of(*traces: Trace, world_size: int = 1) -> tuple[str, str, str]:
    ((bound, sentence, step),) = rows_of(told(*traces, world_size=world_size), BOUND)
    return str(bound), str(sentence), str(step)


def test_the_copy_that_takes_longest_is_named_with_size_and_pace() -> None:
    # |kernel 20|from pageable memory 60, of which 10 under the kernel|to pinned 20|
    trace = Trace().step(0, 0, 100 * US).kernel(0, 30 * US)
    copy(trace, PAGEABLE, 20 * US, 80 * US, 180_000)
    copy(trace, PINNED, 80 * US, 100 * US, 400_000)

    bound, sentence, step = bound_of(trace)

    # Alone are 50 + 20 us; 180 kB in 60 us are 3 GB/s, whatever hides them.
    assert bound == "copy_bound"
    assert sentence.endswith(
        "71 % of the copies' time is Memcpy HtoD (Pageable -> Device): 1 copy of 180 kB at 3.00 GB/s."
    )
    assert "pin_memory=True" in step


def test_pinned_memory_is_not_advised_to_those_who_have_it() -> None:
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US)
    copy(trace, PINNED, 20 * US, 60 * US, 400_000)
    copy(trace, PINNED, 60 * US, 100 * US, 200_000)

    _, sentence, step = bound_of(trace)

    assert sentence.endswith(
        "100 % of the copies' time is Memcpy DtoH (Device -> Pinned): 2 copies of 300 kB on average at 7.50 GB/s."
    )
    assert "pin" not in step


def test_copies_at_once_take_their_time_once_and_without_sizes_have_no_pace() -> None:
    # Two streams copy for the same 60 us, a third direction for the other 20.
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US)
    copy(trace, "Memcpy DtoD (Device -> Device)", 20 * US, 80 * US, None)
    copy(trace, "Memcpy DtoD (Device -> Device)", 20 * US, 80 * US, None, stream=10)
    copy(trace, PINNED, 80 * US, 100 * US, 400_000)

    _, sentence, step = bound_of(trace)

    assert sentence.endswith(
        "75 % of the copies' time is Memcpy DtoD (Device -> Device): 2 copies, sizes not recorded."
    )
    assert "clone()" in step


def test_a_host_inside_of_a_copy_call_while_nothing_runs_is_told_apart() -> None:
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US)
    trace.host_work("cudaMemcpy", 20 * US, 89 * US, "cuda_runtime")
    copy(trace, PAGEABLE, 80 * US, 90 * US, 1_000)
    trace.kernel(90 * US, 100 * US, launch_ns=89 * US)

    bound, sentence, _ = bound_of(trace)

    assert bound == "copy_bound"
    assert sentence.endswith("86 % of this time the host is inside of a call that copies, and nothing else runs.")


def test_each_rank_is_told_of_its_own_copies() -> None:
    first, second = (Trace(rank).step(0, 0, 100 * US).kernel(0, 20 * US) for rank in (0, 1))
    copy(first, PAGEABLE, 20 * US, 100 * US, 80_000)
    copy(second, PINNED, 20 * US, 90 * US, 70_000_000)
    second.collective(90 * US, 100 * US, ranks=[0, 1])

    store = told(first, second, world_size=2)

    sentences = dict(rows_of(store, "SELECT rank, sentence FROM attribute.bound ORDER BY rank"))
    assert "(Pageable -> Device): 1 copy of 80.0 kB at 1.00 GB/s" in str(sentences[0])
    assert "(Device -> Pinned): 1 copy of 70.0 MB at 1.00 TB/s" in str(sentences[1])
    assert "53 % of the copies' time is Memcpy HtoD (Pageable" in str(sentences[None])


def test_memory_that_is_set_is_no_copy() -> None:
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US)
    trace.event("gpu_memset", "Memset (Device)", 20 * US, 80 * US, track_id=DEVICE, stream=9, size_bytes=600_000)
    copy(trace, PAGEABLE, 80 * US, 100 * US, 20_000)

    bound, sentence, step = bound_of(trace)

    # 60 of 80 us set 600 kB at 10 GB/s; the copy's own pace is not theirs.
    assert bound == "copy_bound"
    assert sentence.startswith("Bound by setting memory: for 80 % of")
    assert sentence.endswith("75 % of this time is Memset (Device): 1 memory set of 600 kB at 10.0 GB/s.")
    assert "zero_grad(set_to_none=True)" in step
