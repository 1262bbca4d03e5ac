"""The summary for machines: small, stable, comparable between runs. In: a context. Out: JSON values.

Durations are whole ns, shares have four decimals. `schema_version` rises when a key is renamed or removed.
"""

from traceforge.compare import Change, Comparison
from traceforge.report.comparison_words import FAMILY_TITLES
from traceforge.report.context import Context
from traceforge.report.diagnosis import Finding
from traceforge.report.palette import PHASES
from traceforge.report.words import clean

SCHEMA_VERSION = 1
_DECIMALS = 4
_MOST_ENTRIES = 20

Json = dict[str, object]


def summarise(context: Context) -> Json:
    """The summary of a run."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": _run(context),
        "verdict": _verdict(context),
        "findings": [_finding(finding) for finding in context.diagnosis.findings[:_MOST_ENTRIES]],
        "iterations": _iterations(context),
        "phase_shares": _phase_shares(context),
        "trust": _trust(context),
        "issues": _issues(context),
        "replay": _replay(context),
        "forecast": _forecast(context),
        "fabric": _fabric(context),
        **({} if context.comparison is None else {"comparison": comparison_document(context.comparison)}),
    }


def comparison_document(comparison: Comparison) -> Json:
    """A comparison; the significant rows and the largest others of each family, times in whole ns."""
    return {
        "baseline": {"run": clean(comparison.before.run_name), "iterations": comparison.before.iterations},
        "run": {"run": clean(comparison.after.run_name), "iterations": comparison.after.iterations},
        "iteration": _change(comparison.iteration),
        "slower_share": _share(comparison.slower_share),
        "changes": [_change(change) for family in FAMILY_TITLES for change in comparison.of(family)[:_MOST_ENTRIES]],
        "not_comparable_by": [
            {"field": o.field, "baseline": clean(o.before), "run": clean(o.after), "why": o.why}
            for o in comparison.objections
        ],
    }


def _change(change: Change) -> Json:
    return {
        "family": change.family,
        "name": clean(change.name),
        "baseline_ns": _whole(change.before_ns),
        "run_ns": _whole(change.after_ns),
        "difference_ns": _whole(change.difference_ns),
        "difference_low_ns": _whole(change.low_ns),
        "difference_high_ns": _whole(change.high_ns),
        "p_value": change.p_value,
        "chance": change.p_value,  # the former name, for one version
        "significant": change.is_significant,
        "below_resolution": change.below_resolution,
    }


def _run(context: Context) -> Json:
    job = context.job
    return {
        "name": job.name,
        "world_size": job.world_size,
        "ranks": len(job.ranks),
        "hosts": len(job.hosts),
        "files": sum(source.used_files for source in job.sources),
    }


def _verdict(context: Context) -> Json | None:
    verdict = context.diagnosis.verdict
    if verdict is None:
        return None
    return {
        "kind": verdict.kind,
        "headline": verdict.headline,
        "confidence": verdict.confidence,
        "next_step": verdict.next_step,
    }


def _finding(finding: Finding) -> Json:
    return {
        "mode": finding.mode,
        "cause": finding.cause,
        "subject_kind": finding.subject_kind,
        "subject": finding.subject,
        "delay_ns_per_iteration": _whole(finding.delay_ns),
        "delay_low_ns": _whole(finding.low_ns),
        "delay_high_ns": _whole(finding.high_ns),
        "share": _share(finding.share),
        "confidence": finding.confidence,
        "gain_if_fixed": _share(finding.gain_if_fixed),
        "first_iteration": finding.first_iteration,
        "last_iteration": finding.last_iteration,
        "pattern": finding.pattern,
    }


def _iterations(context: Context) -> Json:
    job = context.job
    return {
        "used": len(job.used),
        "all": len(job.iterations),
        "mean_ns": _whole(job.mean_ns),
        "p50_ns": job.quantile_ns(0.50),
        "p95_ns": job.quantile_ns(0.95),
        "p99_ns": job.quantile_ns(0.99),
        "variation": _share(job.variation),
    }


def _phase_shares(context: Context) -> Json:
    rows = context.rows("sections/steps")
    totals = {phase: sum(row["iterations"] * row[f"{phase}_ns"] for row in rows) for phase in PHASES}
    whole = sum(totals.values())
    return {phase: _share(total / whole) for phase, total in totals.items()} if whole else {}


def _trust(context: Context) -> Json:
    trust = context.trust
    statuses = sorted({clock.status for clock in trust.clocks})
    return {
        "clocks": {status: sum(clock.status == status for clock in trust.clocks) for status in statuses},
        "largest_residual_ns": _whole(trust.largest_residual_ns),
        "collectives": trust.collectives,
        "collectives_complete": trust.complete,
        "events": trust.events,
        "events_lost": trust.lost_events,
        "unexplained": _share(trust.unexplained),
    }


def _issues(context: Context) -> list[Json]:
    return [
        {"code": issue.code, "severity": issue.severity, "count": issue.count, "lost_events": issue.lost_events}
        for issue in context.trust.issues[:_MOST_ENTRIES]
    ]


def _replay(context: Context) -> list[Json]:
    return [
        {
            "policy": clean(row["policy"], 80),
            "parameters": clean(row["parameters"] or "", 160),
            "verdict": row["verdict"],
            "throughput_ratio": _share(row["throughput_ratio"]),
            "gain_ceiling": _share(row["gain_ceiling"]),
        }
        for row in context.rows("sections/pacing")[:_MOST_ENTRIES]
    ]


def _forecast(context: Context) -> Json:
    needs = context.rows("sections/scaling_needs")
    return {
        "refused": not any(row["extrapolated"] for row in context.rows("sections/scaling")),
        "needs": [clean(need["item"], 160) for need in needs[:_MOST_ENTRIES]],
    }


def _fabric(context: Context) -> Json:
    facts = context.rows("sections/fabric")[0]
    return {
        "processes": facts["processes"],
        "communicators": facts["communicators"],
        "findings": [
            {
                "code": row["code"],
                "severity": row["severity"],
                "subject_kind": row["subject_kind"],
                "subject": clean(row["subject"], 120),
                "basis": row["basis"],
                "path": clean(row["path"], 200),
                "line": row["line"],
            }
            for row in context.rows("sections/fabric_findings")[:_MOST_ENTRIES]
        ],
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _share(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DECIMALS)
