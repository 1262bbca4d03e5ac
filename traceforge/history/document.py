"""A fleet for other programs. In: `Fleet`. Out: JSON values; `schema_version` rises when a key goes or is renamed."""

from dataclasses import asdict

from traceforge.history.fleet import ChangeOfSeries, Fleet, Series
from traceforge.history.fleet_text import answer, answer_state
from traceforge.history.suspects import Suspect


def fleet_document(fleet: Fleet) -> dict[str, object]:
    """What `history report --json` and `history check --json` write."""
    headline, _ = answer(fleet)
    return {
        "state": answer_state(fleet),
        "headline": headline,
        "runs": fleet.runs,
        "jobs": fleet.jobs,
        "series": [_series(one) for one in fleet.series],
        "suspects": [_suspect(one) for one in fleet.suspects if one.guilty_jobs],
        "members": len(fleet.suspects),
        "verdicts": list(fleet.verdicts),
        "lost_gpu_hours": list(fleet.losses),
    }


def _series(series: Series) -> dict[str, object]:
    return {
        "job": series.job,
        "series": series.title,
        "metric": series.metric,
        "runs": len(series.points),
        "is_judged": series.is_judged,
        "latest": series.points[-1].value,
        "smallest_change_that_would_show": series.sight,
        "changes": [_change(change) for change in series.changes],
    }


def _change(change: ChangeOfSeries) -> dict[str, object]:
    return {
        "first_run": change.first.run_name,
        "last_run_before": change.before.run_name,
        "found_with_run": change.found.run_name,
        "commit": change.first.commit_id,
        "commit_before": change.before.commit_id,
        "before": change.step.before,
        "after": change.step.after,
        "spread": change.step.spread,
        "is_worse": change.is_worse,
        "is_recent": change.is_recent,
        "hosts_came": list(change.hosts_came),
        "hosts_went": list(change.hosts_went),
    }


def _suspect(one: Suspect) -> dict[str, object]:
    return {
        **asdict(one),
        "guilty_jobs": list(one.guilty_jobs),
        "always_ranks": list(one.always_ranks),
        "is_named": one.is_named,
    }
