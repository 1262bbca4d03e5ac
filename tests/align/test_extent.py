"""What a file recorded, at a glance: first and last event, and its devices."""

import pytest

from tests.given import Trace, built, rows_of, store_of

EXTENT = "SELECT raw_first_ns, raw_last_ns, first_device, last_device, has_device, stream_device FROM align.extent"


def test_only_events_that_last_and_devices_that_work_count() -> None:
    # given a mark at 5 that does not last, a call that names device 0, a kernel on device 2 and a copy on device 1
    trace = (
        Trace()
        .event("user_annotation", "mark", 5, 5, phase="i")
        .event("cuda_runtime", "cudaMemGetInfo", 8, 9, device=0)
        .event("kernel", "gemm", 20, 40, device=2, stream=7)
        .event("gpu_memcpy", "copy", 50, 70, device=1, stream=7)
    )

    store = built(store_of(trace), "align.extent")

    # then the lowest device of a stream is the copy's; that of the call, which has no stream, is not asked
    assert rows_of(store, EXTENT) == [(8, 70, 2, 2, True, 1)]


@pytest.mark.parametrize(
    ("clock_ns", "first"), [(0, 0), (2 * 10**18, 2 * 10**18 + 10)], ids=["of a session", "of dates"]
)
def test_zero_is_a_time_of_a_session_and_none_among_dates(clock_ns: int, first: int) -> None:
    # given a mark at 5, work from 10 on, and an event that is written with the time 0
    trace = Trace(clock_ns=clock_ns).host_work("load", 10, 30).event("cpu_op", "unset", -clock_ns, 1 - clock_ns)
    trace.event("user_annotation", "mark", 5, 5, phase="i")

    store = built(store_of(trace), "align.extent")

    assert rows_of(store, EXTENT) == [(first, 30 + clock_ns, None, None, False, None)]
