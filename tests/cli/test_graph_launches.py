"""Launches of captured graphs: what they start, and what the trace does not hold of them."""

from tests.given import DEVICE, US, Trace, built, rows_of, store_of
from traceforge.cli.named_queries import query_text


def graph_launch(trace: Trace, at_ns: int, correlation: int | None, call: str = "cudaGraphLaunch") -> Trace:
    return trace.event("cuda_runtime", call, at_ns, at_ns + 4 * US, correlation=correlation)


def on_device(trace: Trace, category: str, start_ns: int, end_ns: int, correlation: int) -> Trace:
    name = "Memset (Device)" if category == "gpu_memset" else "decode_kernel"
    return trace.event(category, name, start_ns, end_ns, track_id=DEVICE, stream=7, correlation=correlation)


def test_kernels_of_a_graph_are_counted_by_launch_and_those_not_recorded_are_told() -> None:
    # Two launches start 1 kernel, and 3 kernels and a memset; the third has no work, the fourth no correlation.
    trace = Trace().step(0, 0, 100 * US)
    graph_launch(trace, 0, 501)
    graph_launch(trace, 10 * US, 502)
    graph_launch(trace, 20 * US, 503)
    graph_launch(trace, 30 * US, None)
    on_device(trace, "kernel", 5 * US, 10 * US, 501)
    for start_us in (40, 50, 60):
        on_device(trace, "kernel", start_us * US, (start_us + 5) * US, 502)
    on_device(trace, "gpu_memset", 70 * US, 80 * US, 502)
    trace.kernel(85 * US, 95 * US)

    store = built(store_of(trace), "align")

    assert rows_of(store, query_text("graph_launches")) == [
        (0, 0, "cudaGraphLaunch", 4, 4.0, 2, 1, 2.0, 3, 1, 0.03),
    ]


def test_graphs_of_hip_are_graphs_and_plain_launches_are_none() -> None:
    trace = Trace(0).step(0, 0, 100 * US).kernel(50 * US, 60 * US)
    graph_launch(trace, 0, 501, "hipGraphLaunch")
    other = Trace(1).step(0, 0, 100 * US).kernel(50 * US, 60 * US)

    store = built(store_of(trace, other), "align")

    assert rows_of(store, query_text("graph_launches")) == [
        (0, 0, "hipGraphLaunch", 1, 4.0, 1, None, None, None, None, None),
    ]
