"""What all runs of a history say together. In: a history. Out: `Fleet`: series with their changes, suspects, losses.

Idea: runs are compared within a series: one job, as many ranks, the same devices and layout. Series too short to be
judged are said to be so. Not handled: what differs between series.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from traceforge.history.steps import FEWEST_RUNS, LevelChange, smallest_step, steps
from traceforge.history.suspects import Suspect, participations_of, suspects
from traceforge.store.history_file import HistoryFile
from traceforge.thresholds import history as thresholds

WATCHED = ("iteration_ms", "p95_ms", "exposed_communication_share", "delay_share")
"""Metrics whose lasting changes are looked for; of all of them, more is worse."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a series; `value` is of the series' metric, the ends of its interval None where there is none."""

    run_name: str
    commit_id: str | None
    recorded_ns: int | None
    hosts: tuple[str, ...]
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ChangeOfSeries:
    """A lasting change of a series.

    Attributes:
        first, before: the first run of the new level, and the last of the old.
        found: the run with which it became certain.
        is_recent: whether that is one of the last runs.
        hosts_came, hosts_went: hosts of the new level's runs that no run of the old one had, and the reverse.
    """

    step: LevelChange
    first: Point
    before: Point
    found: Point
    is_recent: bool
    hosts_came: tuple[str, ...]
    hosts_went: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether it is a regression."""
        return self.step.rise > 0


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over the comparable runs of a job.

    Attributes:
        title: of the job with what tells this series from others of it.
        points: in order of time.
        changes: in order.
        sight: the smallest change that three more runs would show; None where too few say what is usual.
    """

    job: str
    title: str
    metric: str
    points: Sequence[Point]
    changes: Sequence[ChangeOfSeries]
    sight: float | None

    @property
    def is_judged(self) -> bool:
        """Whether there are runs enough for a change to show."""
        return len(self.points) >= FEWEST_RUNS


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a history says.

    Attributes:
        runs: how many there are.
        jobs: of how many names.
        series: by job, then metric.
        suspects: hosts and NICs, the least explained by chance first.
        verdicts: runs by verdict, confidence and job.
        losses: GPU-hours by mode and cause; see `queries/lost_gpu_hours.sql`.
        hostless: runs whose traces name no host.
    """

    runs: int
    jobs: int
    series: Sequence[Series]
    suspects: Sequence[Suspect]
    verdicts: Sequence[Row]
    losses: Sequence[Row]
    hostless: int

    @property
    def named(self) -> list[Suspect]:
        """Hosts and NICs that are guilty in more jobs than chance allows."""
        return [one for one in self.suspects if one.is_named]

    @property
    def regressions(self) -> list[tuple[Series, ChangeOfSeries]]:
        """Changes for the worse, the latest first."""
        found = [(series, change) for series in self.series for change in series.changes if change.is_worse]
        return sorted(found, key=lambda one: (not one[1].is_recent, one[0].metric != WATCHED[0], one[0].title))


def fleet_query(name: str) -> str:
    """The text of a query of this folder."""
    file = resources.files("traceforge.history") / "queries" / f"{name}.sql"
    return file.read_text(encoding="utf-8").strip()


def read_fleet(history: HistoryFile, job: str | None = None) -> Fleet:
    """What a history says; of one job where it is named."""
    runs = [row for row in history.records(fleet_query("runs")) if job is None or row["job"] == job]
    kept = {row["run_key"] for row in runs}
    points = [row for row in history.records(fleet_query("points")) if row["run_key"] in kept]
    members = [row for row in history.records(fleet_query("participation")) if row["run_key"] in kept]
    by_job = [row for row in history.records(fleet_query("verdict_mix")) if job in {None, row["job"]}]
    losses = [row for row in history.records(fleet_query("lost_gpu_hours")) if job in {None, row["job"]}]
    return Fleet(
        runs=len(runs),
        jobs=len({row["job"] for row in runs}),
        series=_series(points, members),
        suspects=suspects(participations_of(members)),
        verdicts=by_job,
        losses=losses,
        hostless=sum(not row["hosts"] for row in runs),
    )


def _series(rows: Sequence[Row], members: Sequence[Row]) -> list[Series]:
    hosts: dict[str, list[str]] = {}
    for member in members:
        if member["kind"] == "host":
            hosts.setdefault(member["run_key"], []).append(member["name"])
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        if row["metric"] not in WATCHED or row["value"] is None:
            continue
        own = tuple(sorted(hosts.get(row["run_key"], ())))
        point = Point(row["run_name"], row["commit_id"], row["recorded_ns"], own, row["value"], row["low"], row["high"])
        groups.setdefault((row["job"], row["series"], row["metric"]), []).append(point)
    order = sorted(groups, key=lambda key: (key[0], key[1], WATCHED.index(key[2])))
    return [_judged(job, title, metric, groups[job, title, metric]) for job, title, metric in order]


def _judged(job: str, title: str, metric: str, points: Sequence[Point]) -> Series:
    values = [point.value for point in points]
    found = steps(values)
    starts = [0, *(step.place for step in found)]
    changes = [_change(points, step, starts[number]) for number, step in enumerate(found)]
    return Series(job, title, metric, points, changes, smallest_step(values, found))


def _change(points: Sequence[Point], step: LevelChange, start: int) -> ChangeOfSeries:
    old = {host for point in points[start : step.place] for host in point.hosts}
    new = {host for point in points[step.place : step.found + 1] for host in point.hosts}
    return ChangeOfSeries(
        step=step,
        first=points[step.place],
        before=points[step.place - 1],
        found=points[step.found],
        is_recent=step.found >= len(points) - thresholds.RECENT_RUNS,
        hosts_came=tuple(sorted(new - old)),
        hosts_went=tuple(sorted(old - new)),
    )
