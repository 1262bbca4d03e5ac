"""What is shown in detail, and where a finding shows best. In: findings, iterations, arrivals. Out: `Detail`, `Moment`.

The excess of a late rank is the time from the median arrival of the others to its own, in the collective before which
it works longest meanwhile: what it spends waiting itself, as the stages of a pipeline do while that fills, is not its
own. That of slow transfers is the longest transfer of the iteration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from traceforge.report.diagnosis import Finding
from traceforge.report.job import Iteration
from traceforge.report.palette import COMMUNICATING
from traceforge.report.representatives import normal_iteration, representatives

_MOST_FINDINGS = 6
_MOST_RANKS = 4
_MESSAGES = ("send", "recv", "send_recv")


@dataclass(frozen=True, slots=True)
class Detail:
    """What is shown operation by operation.

    Attributes:
        iterations: numbers of the iterations, each with why it is one of them.
        ranks: culprits first, then a rank in the middle; empty where there is nothing to open.
        peer: the rank in the middle, to compare with; None where there is none.
        normal: the iteration to compare with.
    """

    iterations: dict[int, str]
    ranks: tuple[int, ...]
    peer: int | None
    normal: int | None


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a finding shows best; times on the aligned clock, ns.

    Attributes:
        rank: the culprit there; None for transfers.
        ranks: whose lanes carry the outline.
        collective_id: what waits for it, or is slow; None where no collective shows it.
        span: start and end of the excess; None where no collective shows it.
        awaited: what it is late for, such as `a collective`, and after whom; empty where no collective shows it.
    """

    finding: Finding
    iteration: int
    rank: int | None
    ranks: tuple[int, ...] = ()
    collective_id: int | None = None
    span: tuple[int, int] | None = None
    awaited: tuple[str, str] = ("", "")

    @property
    def excess_ns(self) -> int:
        """Length of the excess, ns; 0 where no collective shows it."""
        return self.span[1] - self.span[0] if self.span else 0


def shown_findings(findings: Sequence[Finding], drawn: Sequence[int]) -> list[Finding]:
    """The findings whose moments are shown in detail: the first ones whose iteration is drawn."""
    return [finding for finding in findings if finding.moment_iteration in drawn][:_MOST_FINDINGS]


def normal_of(findings: Sequence[Finding], used: Sequence[Iteration]) -> Iteration | None:
    """The iteration to compare with: none of those that the first significant finding slows down, where others are."""
    first = next((one for one in findings if one.is_significant and one.first_iteration is not None), None)
    slow = (first.first_iteration or 0, first.last_iteration or 0) if first else None
    return normal_iteration(used, slow) if used else None


def detailed_iterations(findings: Sequence[Finding], used: Sequence[Iteration]) -> dict[int, str]:
    """Iterations shown operation by operation, each with why; the findings' moments first."""
    chosen: dict[int, str] = {}
    for finding in findings:
        chosen.setdefault(int(finding.moment_iteration or 0), "a finding" if finding.is_significant else "a hint")
    for representative in representatives(used):
        number = representative.iteration.number
        link = ", " if " and " in representative.reason else " and "
        chosen[number] = link.join(filter(None, [chosen.get(number), representative.reason]))
    if normal := normal_of(findings, used):
        chosen.setdefault(normal.number, "normal")
    return chosen


def detail_of(
    findings: Sequence[Finding], used: Sequence[Iteration], arrivals: pl.DataFrame, ranks: Sequence[int]
) -> Detail:
    """What is shown operation by operation.

    Args:
        findings: those shown in detail.
        arrivals: rows of sections/timeline_arrivals for its iterations.
        ranks: the recorded ranks.
    """
    culprits = list(dict.fromkeys(one.moment_rank for one in findings if one.moment_rank in ranks))[: _MOST_RANKS - 1]
    peer = _in_the_middle(arrivals, ranks, culprits)
    shown = [rank for rank in culprits if rank is not None] + ([] if peer is None else [peer])
    if not culprits and not arrivals.is_empty():
        latest = _by_lateness(arrivals)[-1]
        shown = [*dict.fromkeys([latest, *shown])]
    normal = normal_of(findings, used)
    return Detail(detailed_iterations(findings, used), tuple(shown), peer, normal.number if normal else None)


def _in_the_middle(arrivals: pl.DataFrame, ranks: Sequence[int], culprits: Sequence[int | None]) -> int | None:
    """The rank of median lateness among those that no finding points at."""
    ordered = _by_lateness(arrivals) if not arrivals.is_empty() else list(ranks)
    others = [rank for rank in ordered if rank not in culprits]
    return others[len(others) // 2] if others else None


def _by_lateness(arrivals: pl.DataFrame) -> list[int]:
    mean = arrivals.group_by("rank").agg(pl.col("late_ns").mean()).sort("late_ns", "rank")
    return [int(rank) for rank in mean["rank"]]


def moments_of(
    findings: Sequence[Finding],
    arrivals: pl.DataFrame,
    segments: pl.DataFrame,
    origin_ns: Mapping[tuple[int, int], int],
) -> list[Moment]:
    """Where each finding shows best.

    Iterations that begin with a call end with what makes a rank late for the first call of the next one.

    Args:
        arrivals: rows of sections/timeline_arrivals for the iterations of the findings, and for those behind them.
        segments: rows of sections/timeline.
        origin_ns: the instant that these count from on the aligned clock, by iteration and rank.
    """
    found = []
    for finding in findings:
        number = int(finding.moment_iteration or 0)
        own = arrivals.filter(pl.col("iteration") == number)
        if (rank := finding.moment_rank) is None:
            found.append(_moment_of_transfers(finding, number, own))
        else:
            work = _work(segments, number, rank, origin_ns.get((number, rank), 0))
            moment = _moment_of_rank(finding, number, rank, own, work)
            if moment.span is None:
                first = _first_call(arrivals.filter(pl.col("iteration") == number + 1), rank)
                moment = _moment_of_rank(finding, number, rank, first, work)
            found.append(moment)
    return found


def _first_call(arrivals: pl.DataFrame, rank: int) -> pl.DataFrame:
    """Arrivals of all ranks at the first collective of one."""
    own = arrivals.filter(pl.col("rank") == rank).sort("arrival_ns")
    return arrivals.filter(pl.col("collective_id").is_in(own["collective_id"].head(1).implode()))


def _work(segments: pl.DataFrame, iteration: int, rank: int, origin_ns: int) -> pl.DataFrame:
    """When a rank neither waits nor transfers."""
    own = segments.filter(
        (pl.col("iteration") == iteration) & (pl.col("rank") == rank) & ~pl.col("phase").is_in(COMMUNICATING)
    )
    start = (pl.col("start_ns") + origin_ns).alias("start_ns")
    return own.select(start, (start + pl.col("duration_ns")).alias("end_ns"))


def _moment_of_rank(finding: Finding, iteration: int, rank: int, arrivals: pl.DataFrame, work: pl.DataFrame) -> Moment:
    own = arrivals.filter((pl.col("rank") == rank) & (pl.col("last_rank") == rank) & ~pl.col("below_resolution"))
    parts: list[tuple[int, tuple[int, int]]] = []
    for collective, at_ns in own.select("collective_id", "arrival_ns").iter_rows():
        others = arrivals.filter((pl.col("collective_id") == collective) & (pl.col("rank") != rank))["arrival_ns"]
        if len(others) and (since := round(median(others.to_list()))) < at_ns:
            parts.append((collective, (since, at_ns)))
    if not parts:
        return Moment(finding, iteration, rank, (rank,))
    collective, late = max(parts, key=lambda part: (_within(work, *part[1]), part[1][1] - part[1][0]))
    members = arrivals.filter(pl.col("collective_id") == collective)
    peers = [one for one in members["rank"] if one != rank]
    what = "a message" if members["op"][0] in _MESSAGES and len(peers) == 1 else "a collective"
    whom = f"rank {peers[0]}" if len(peers) == 1 else "the median of the other ranks"
    return Moment(finding, iteration, rank, (rank,), collective, late, (what, whom))


def _within(work: pl.DataFrame, since: int, until: int) -> int:
    """Time of the work that lies between two instants, ns."""
    shared = pl.min_horizontal("end_ns", pl.lit(until)) - pl.max_horizontal("start_ns", pl.lit(since))
    return int(work.select(shared.clip(lower_bound=0).sum()).item())


def _moment_of_transfers(finding: Finding, iteration: int, arrivals: pl.DataFrame) -> Moment:
    measured = arrivals.filter(pl.col("transfer_ns").is_not_null())
    if finding.subject_kind == "communicator" and finding.subject.isdigit():
        measured = measured.filter(pl.col("communicator_id") == int(finding.subject))
    if finding.subject_kind == "link":
        ranks = pl.col("rank").sort().cast(pl.String).implode().list.join(", ").over("collective_id")
        between = measured.filter(ranks == finding.subject)
        # A link between two hosts is named by these: any transfer may show it.
        measured = measured if between.is_empty() else between
    if measured.is_empty():
        return Moment(finding, iteration, None)
    collective = measured.sort("transfer_ns", "collective_id", descending=[True, False])["collective_id"][0]
    own = measured.filter(pl.col("collective_id") == collective)
    span = (int(own["last_arrival_ns"][0]), int(own["end_ns"].max()))  # type: ignore[arg-type]
    return Moment(finding, iteration, None, tuple(own["rank"].to_list()), collective, span)
