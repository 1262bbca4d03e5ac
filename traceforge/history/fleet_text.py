"""What a fleet says, in words. In: `Fleet`. Out: sentences for the page and for a terminal."""

from traceforge.check.documents import format_value
from traceforge.check.metrics import METRICS
from traceforge.history.fleet import ChangeOfSeries, Fleet
from traceforge.history.suspects import Suspect
from traceforge.report.answer_blocks import Advice
from traceforge.report.formatting import capital, clean, count, listed, percent, plural, probability, rank_list, spaced
from traceforge.thresholds import history as thresholds

_NAMES = 3
_METRICS = {
    "iteration_ms": "iteration time",
    "p95_ms": "p95 of iterations",
    "exposed_communication_share": "exposed communication",
    "delay_share": "delay above reference",
}


def metric_name(metric: str) -> str:
    """A watched metric in words."""
    return _METRICS.get(metric) or spaced(metric)


def value_text(metric: str, value: float) -> str:
    """A value in the unit of its metric."""
    return format_value(METRICS[metric], value)


def moved(metric: str, change: ChangeOfSeries) -> str:
    """How far a metric moved: of shares in points, else relative to what it was."""
    step = change.step
    if METRICS[metric].is_share or not step.before:
        return f"{100 * step.rise:+.1f} points".replace("-", "\N{MINUS SIGN}")
    return f"{'+' if step.rise > 0 else chr(0x2212)}{percent(abs(step.rise / step.before))}"


def change_text(metric: str, change: ChangeOfSeries) -> str:
    """A change in one sentence, without a full stop."""
    step = change.step
    word = "worse" if change.is_worse else "better"
    text = (
        f"{word} by {moved(metric, change)[1:]} since run {clean(change.first.run_name)}, from "
        f"{value_text(metric, step.before)} to {value_text(metric, step.after)}"
    )
    before, after = change.before.commit_id, change.first.commit_id
    if before is not None and after is not None:
        text += f", commit {clean(after)}" if before != after else f", with the same commit {clean(after)}"
    if change.hosts_came:
        text += f", where {listed([clean(one) for one in change.hosts_came], _NAMES)} came in"
    return text


def suspect_text(one: Suspect) -> str:
    """A host or NIC that stands out, in a sentence or two."""
    kind = "NIC" if one.kind == "nic" else "Host"
    text = (
        f"{kind} {clean(one.name)} is accused in {count(len(one.guilty_jobs))} of its {plural(one.jobs, 'run')}, "
        f"more than "
        f"chance allows ({probability(one.corrected_p_value)}, corrected for all that were looked at; by chance "
        f"{one.expected:.1f})."
    )
    if one.always_ranks:
        ranks = f"rank{'s' if len(one.always_ranks) > 1 else ''} {rank_list(one.always_ranks)}"
        text += f" It held {ranks} in all of them: whether it is the host or what these ranks do cannot be told apart."
    return text


def answer_state(fleet: Fleet) -> str:
    """`finding`, `nothing_significant`, `unsure` or `cannot_be_known`."""
    if fleet.named or any(change.is_recent for _, change in fleet.regressions):
        return "finding"
    judged = [series.is_judged for series in fleet.series]
    if not any(judged):
        return "cannot_be_known"
    return "nothing_significant" if all(judged) and fleet.suspects and not fleet.hostless else "unsure"


def answer(fleet: Fleet) -> tuple[str, str]:
    """The answer in one sentence, and what it rests on."""
    named = fleet.named
    recent = [(series, change) for series, change in fleet.regressions if change.is_recent]
    judged, watched = sum(one.is_judged for one in fleet.series), len(fleet.series)
    rests = (
        f"{plural(fleet.runs, 'run')} of {plural(fleet.jobs, 'job')}; {count(judged)} of {count(watched)} series of "
        f"metrics are long enough to be judged; a host is named where p < {thresholds.GUILTY_P_VALUE:g}, corrected for "
        "all that were looked at."
    )
    accused = sum(bool(one.guilty_jobs) for one in fleet.suspects)
    if fleet.suspects:
        were = "was" if accused == 1 else "were"
        rests += f" {count(accused)} of {count(len(fleet.suspects))} hosts and NICs {were} accused in a run."
    else:
        rests += " No trace names a host, so that none can be judged."
    sentences = [suspect_text(one).partition(", corrected")[0] + ")." for one in named[:_NAMES]]
    sentences += [
        f"{capital(metric_name(series.metric))} of {clean(series.title)} got {change_text(series.metric, change)}."
        for series, change in recent[:_NAMES]
    ]
    if sentences:
        return " ".join(sentences), rests
    hosts = "no host stands out" if fleet.suspects else "no trace names a host"
    if not judged:
        return f"No series is long enough to tell a lasting change, and {hosts}.", rests
    return f"{capital(hosts)}, and no metric got lastingly worse in the last runs.", rests


def next_steps(fleet: Fleet) -> list[Advice]:
    """What to do about it."""
    found = []
    for one in fleet.named[:_NAMES]:
        what = (
            "its NIC's counters and cable"
            if one.kind == "nic"
            else "its clocks, thermals, NICs and what else runs there"
        )
        found.append(Advice(f"Take {clean(one.name)} out of the pool and test it: {what}."))
        if one.always_ranks:
            found.append(Advice(f"Give rank {one.always_ranks[0]} another host once: if it stays slow, it is no host."))
    for series, change in fleet.regressions[:_NAMES]:
        if change.is_recent:
            found.append(
                Advice(
                    f"Compare run {clean(change.before.run_name)} with run {clean(change.first.run_name)} of "
                    f"{clean(series.job)}.",
                    "traceforge compare BEFORE.duckdb AFTER.duckdb",
                )
            )
    return found


def fleet_lines(fleet: Fleet) -> list[str]:
    """The answer for a terminal."""
    headline, explanation = answer(fleet)
    lines = [f"FLEET: {headline}", f"  {explanation}"]
    lines += [f"  suspect: {suspect_text(one)}" for one in fleet.named]
    for series, change in fleet.regressions:
        since = "new" if change.is_recent else "earlier"
        lines.append(
            f"  {since}: {metric_name(series.metric)} of {clean(series.title)}: {change_text(series.metric, change)}"
        )
    return lines
