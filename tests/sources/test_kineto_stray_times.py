"""Times of a device's events that lie far outside of what the host recorded are none, and are counted."""

import pytest

from tests.sources.reading import Read

SECOND = 1_000_000  # µs
HOST = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 10 * SECOND}
KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "dur": 2, "args": {"device": 0, "stream": 7}}


def recorded(*starts: float, **more: object) -> list[dict[str, object]]:
    """The host from second 100 to 110, and kernels that start at these seconds, with as many true ones and one more."""
    true = [{**KERNEL, "ts": 105 * SECOND + place} for place in range(len(starts) + 1)]
    return [{**HOST, "ts": 100 * SECOND}, *true, *({**KERNEL, "ts": start * SECOND, **more} for start in starts)]


@pytest.mark.parametrize("batch_rows", [1, 100_000])
@pytest.mark.parametrize("start", [0, 50, 89, 121, 100_000])
def test_a_kernel_far_outside_of_what_the_host_recorded_has_no_time(
    read_kineto: Read, start: float, batch_rows: int
) -> None:
    reading = read_kineto(recorded(start), batch_rows=batch_rows, unit_bytes=100)

    assert sorted(event["event_id"] for event in reading.events) == [0, 1, 2, 3]
    assert [event["event_id"] for event in reading.events if event["raw_start_ns"] is None] == [3]
    issue = reading.issue("kineto_stray_time")
    assert (issue.count, issue.first_at) == (1, "event 3")


@pytest.mark.parametrize("start", [95, 99.95, 110.05, 115])
def test_a_kernel_that_a_queue_may_have_kept_waiting_keeps_its_time(read_kineto: Read, start: float) -> None:
    # given up to 5 s, half of what the host recorded
    reading = read_kineto(recorded(start))

    assert reading.codes == []
    assert reading.events[-1]["raw_start_ns"] == round(start * 10**9)


def test_a_kernel_at_zero_has_no_time_however_near_the_host(read_kineto: Read) -> None:
    # given a host that begins a second after the base, and records longer than that
    late = [{**event, "ts": float(str(event["ts"])) - 99 * SECOND} for event in recorded(99, 99.5)]

    reading = read_kineto(late)

    assert [event["raw_start_ns"] for event in reading.events[-2:]] == [None, 5 * 10**8]


def test_a_kernel_that_ends_hours_after_its_host_has_no_time(read_kineto: Read) -> None:
    reading = read_kineto(recorded(106, dur=2**64 / 10**6))

    assert reading.issue("kineto_stray_time").count == 1


def test_a_device_whose_clock_is_another_one_keeps_its_times_but_for_zero(read_kineto: Read) -> None:
    # given two kernels of five within what the host recorded, two an hour later, one at 0, and true calls of the driver
    calls: list[dict[str, object]] = [{**KERNEL, "cat": "cuda_runtime", "ts": 105 * SECOND}] * 9
    two_within = recorded(3_700, 3_700)[:3] + calls + recorded(3_700, 3_700, 0)[-3:]

    reading = read_kineto(two_within)

    assert [event["raw_start_ns"] for event in reading.events[-3:]] == [3_700 * 10**9, 3_700 * 10**9, None]


def test_calls_of_the_driver_are_judged_among_themselves(read_kineto: Read) -> None:
    # given one call of three at 0, beside true kernels
    calls = [{**KERNEL, "cat": "cuda_runtime", "ts": ts * SECOND} for ts in (101, 0, 102)]

    reading = read_kineto([*recorded(), *calls])

    assert [event["event_id"] for event in reading.events if event["raw_start_ns"] is None] == [3]


def test_without_host_operations_nothing_says_what_is_far(read_kineto: Read) -> None:
    reading = read_kineto(recorded(0, 100_000)[1:])

    assert reading.codes == []
    assert reading.events[-1]["raw_start_ns"] == 100_000 * 10**9
