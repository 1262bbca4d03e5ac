"""A fleet for a monitoring system. In: `Fleet`. Out: OpenMetrics text, without time stamps.

Scrapers read it as it is; the textfile collector of node_exporter reads it too, for which a file is replaced at once.
Values are those of the last run of each series; what was not measured has no sample.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceforge.check.metrics import METRICS
from traceforge.history.fleet import Fleet
from traceforge.history.suspects import Suspect

_SIGN = re.compile(r'[\\"\n]')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


class Family(NamedTuple):
    """A metric of the text: its name, what it means, and a label set and value a sample."""

    name: str
    about: str
    samples: Sequence[tuple[Mapping[str, str], float]]


def openmetrics(fleet: Fleet) -> str:
    """The text."""
    lines: list[str] = []
    for family in families(fleet):
        lines += [f"# HELP {family.name} {_escaped(family.about)}", f"# TYPE {family.name} gauge"]
        for labels, value in family.samples:
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{family.name}{{{shown}}} {value!r}" if shown else f"{family.name} {value!r}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def families(fleet: Fleet) -> list[Family]:
    """All metrics of the text, also those that have no sample in this fleet."""
    found = [
        Family("traceforge_runs", "Runs in the history.", [({}, float(fleet.runs))]),
        Family(
            "traceforge_verdict_runs",
            "Runs by verdict.",
            [
                ({"job": row["job"], "verdict": row["verdict"], "confidence": row["confidence"]}, float(row["runs"]))
                for row in fleet.verdicts
            ],
        ),
        Family(
            "traceforge_regressions",
            "Lasting changes for the worse that became certain in the last runs of a series.",
            _recent(fleet),
        ),
        Family(
            "traceforge_guilty_jobs",
            "Jobs that accuse a host or NIC.",
            [({"kind": one.kind, "name": one.name}, float(len(one.guilty_jobs))) for one in _accused(fleet)],
        ),
        Family(
            "traceforge_guilty_p_value",
            "Probability of being accused so often by chance, corrected for all hosts and NICs.",
            [({"kind": one.kind, "name": one.name}, one.corrected_p_value) for one in _accused(fleet)],
        ),
        Family(
            "traceforge_lost_gpu_hours_per_day",
            "GPU-hours above each run's own reference, a day of the job at the mean pace of its runs.",
            [
                ({name: row[name] for name in ("job", "mode", "cause")}, float(row["lost_gpu_hours_per_day"]))
                for row in fleet.losses
            ],
        ),
    ]
    return [*found, *_watched(fleet)]


def _accused(fleet: Fleet) -> list[Suspect]:
    return [one for one in fleet.suspects if one.guilty_jobs]


def _recent(fleet: Fleet) -> list[tuple[Mapping[str, str], float]]:
    return [
        (
            {"job": series.job, "series": series.title, "metric": series.metric},
            float(sum(change.is_worse and change.is_recent for change in series.changes)),
        )
        for series in fleet.series
        if series.is_judged
    ]


def _watched(fleet: Fleet) -> list[Family]:
    found: dict[str, Family] = {}
    for series in fleet.series:
        is_time = series.metric.endswith("_ms")
        name = f"traceforge_{series.metric.removesuffix('_ms').removesuffix('_share')}"
        name += "_seconds" if is_time else "_ratio"
        about = f"{METRICS[series.metric].about} Last run of the series."
        sample = ({"job": series.job, "series": series.title}, series.points[-1].value / (1e3 if is_time else 1.0))
        known = found.get(name, Family(name, about, ()))
        found[name] = Family(name, about, [*known.samples, sample])
    return list(found.values())


def _escaped(text: str) -> str:
    return _SIGN.sub(lambda match: _ESCAPES[match[0]], text)
