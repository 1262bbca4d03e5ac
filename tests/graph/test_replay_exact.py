"""The graph rebuilds the trace: with the measured durations and no policy a replay ends every iteration on the ns."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.given import Trace, store_of_runs
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import load_model
from traceforge.store.stage import build_stage

DIVISIONS = {
    2: [[[0, 1]]],
    4: [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 2], [1, 3]]],
}


@st.composite
def jobs(draw: st.DrawFn) -> list[Trace]:
    """Jobs whose ranks issue the same collectives in each iteration, and run everything at any time.

    Kernels overlap, collectives overtake one another, outlast their iteration, and start in the next one.
    """
    ranks = draw(st.sampled_from(sorted(DIVISIONS)))
    program = draw(st.lists(st.lists(st.sampled_from(DIVISIONS[ranks]), max_size=4), min_size=1, max_size=3))
    traces = []
    for rank in range(ranks):
        trace, base = Trace(rank), 0
        for number, calls in enumerate(program):
            length = draw(st.integers(20, 120))
            trace.step(number, base, base + length)
            for call, division in enumerate(calls):
                group = next(group for group in division if rank in group)
                start = base + draw(st.integers(0, 150))
                end = start + draw(st.integers(1, 80))
                trace.collective(start, end, issue_ns=base + 2 * call, group=str(group), ranks=group)
            for start, duration in draw(st.lists(st.tuples(st.integers(0, 150), st.integers(1, 60)), max_size=3)):
                trace.kernel(base + start, base + start + duration, launch_ns=base)
            for start, duration in draw(st.lists(st.tuples(st.integers(0, 150), st.integers(1, 60)), max_size=2)):
                trace.host_work("load_batch", base + start, base + start + duration, "user_annotation")
            base += length
        traces.append(trace)
    return traces


@examples(5)
@given(st.lists(jobs(), min_size=4, max_size=4))
def test_a_replay_of_measured_durations_ends_when_the_trace_ended(runs: list[list[Trace]]) -> None:
    with store_of_runs(*runs) as store:
        for stage in ("align", "timeline", "graph"):
            build_stage(store, f"traceforge.{stage}")
        models = [load_model(store, run_id) for run_id in range(len(runs))]

    replayed = [(replay(model, measured(model)), model) for model in models if model is not None]
    assume(replayed)
    for outcome, model in replayed:
        np.testing.assert_array_equal(outcome.start_ns, model.start_ns)
        np.testing.assert_array_equal(outcome.end_ns, model.end_ns)
