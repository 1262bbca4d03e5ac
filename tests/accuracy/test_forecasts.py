"""The grid of forecasts, on a few jobs; and that its points are those that trace files of the job give."""

import tempfile
from pathlib import Path

import pytest

from tests.accuracy.forecasts import all_cases, cases_of, table
from tests.accuracy.scaled_jobs import FAMILIES, jobs, point_of
from traceforge import api
from traceforge.files import find_files
from traceforge.forecast.points import points_of
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.stage import build_stage
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import run

_NEEDED = ("align", "timeline", "operation", "fabric", "graph", "replay", "attribute", "forecast")


@pytest.mark.parametrize("family", ["regimes", "straggler", "pipeline"])
def test_forecasts_hold(family: str) -> None:
    (job,) = jobs(family, range(500, 501))

    near, far = cases_of(job)

    assert near.error is not None
    assert abs(near.error) < 0.06
    assert max(near.miss, far.miss) < 2


def test_what_never_crossed_hosts_is_refused() -> None:
    assert [case.error for case in all_cases(500, 1, ["one_host"])] == [None, None]


def test_the_table_counts_what_is_inside() -> None:
    rows = table(list(all_cases(500, 1, ["sharded", "one_host"])))

    assert rows[0].startswith("| sharded over all ranks | 2 | 0 | 2 of 2 |")
    assert rows[1] == "| never across hosts | 2 | 2 | | | | | |"
    assert rows[2].startswith("| **all** | 4 | 2 | 2 of 2 |")


@pytest.mark.parametrize("family", ["across", "pipeline", "hierarchical"])
def test_trace_files_give_the_same_point(family: str) -> None:
    # given a job at its smallest scale
    (job,) = jobs(family, range(500, 501))
    scenario = job.make(job.scales[0])
    expected = point_of(run(scenario))

    # when its traces are read and analysed
    with Store(None, threads=1, is_kept=False) as store, tempfile.TemporaryDirectory() as folder:
        write_scenario(scenario, Path(folder), compressed=False)
        files = find_files([Path(folder)])
        ingest_files(store, files, api.sources(), run_name="job", executor=None, options=ReadOptions())
        for stage in _NEEDED:
            build_stage(store, f"traceforge.{stage}")
        (found,) = points_of(store).values()

    # then they show the same terms; iterations that are judged may differ by one at either end
    assert found.step_s == pytest.approx(expected.step_s, rel=0.01)
    assert found.facts["spans_hosts"] == expected.facts["spans_hosts"]
    assert found.facts["group_ranks"] == pytest.approx(expected.facts["group_ranks"], rel=0.05)
    assert found.lateness[4].value_s == pytest.approx(expected.lateness[4].value_s, abs=0.01 * expected.step_s)
    assert found.terms is not None
    assert expected.terms is not None
    for name in ("local_s", "exposed_s", "hidden_s", "waiting_s"):
        assert getattr(found.terms, name) == pytest.approx(getattr(expected.terms, name), abs=0.02 * expected.step_s), (
            name
        )


def test_all_families_make_jobs() -> None:
    for name in FAMILIES:
        (job,) = jobs(name, range(501, 502))
        assert job.make(job.scales[-1]).cluster.ranks == job.scales[-1]
