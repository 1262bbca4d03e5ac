"""The commands as an object, for notebooks and scripts. In: a database, or traces. Out: `Run`: findings, charts, rows.

    import traceforge

    run = traceforge.open("job42.duckdb")      # or a folder of traces, which is read into memory
    run                                        # a notebook shows verdict and findings
    run.findings[0].rank, run.findings[0].cost
    run.chart("lateness")                      # a picture; run.charts lists the names
    run.sql("FROM timeline.iteration")         # a polars frame
    run.compare("good.duckdb").iteration       # what changed since a baseline
    run.check("iteration_ms=130")              # whether limits are kept
    run.forecast("job64.duckdb").plan          # throughput and cost at other scales, from this run and others
    run.report("job42.html")                   # the report as a page

A notebook shows escaped text and pictures: nothing that a trace contains is executed. Not handled: writing into the
database, which is opened read-only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from traceforge import api
from traceforge.align.stated_racks import StatedRacks
from traceforge.errors import InputUnusableError
from traceforge.files import check_exists
from traceforge.outputs import check_outputs, write_text
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store
from traceforge.store.folder import is_database

if TYPE_CHECKING:
    import polars as pl

    from traceforge.check import LimitResult
    from traceforge.compare import Comparison
    from traceforge.doctor import Examination
    from traceforge.forecast.answer import Answer, MeasuredRun
    from traceforge.forecast.goodput import Assumptions
    from traceforge.replay.outcome import Outcome
    from traceforge.report import Report
    from traceforge.report.context import Context
    from traceforge.report.diagnosis import Finding, Verdict
    from traceforge.report.drawing import Chart


T = TypeVar("T")

_ALWAYS = ("iteration", "phase", "cause")  # of a comparison; of ranks and collectives what changed


class ShownRows(list[T]):
    """A list that a notebook shows as a table; all texts are escaped."""

    def __init__(self, found: Iterable[T], head: Sequence[str], cells: Callable[[T], Sequence[str]]) -> None:
        super().__init__(found)
        self._head, self._cells = head, cells

    def _repr_html_(self) -> str:
        from traceforge.report.drawing import table_html

        return table_html(self._head, [self._cells(one) for one in self])


class Findings(Sequence["Finding"]):
    """The findings of a run in the order of attribute.finding; a notebook shows a table."""

    def __init__(self, found: Sequence["Finding"], html: str) -> None:
        self._found = tuple(found)
        self._html = html

    @overload
    def __getitem__(self, place: int) -> "Finding": ...
    @overload
    def __getitem__(self, place: slice) -> Sequence["Finding"]: ...
    def __getitem__(self, place: int | slice) -> "Finding | Sequence[Finding]":
        return self._found[place]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> "Iterator[Finding]":
        return iter(self._found)

    def __repr__(self) -> str:
        return "\n".join(f"{finding.confidence}: {finding.summary}" for finding in self._found) or "no finding"

    def _repr_html_(self) -> str:
        return self._html


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a trace database. Use as a context manager, or call `close` when done.

    Attributes:
        store: the database.
        name: name of the run; None where it holds one.
    """

    store: Store
    name: str | None = None

    @cached_property
    def _context(self) -> "Context":
        from traceforge.report.context import Context

        return Context(self.store, api.run_id(self.store, self.name), api.versions(), None)

    @property
    def verdict(self) -> "Verdict | None":
        """The answer in words; None where the analysis gave none."""
        return self._context.diagnosis.verdict

    @property
    def findings(self) -> Findings:
        """What went wrong beyond the run's own noise, in the order of attribute.finding."""
        from traceforge.report.drawing import findings_html

        diagnosis = self._context.diagnosis
        return Findings(diagnosis.findings, findings_html(diagnosis))

    @cached_property
    def charts(self) -> list[str]:
        """Names of the charts that this run has."""
        from traceforge.report.drawing import chart_names

        return chart_names(self._context)

    def chart(self, name: str) -> "Chart":
        """A chart of the report as a picture, with its finding in words.

        Raises:
            UsageError: this run has no such chart.
        """
        from traceforge.report.drawing import draw

        return draw(self._context, name)

    def sql(self, query: str, *parameters: object) -> "pl.DataFrame":
        """The rows of a query; the database is open read-only.

        Args:
            parameters: values of the query's `?`, in order.

        Raises:
            QueryError: the database refused it.
        """
        return self.store.query(query, parameters)

    def report(self, path: Path | str | None = None, *, baseline: "Run | Path | str | None" = None) -> "Report":
        """The report; written to `path` where one is given.

        Args:
            baseline: an earlier run, for a section on what changed since.

        Raises:
            UsageError: the path is that of a trace or a database.
            InputUnusableError: the page cannot be written there.
        """
        output = None if path is None else Path(path)
        check_outputs([output])
        comparison = None if baseline is None else self.compare(baseline)
        made = api.report(self.store, run=self.name, baseline=comparison)
        if output is not None:
            write_text(output, made.html)
        return _shown(made, _first_lines_html)

    def compare(self, baseline: "Run | Path | str", *, force: bool = False) -> "Comparison":
        """What changed since a baseline, and whether it is more than scatter.

        Raises:
            UsageError: the runs are not comparable; the message names the field.
        """
        if isinstance(baseline, Run):
            found = api.compare(baseline.store, self.store, run_before=baseline.name, run_after=self.name, force=force)
            return _shown(found, _changes_html)
        with open_run(baseline) as earlier:
            return self.compare(earlier, force=force)

    def check(self, *limits: str) -> "ShownRows[LimitResult]":
        """Whether the run keeps limits such as `iteration_ms=130`; see `traceforge check --list` for the names."""
        from traceforge.check import parse_limit
        from traceforge.check.documents import sentence

        found = api.check(self.store, [parse_limit(limit) for limit in limits], run=self.name)
        return ShownRows(found, ("outcome", "limit"), lambda one: (one.outcome.value.replace("_", " "), sentence(one)))

    def doctor(self) -> "ShownRows[Examination]":
        """What the traces lack for each question, and the setting that records it."""
        head = ("question", "status", "found", "next time", "setting")
        return ShownRows(
            api.doctor(self.store, run=self.name),
            head,
            lambda one: (one.check.question, one.status.value, one.evidence, one.check.remedy, one.check.setting),
        )

    def replay(self, *policies: str) -> "ShownRows[Outcome]":
        """What pacing policies would have done; all policies where none is named.

        Raises:
            InputUnusableError: the run has no matched collectives to replay.
        """
        from traceforge.replay.outcome import outcomes
        from traceforge.replay.policy import parse_policy
        from traceforge.replay.policy import policies as all_policies
        from traceforge.replay.replay_input import load_replay_input

        given = load_replay_input(self.store, api.run_id(self.store, self.name))
        if given is None:
            raise InputUnusableError("no iteration with matched collectives to replay", hint="ask doctor() why")
        found = outcomes(given, [parse_policy(text) for text in policies or all_policies()])
        return ShownRows(
            found, ("policy", "parameters", "throughput", "95 % interval", "verdict", "reason"), _outcome_cells
        )

    def forecast(
        self, *others: "Run | Path | str", ranks: Sequence[int] = (), assumed: "Assumptions | None" = None
    ) -> "Answer":
        """How far the job scales and what that costs; one scale gives no curve, but what to measure for one.

        Args:
            others: runs of the same job at other scales.
            ranks: further numbers of ranks to plan for.
            assumed: what no trace contains: price, failures, batch (`traceforge.forecast.goodput.Assumptions`).

        Raises:
            InputUnusableError: no throughput was measured, or two runs are not comparable; the field is named.
            UsageError: all runs are at one scale, or a number of ranks is too far from the measured ones.
        """
        from contextlib import ExitStack

        from traceforge.forecast.answer import NOTHING_MEASURED, NOTHING_MEASURED_HINT, answer
        from traceforge.forecast.goodput import Assumptions

        with ExitStack() as opened:
            runs = [other if isinstance(other, Run) else opened.enter_context(open_run(other)) for other in others]
            measured = [point for run in (self, *runs) for point in run._measured()]
        if not measured:
            raise InputUnusableError(NOTHING_MEASURED, where=str(self.store.path), hint=NOTHING_MEASURED_HINT)
        return _shown(answer(measured, [], assumed or Assumptions(), ranks), _plan_html)

    def _measured(self) -> "list[MeasuredRun]":
        from traceforge.forecast.answer import measured_runs

        return measured_runs(self.store, [] if self.name is None else [self.name])

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from traceforge.report.terminal import verdict_lines

        return "\n".join(verdict_lines(self._context))

    def _repr_html_(self) -> str:
        from traceforge.report.drawing import findings_html, verdict_html

        diagnosis = self._context.diagnosis
        return verdict_html(diagnosis) + findings_html(diagnosis)


def _outcome_cells(one: "Outcome") -> tuple[str, ...]:
    from traceforge.report.formatting import change, spaced

    ends = f"{change(one.throughput_ratio_low)} to {change(one.throughput_ratio_high)}"
    return one.policy, one.parameters, change(one.throughput_ratio), ends, spaced(one.verdict), one.reason


def _shown(found: T, html: Callable[[T], str]) -> T:
    """The same object, as one that a notebook shows as this HTML."""
    shown = type(f"Shown{type(found).__name__}", (type(found),), {"_repr_html_": lambda _: html(found)})
    values = ((one.name, getattr(found, one.name)) for one in fields(cast(Any, found)))
    return cast(T, shown(**dict(values)))


def _changes_html(found: "Comparison") -> str:
    """A comparison in words, and its rows as a table: of ranks and collectives those that changed."""
    from markupsafe import Markup

    from traceforge.report.comparison_text import FAMILY_TITLES, headline, judged, moved, subject
    from traceforge.report.drawing import table_html

    rows = [
        (FAMILY_TITLES.get(one.family, one.family), subject(one), moved(one), judged(one))
        for one in found.changes
        if one.is_significant or one.family in _ALWAYS
    ]
    return str(Markup("<p><strong>{}.</strong></p>").format(headline(found))) + table_html(
        ("by", "what", "mean per iteration", "judgement"), rows
    )


def _plan_html(found: "Answer") -> str:
    """The plan by number of ranks; of one scale, what to measure for a curve."""
    from traceforge.report.drawing import table_html
    from traceforge.report.formatting import percent, significant

    if found.ensemble is None:
        return table_html(("for a curve, measure", "why"), found.needs)
    rows = []
    for row in found.plan:
        of_row = row.throughput, row.throughput_low, row.throughput_high
        pace, low, high = ("" if value is None else significant(value) for value in of_row)
        ranks = f"{row.ranks}{' (extrapolated)' if row.extrapolated else ''}"
        efficiencies = ("" if value is None else percent(value) for value in (row.efficiency, row.marginal_efficiency))
        rows.append((ranks, pace, f"{low} to {high}" if low else "", *efficiencies, row.refusal or ""))
    unit = "samples/s" if found.unit == "samples" else "(iterations x ranks)/s"
    head = ("ranks", f"throughput, {unit}", "90 % band", "efficiency", "of one more rank", "not said, because")
    return table_html(head, rows)


def _first_lines_html(made: "Report") -> str:
    """The verdict; the page itself is for a file."""
    from markupsafe import Markup

    return str(Markup("<pre>{}</pre>").format("\n".join(made.verdict_lines)))


def open_run(
    path: Path | str,
    *,
    run: str | None = None,
    jobs: int = 1,
    reference: ReferenceRule | None = None,
    rates: Mapping[str, float] | None = None,
    racks: StatedRacks | None = None,
) -> Run:
    """Open a run of a database, or of traces, which are read into memory.

    Args:
        path: a database made by `ingest`, a folder of traces, or a trace.
        run: name of the run, where the database holds several.
        reference: which durations count as on time; None keeps what a database has, at first the median.
        rates: what the hardware can do, by name, per second (see `operation.stated_rates`); None keeps what is known.
        racks: which host is in which rack (see `align.stated_racks`); None keeps what is known.
        jobs: files read at once; more than one needs a script that guards its start by `__name__ == "__main__"`.

    Raises:
        InputUnusableError: there is nothing of that name, or nothing usable in it.
        UsageError: the database holds several runs and none was named, or not this one.
    """
    target = Path(path)
    check_exists(target)
    has_tables = is_database(target)
    store = api.open_built(target, reference, rates=rates, racks=racks) if has_tables else Store(None)
    try:
        if not has_tables:
            api.ingest([target], store, run=run, jobs=jobs, reference=reference, rates=rates, racks=racks)
        api.run_id(store, run)
    except BaseException:
        store.close()
        raise
    return Run(store, run)
