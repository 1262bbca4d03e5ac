"""How far the numbers can be trusted. In: queries on align.*, timeline.*, attribute.*, meta.*. Out: `Trust`.

The clock residual sets the resolution: a wait below three times the largest residual supports no finding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from traceforge.report.formatting import clean
from traceforge.thresholds import align as thresholds

Rows = Callable[..., list[dict[str, Any]]]

_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Clock:
    """How a rank's clock was brought to the common one; offset and residual in ns, None when unaligned."""

    rank: int
    host: str | None
    offset_ns: float | None
    drift_ppb: float | None
    residual_ns: float | None
    anchors: int | None
    status: str


@dataclass(frozen=True, slots=True)
class IssueCount:
    """Something skipped, repaired or guessed, summed over files."""

    stage: str
    code: str
    severity: str
    count: int
    lost_events: int
    files: int
    first_at: str
    detail: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """A row of timeline.coverage; see there. `layout` is that of timeline.layout where it has several axes."""

    ranks: int
    truncated_ranks: int
    job_ranks: int | None
    unsplit_share: float | None
    is_split: bool | None
    layout: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every rank of the job was recorded to its end."""
        return self.ranks == self.job_ranks and not self.truncated_ranks

    @property
    def of_all(self) -> str:
        """Recorded ranks of those there are, such as `7 of 8`."""
        return f"{self.ranks} of {'an unknown number of' if self.job_ranks is None else self.job_ranks}"


_TURNS = {
    "iterations_from_collective_period": "turns of the collectives",
    "iterations_from_kernel_period": "turns of the kernels",
}


@dataclass(frozen=True, slots=True)
class Trust:
    """What the certainty of every number rests on.

    Attributes:
        collectives, complete: collectives matched across ranks, and those of which every member's part was found.
        matched_share: share 0..1 of the collective calls that were matched across ranks; None where there are none, or
            only one member of each was recorded.
        events, lost_events: events in the ingested files, and those not stored.
        coverage: how much of the job was recorded.
        unexplained: share 0..1 of the delay (credits left out) that no cause owns; None where there is no delay.
    """

    clocks: Sequence[Clock]
    issues: Sequence[IssueCount]
    collectives: int
    complete: int
    matched_share: float | None
    events: int
    lost_events: int
    unexplained: float | None
    coverage: Coverage

    @property
    def steps_inferred_from(self) -> str:
        """What steps are told by where nothing marks them and a turn may be of something else; empty otherwise."""
        return next((_TURNS[issue.code] for issue in self.issues if issue.code in _TURNS), "")

    @property
    def largest_residual_ns(self) -> float | None:
        """The largest residual of any rank's clock, ns; None where only one clock is known, which compares to none."""
        if len(self.clocks) < 2:
            return None
        return max((clock.residual_ns for clock in self.clocks if clock.residual_ns is not None), default=None)

    @property
    def resolution_ns(self) -> float:
        """Waits below this are not trusted, ns; 0 where no residual is known."""
        return thresholds.RESOLUTION_RESIDUALS * (self.largest_residual_ns or 0)

    @property
    def unaligned(self) -> list[int]:
        """Ranks whose clock could not be placed."""
        return [clock.rank for clock in self.clocks if clock.status == "unaligned"]


def read_trust(rows: Rows) -> Trust:
    """The trust panel's numbers."""
    matching = rows("matching")[0]
    events = rows("events")[0]
    unexplained = rows("unexplained")[0]
    return Trust(
        clocks=tuple(_clock(row) for row in rows("clocks")),
        issues=tuple(sorted((_issue(row) for row in rows("issues")), key=_issue_order)),
        collectives=matching["collectives"],
        complete=matching["complete"],
        matched_share=matching["matched_share"],
        events=events["events"],
        lost_events=events["lost_events"],
        unexplained=unexplained["share"],
        coverage=Coverage(**{name: matching[name] for name in Coverage.__dataclass_fields__}),
    )


def _clock(row: dict[str, Any]) -> Clock:
    return Clock(**{**row, "host": None if row["host"] is None else clean(row["host"], 80)})


def _issue(row: dict[str, Any]) -> IssueCount:
    texts = {name: clean(row[name] or "", 400) for name in ("stage", "code", "severity", "first_at", "detail")}
    return IssueCount(**{**row, **texts})


def _issue_order(issue: IssueCount) -> tuple[int, int, str, str]:
    place = _SEVERITIES.index(issue.severity) if issue.severity in _SEVERITIES else len(_SEVERITIES)
    return (place, -issue.count, issue.code, issue.stage)
