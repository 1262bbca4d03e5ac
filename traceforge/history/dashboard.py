"""A dashboard for Grafana. In: nothing. Out: JSON to import, over the metrics of `openmetrics`.

The data source is chosen at import; jobs are a variable of the page.
"""

from collections.abc import Mapping

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_JOB = '{job=~"$job"}'
_EXPOSED = f"traceforge_exposed_communication_ratio{_JOB}"
_WIDTH, _HEIGHT = 12, 8
_PANELS = (
    ("Iteration time", "timeseries", "s", f"traceforge_iteration_seconds{_JOB}", "{{series}}"),
    ("Exposed communication", "timeseries", "percentunit", _EXPOSED, "{{series}}"),
    ("Regressions in the last runs", "timeseries", "short", f"traceforge_regressions{_JOB}", "{{series}} {{metric}}"),
    (
        "GPU-hours lost a day, by cause", "timeseries", "short",
        f"sum by (cause) (traceforge_lost_gpu_hours_per_day{_JOB})", "{{cause}}",
    ),
    ("Hosts and NICs by jobs that accuse them", "table", "short", "topk(20, traceforge_guilty_jobs)", "{{name}}"),
    ("Hosts and NICs that chance does not explain", "table", "short", "traceforge_guilty_p_value < 0.01", "{{name}}"),
    ("Verdicts", "table", "short", f"sum by (verdict, confidence) (traceforge_verdict_runs{_JOB})", "{{verdict}}"),
    ("Runs", "stat", "short", "traceforge_runs", ""),
)  # fmt: skip


def dashboard() -> dict[str, object]:
    """The dashboard."""
    return {
        "title": "traceforge: training jobs",
        "uid": "traceforge-fleet",
        "schemaVersion": 39,
        "tags": ["traceforge"],
        "time": {"from": "now-30d", "to": "now"},
        "templating": {"list": [_data_sources(), _jobs()]},
        "panels": [_panel(place, *panel) for place, panel in enumerate(_PANELS)],
    }


def _data_sources() -> Mapping[str, object]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _jobs() -> Mapping[str, object]:
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(traceforge_verdict_runs, job)", "refId": "jobs"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(place: int, title: str, kind: str, unit: str, expression: str, legend: str) -> Mapping[str, object]:
    is_table = kind == "table"
    target = {
        "refId": "A",
        "datasource": _SOURCE,
        "expr": expression,
        "legendFormat": legend,
        "instant": is_table,
        "format": "table" if is_table else "time_series",
    }
    return {
        "id": place + 1,
        "title": title,
        "type": kind,
        "datasource": _SOURCE,
        "gridPos": {"x": _WIDTH * (place % 2), "y": _HEIGHT * (place // 2), "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [target],
    }
