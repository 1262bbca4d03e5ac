"""A forecast as lines for a terminal. In: an `Answer`. Out: at most 25 lines of plain text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceforge.units import format_ns, format_share, plural

if TYPE_CHECKING:
    from traceforge.forecast.answer import Answer
    from traceforge.forecast.curve import Limit
    from traceforge.forecast.plan import PlanRow
    from traceforge.forecast.what_if import WhatIfRow

_MOST_ROWS = 9
_MOST_CHANGES = 4
_KNEES = {"knee_70": "marginal efficiency < 70 %", "knee_50": "< 50 %", "peak": "peak"}


def curve_lines(found: "Answer") -> list[str]:
    """The forecast where several scales were measured."""
    ensemble = found.ensemble
    assert ensemble is not None  # noqa: S101 - asked for only then
    first, last = ensemble.smallest.ranks, ensemble.largest.ranks
    lines = [f"FORECAST  {len(ensemble.points)} scales measured, {first} to {last} ranks; throughput in {_rate(found)}"]
    if len(ensemble.points) == 2:
        lines.append("warning: two scales cannot test a model; Amdahl's law is assumed, without a band")
    lines += _warnings(found)
    lines += _table(found)
    lines += _hosts(found)
    lines += _slowest(found)
    lines.append("Knees: " + "; ".join(_knee(knee) for knee in found.knees))
    parts = sorted(((name, share) for name, share in found.parts.items() if name != "useful"), key=lambda p: -p[1])
    taken = ", ".join(f"{format_share(share)} {name.replace('_', ' ')}" for name, share in parts if share >= 0.005)
    verdict = (found.one_more or "").replace("_", " ")
    lines.append(
        f"One more rank at {last}: {verdict}; of its time {format_share(found.parts['useful'])} is useful"
        + (f", {taken}" if taken else "")
    )
    varied = {point.ranks: point.cv for point in found.points if point.cv is not None}
    if len(varied) > 1:
        lines.append("Variation of steps: " + ", ".join(f"{_percent(cv)} at {ranks}" for ranks, cv in varied.items()))
    lines.append("Models: " + "; ".join(_models(found)))
    lines += _changes(found.what_ifs)
    lines += _energy(found)
    return [*lines, _assumed(found), _next(found)]


def _warnings(found: "Answer") -> Iterator[str]:
    ensemble = found.ensemble
    missed = ensemble.worst_backtest if ensemble else None
    if ensemble and missed is not None:
        yield (
            f"warning: from the smaller scales the best model missed the measured {ensemble.largest.ranks} ranks by"
            f" {_gain(1 + missed)}; what came in there may grow, and the band is wide for it"
        )
    refusal = next((row.refusal for row in found.plan if row.refusal), None)
    if refusal:
        yield f"warning: {refusal}"


def _hosts(found: "Answer") -> Iterator[str]:
    """Which scales show which links."""
    boundary = found.ensemble.boundary if found.ensemble else None
    if boundary is None or boundary.inside is None or boundary.across is None:
        return
    how = "" if boundary.is_named else " (told from how much longer the same bytes take there: no run names its hosts)"
    inside = plural(boundary.inside, "rank")
    yield (
        f"Hosts: up to {inside} inside one, from {boundary.across} on across{how}; beyond them the curve"
        " follows the links between hosts"
    )


def _slowest(found: "Answer") -> Iterator[str]:
    """What order statistics of the largest run make of more ranks."""
    largest = found.ensemble.largest if found.ensemble else None
    if largest is None or 1 not in largest.lateness:
        return
    said = [
        f"{format_ns(1e9 * late.value_s)} [{format_ns(1e9 * late.low_s)}, {format_ns(1e9 * late.high_s)}]"
        f" at {factor * largest.ranks}"
        for factor, late in sorted(largest.lateness.items())
    ]
    yield f"Slowest rank after the mean one, in the forecast: {', '.join(said)}; a fault that no run had is not in it"


def _next(found: "Answer") -> str:
    """The run that would narrow the forecast most."""
    ensemble, best = found.ensemble, found.next_measurement
    assert ensemble is not None  # noqa: S101 - asked for only then
    if ensemble.boundary.refusal(ensemble.furthest):
        return (
            f"Next: run {2 * ensemble.largest.ranks} ranks on two hosts or more; nothing shows the links between them"
        )
    if best is None:
        return "Next: run a third scale; two test no model"
    if best.width >= best.width_now:
        longer = max(ensemble.points, key=lambda point: point.error or 0.0)
        return f"Next: record more iterations at {longer.ranks} ranks, the point of the largest error; models agree"
    return (
        f"Next: measure at {best.ranks} ranks; models at {ensemble.furthest} differ by a factor of"
        f" {best.width_now:.2f}, then by {best.width:.2f}"
    )


def one_scale_lines(found: "Answer") -> list[str]:
    """Terms and outlook of a single scale, without a curve."""
    point = found.points[0]
    lines = [f"No scaling curve: only one scale was measured, {point.ranks} rank{'s' * (point.ranks != 1)}."]
    pace = point.throughput * (found.assumed.batch or 1)
    steady = "" if point.cv is None else f", variation {format_share(point.cv)}"
    lines.append(f"Measured: {_pace(pace)} {_rate(found)}{steady}")
    if found.runs:
        tables = found.runs[0].tables
        terms = [f"{term['term'].replace('_', ' ')} {format_share(term['share'])}" for term in tables["terms"][:6]]
        lines.append("Where the time goes: " + ", ".join(terms))
        lines += _outlook(tables["outlook"])
        lines += [row["meaning"] for row in tables["stability"] if row["measure"] == "verdict"]
        lines += _changes(found.what_ifs)
    lines.append("For a curve, measure:")
    lines += [f"  {item}. {why}" for item, why in found.needs]
    lines.append(_assumed(found))
    return lines


def _table(found: "Answer") -> Iterator[str]:
    has_job = found.assumed.samples is not None
    yield (
        f"{'ranks':>7}  {'throughput':>10}  {'band (90 %)':>17}  {'efficiency':>10}  {'marginal':>8}  {'per 1M':>9}"
        + (f"  {'job hours':>22}  {'job cost':>10}" if has_job else f"  {'work':>5}")
    )
    rows = found.plan if len(found.plan) <= _MOST_ROWS else found.plan[: -_MOST_ROWS - 1 : -1][::-1]
    for row in rows:
        mark = "*" if row.extrapolated else " "
        band = "" if row.throughput_low is None else f"{_short(row.throughput_low)} to {_short(row.throughput_high)}"
        cost = None if row.cost_per_sample is None else row.cost_per_sample * 1e6
        text = (
            f"{row.ranks:>6}{mark}  {_short(row.throughput):>10}  {band:>17}  {_percent(row.efficiency):>10}  "
            f"{_percent(row.marginal_efficiency):>8}  {_short(cost):>9}"
        )
        yield text + (f"  {_hours(row):>22}  {_short(row.cost):>10}" if has_job else f"  {_percent(row.work_share):>5}")
    yield "      * extrapolated; beyond four times the largest measured scale only the band is given"


def _hours(row: "PlanRow") -> str:
    if row.hours_low is None and row.hours is None:
        return "—"
    band = "" if row.hours_low is None else f" [{_short(row.hours_low)}, {_short(row.hours_high)}]"
    return f"{_short(row.hours)}{band}"


def _knee(knee: "Limit") -> str:
    name = _KNEES[knee.name]
    if knee.ranks is None and knee.low is None:
        return f"{name}: not in range"
    low = "?" if knee.low is None else str(knee.low)
    high = "beyond" if knee.high is None else str(knee.high)
    at = "beyond range" if knee.ranks is None else f"from {knee.ranks}"
    return f"{name} {at} [{low}, {high}]"


def _models(found: "Answer") -> Iterator[str]:
    for member in found.ensemble.members if found.ensemble else ():
        error = "untested" if member.backtest is None else f"{100 * member.backtest:+.1f} %"
        weight = f"weight {format_share(member.weight)}" if member.is_used else "left out"
        yield f"{member.model.name} {error}, {weight}"


def _changes(changes: "list[WhatIfRow]") -> Iterator[str]:
    worth = [change for change in changes if change.throughput_ratio >= 1.001][:_MOST_CHANGES]
    for change in worth:
        band = "" if change.low is None or change.high is None else f" [{_gain(change.low)}, {_gain(change.high)}]"
        gpus = "more GPUs than any in range" if change.gpus is None else f"{_short(change.gpus)} GPUs"
        money = "" if change.worth_per_hour is None else f", {_short(change.worth_per_hour)} an hour"
        pays = ""
        if change.kind == "faster_fabric":
            pays = f"; pays while it adds less than {change.break_even_price:.2g} to a GPU-hour"
        yield f"  {change.change}: {_gain(change.throughput_ratio)}{band}, worth {gpus}{money}{pays}"


def _outlook(rows: list[dict[str, object]]) -> Iterator[str]:
    slowest = []
    for row in rows:
        if row["slowest_ns"] is not None:
            band = f"[{format_ns(float(str(row['low_ns'])))}, {format_ns(float(str(row['high_ns'])))}]"
            slowest.append(f"{row['ranks']} ranks {format_ns(float(str(row['slowest_ns'])))} {band}")
    if slowest:
        yield "Slowest rank after the mean one: " + "; ".join(slowest)
        last = rows[-1]
        yield (
            f"The slowest of {last['ranks']} ranks is set by the {100 * float(str(last['step_quantile'])):.2f} %"
            f" quantile of one rank; {format_share(float(str(last['persistent_share'])))} of the spread between ranks"
            " persists"
        )
        if last["refusal"]:
            yield f"No number beyond that: {last['refusal']}"


def _energy(found: "Answer") -> Iterator[str]:
    shown = [row for row in found.plan if row.energy_per_sample_j is not None]
    if shown:
        said = ", ".join(f"{_short(row.energy_per_sample_j)} at {row.ranks}" for row in shown[:_MOST_ROWS])
        yield f"Energy, J for one unit of throughput: {said}"


def _assumed(found: "Answer") -> str:
    assumed = found.assumed
    low, high = found.sensitivity["mtbf_hours"]
    at = plural(found.points[-1].ranks, "rank")
    return (
        f"Assumed: {assumed.price:g} {assumed.currency or ''}".rstrip()
        + f" a GPU-hour, {assumed.gpus_per_rank} GPU a rank, a failure every"
        f" {assumed.mtbf_hours:g} GPU-hours (half or twice that: {low * 1e6:.3g} or {high * 1e6:.3g} for 1M"
        f" {found.unit} at {at}), checkpoint {assumed.checkpoint_s:g} s, restart {assumed.restart_s:g} s"
    )


def _rate(found: "Answer") -> str:
    """What the throughput counts; iterations of all ranks add up."""
    return "samples/s" if found.unit == "samples" else "(iterations x ranks)/s"


def _pace(pace: float) -> str:
    return f"{pace:,.0f}" if pace >= 10_000 else f"{pace:.4g}"


def _gain(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _percent(share: float | None) -> str:
    return "—" if share is None else format_share(share)


def _short(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
