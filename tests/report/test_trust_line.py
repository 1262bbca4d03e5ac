"""What the numbers rest on, in one line under the verdict."""

import pytest

from tests.given import MS, Trace, store_of
from traceforge import api


def _job(*, is_marked: bool) -> list[Trace]:
    """Two ranks, six steps of 100 ms: a kernel forward, one backward, an all-reduce."""
    traces = [Trace(0), Trace(1)]
    for trace in traces:
        for number in range(6):
            start = number * 100 * MS
            if is_marked:
                trace.step(number, start, start + 100 * MS)
            trace.kernel(start + MS, start + 40 * MS, "forward").kernel(start + 41 * MS, start + 80 * MS, "backward")
            trace.collective(start + 81 * MS, start + 90 * MS)
    return traces


@pytest.mark.parametrize("is_marked", [True, False])
def test_steps_that_nothing_marks_are_said_to_be_inferred(is_marked: bool) -> None:
    store = store_of(*_job(is_marked=is_marked))
    api.analyze(store)

    made = api.report(store)

    said = "inferred from turns of the kernels"
    (line,) = [line for line in made.verdict_lines if line.startswith("  trust:")]
    assert (said in line) is not is_marked
    assert (f"Steps {said}" in made.html.replace("\N{NO-BREAK SPACE}", " ")) is not is_marked
