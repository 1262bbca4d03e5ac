"""The package as a notebook or a script uses it: what is public, what it answers, what a notebook shows."""

import base64
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import traceforge
from tests.conftest import ROOT
from tests.report.conftest import HOSTILE
from tests.report.tables import Job, store_of
from traceforge.check import LimitOutcome
from traceforge.errors import InputUnusableError, QueryError, UsageError
from traceforge.notebook import Run, open_run
from traceforge.report.drawing import Chart
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario


@pytest.fixture(scope="module")
def late() -> Iterator[Run]:
    """Four ranks; rank 2 is late."""
    with Run(store_of(Job())) as run:
        yield run


@pytest.fixture(scope="module")
def hostile() -> Iterator[Run]:
    """The same, but every name tries to break out."""
    job = Job(run_name=f"run{HOSTILE}", host=f"host{HOSTILE}", cause=f"cause{HOSTILE}", communicator=f"group{HOSTILE}")
    with Run(store_of(job)) as run:
        for column in ("headline", "explanation", "next_step"):
            run.store.execute(f"UPDATE attribute.verdict SET {column} = {column} || ?", [HOSTILE])
        run.store.execute("UPDATE attribute.finding SET summary = summary || ?, subject = ?", [HOSTILE, HOSTILE])
        yield run


@pytest.fixture(scope="module")
def hostile_charts(hostile: Run) -> list[Chart]:
    """All its charts, drawn once."""
    return [hostile.chart(name) for name in hostile.charts]


def test_the_public_names_are_few_and_all_there() -> None:
    assert len(traceforge.__all__) <= 15
    assert all(getattr(traceforge, name) is not None for name in traceforge.__all__)
    assert dir(traceforge) == sorted(traceforge.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = traceforge.nonsense  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, traceforge; sys.exit(', '.join({'polars', 'duckdb', 'numpy', 'altair'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_answers_what_the_commands_do(late: Run, tmp_path: Path) -> None:
    assert late.verdict is not None
    assert late.verdict.kind == "finding"
    assert late.findings[0].rank == 2
    assert len(late.findings) == len(list(late.findings)) == 3
    assert late.sql("SELECT ? + 1 AS two", 1)["two"].to_list() == [2]
    assert [result.outcome for result in late.check("iteration_ms=1")] == [LimitOutcome.exceeded]
    assert late.doctor()[0].check.code == "timeline"
    made = late.report(tmp_path / "out.html", baseline=late)
    assert made._repr_html_().startswith("<pre>VERDICT")  # type: ignore[attr-defined]
    assert 'id="comparison"' in (tmp_path / "out.html").read_text(encoding="utf-8")
    assert repr(late).startswith("VERDICT")
    assert "high: Rank 2 computes longer" in repr(late.findings)


def test_a_page_is_not_written_over_a_database(late: Run, tmp_path: Path) -> None:
    begun = bytes(8) + b"DUCK" + bytes(4096)
    (tmp_path / "job.duckdb").write_bytes(begun)

    with pytest.raises(UsageError, match="it is a database, and no answer is written over that"):
        late.report(tmp_path / "job.duckdb")

    assert (tmp_path / "job.duckdb").read_bytes() == begun


def test_a_forecast_joins_runs_at_other_scales(tmp_path: Path) -> None:
    # given the same job on 2, 4 and 8 ranks
    paths = []
    for hosts in (1, 2, 4):
        write_scenario(Scenario(f"on{hosts}", 3, 12, cluster=Cluster(hosts, 2)), tmp_path / f"on{hosts}")
        paths.append(tmp_path / f"on{hosts}")

    with open_run(paths[0]) as run:
        alone, joined = run.forecast(), run.forecast(*paths[1:], ranks=[32])

        # then one scale makes no curve, and three do
        assert alone.ensemble is None
        assert alone.needs
        terms = alone.runs[0].tables["terms"]
        assert (terms[0]["term"], sum(term["share"] for term in terms)) == ("compute", pytest.approx(1))
        assert [point.ranks for point in joined.points] == [2, 4, 8]
        assert 32 in [row.ranks for row in joined.plan]

        # and a notebook shows what to measure, and the plan
        assert alone.needs[0][0] in alone._repr_html_()  # type: ignore[attr-defined]
        shown = joined._repr_html_()  # type: ignore[attr-defined]
        assert shown.count("<tr>") == 1 + len(joined.plan)
        assert "<td>32 (extrapolated)</td>" in shown
        with pytest.raises(UsageError, match="one scale"):
            run.forecast(run)


def test_a_healthy_run_shows_that_it_has_no_finding() -> None:
    with Run(store_of(Job(late_rank=None))) as healthy:
        assert repr(healthy.findings) == "no finding"
        assert healthy.findings._repr_html_() == "<p>No finding.</p>"


def test_lists_and_comparisons_are_shown_as_tables(late: Run) -> None:
    check, doctor = late.check("iteration_ms=1"), late.doctor()

    assert "<td>exceeded</td><td>iteration_ms is " in check._repr_html_()
    assert doctor._repr_html_().count("<tr>") == 1 + len(doctor)
    assert late.verdict is not None
    assert "<strong>Rank 2 computes longer" in late.verdict._repr_html_()


def test_a_comparison_is_shown_as_what_changed() -> None:
    # given a run whose rank 2 computes 8 ms longer all along, beside one that nothing is wrong with
    with Run(store_of(Job(late_from=0))) as late, Run(store_of(Job(late_rank=None))) as healthy:
        changes = late.compare(healthy)

    shown = changes._repr_html_()  # type: ignore[attr-defined]

    assert "<td>rank 2</td>" in shown
    assert "<td>rank 1</td>" not in shown
    assert "<td>wait</td>" in shown
    assert "slower</td>" in shown


def test_every_chart_is_a_picture(late: Run) -> None:
    assert {"waterfall", "steps", "lateness"} <= set(late.charts)
    for name in late.charts:
        chart = late.chart(name)
        assert chart.svgs
        assert all(svg.startswith("<svg") and "var(--" not in svg for svg in chart.svgs)


def test_a_prompt_shows_neither_pages_nor_pictures_as_text(late: Run) -> None:
    assert len(repr(late.report())) < 3_000
    assert len(repr(late.chart("lateness"))) < 1_000


def test_an_unknown_chart_is_told_with_those_there_are(late: Run) -> None:
    with pytest.raises(UsageError, match="no chart `pie`") as error:
        late.chart("pie")
    assert "waterfall" in str(error.value.hint)


def test_what_a_notebook_shows_executes_nothing(hostile: Run, hostile_charts: list[Chart]) -> None:
    shown = [hostile._repr_html_(), hostile.findings._repr_html_(), hostile.doctor()._repr_html_()]
    shown.append(hostile.report()._repr_html_())  # type: ignore[attr-defined]
    shown += [hostile.verdict._repr_html_() if hostile.verdict else "", hostile.check("iteration_ms=1")._repr_html_()]
    shown += [chart._repr_html_() for chart in hostile_charts]
    for html in shown:
        assert "<script" not in html
        assert "<img src=x" not in html
    assert "&lt;script&gt;window.PWNED=1" in shown[0]


def test_a_hostile_name_in_a_picture_is_text(hostile_charts: list[Chart]) -> None:
    # pictures are embedded as images, in which nothing runs; and even on its own the SVG holds no element of a name's
    for chart in hostile_charts:
        for svg in chart.svgs:
            assert "<script" not in svg
            assert "<img" not in svg
        html = chart._repr_html_()
        data = html.partition("base64,")[2].partition('"')[0]
        assert base64.b64decode(data).startswith(b"<svg")


def test_a_folder_of_traces_opens_by_itself(tmp_path: Path) -> None:
    folder = ROOT / "sample_traces" / "compute_straggler"
    with traceforge.open(folder) as run:
        assert run.findings[0].rank == 2
        assert run.replay("none")[0].verdict == "no_effect"
    for target, kind in ((tmp_path / "gone", "no such file"), (tmp_path, "no "), (ROOT / "LICENSE", "no ")):
        with pytest.raises(InputUnusableError, match=kind):
            open_run(target)


def test_a_database_opens_read_only_by_the_name_of_the_run(sample_database: Callable[..., Path]) -> None:
    path = sample_database("healthy")
    with traceforge.open(path, run="healthy") as run, pytest.raises(QueryError):
        run.sql("DELETE FROM meta.run")
    with pytest.raises(UsageError, match="no run `bad`"):
        traceforge.open(path, run="bad")
    with traceforge.open(path) as run:
        assert not run.compare(path).iteration.is_significant
