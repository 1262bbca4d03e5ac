"""Findings from configuration evidence. Runs the rules of `findings/`; fills fabric.finding.

Idea: a rule is a query and a sentence; problems come before notices, and each finding names the line that shows it.
Not handled: whether anything waits for it (stage attribute joins findings with measured delays).
"""

from string import Formatter
from typing import Any

import polars as pl

from traceforge.fabric.rule import SEVERITIES, Rule, rules
from traceforge.store.database import Store
from traceforge.units import format_share, plural

_SCHEMA: dict[str, pl.DataType] = {
    "run_id": pl.Int32(),
    "finding_id": pl.Int32(),
    "code": pl.String(),
    "mode": pl.String(),
    "severity": pl.String(),
    "subject_kind": pl.String(),
    "subject": pl.String(),
    "ranks": pl.List(pl.Int32),
    "summary": pl.String(),
    "next_step": pl.String(),
    "basis": pl.String(),
    "source_id": pl.Int32(),
    "line": pl.Int64(),
    "citation_count": pl.Int64(),
}
_MOST_SHOWN = 12
_COUNT = "count "


class _Sentences(Formatter):
    """Formats of sentences, with shares and counted nouns."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "share":
            return format_share(value)
        if format_spec.startswith(_COUNT):
            return plural(value, format_spec.removeprefix(_COUNT))
        return str(super().format_field(value, format_spec))


_SENTENCES = _Sentences()


def rows(store: Store) -> pl.DataFrame:
    """The findings of all runs."""
    found = [
        {"code": code, "mode": rule.mode, "next_step": rule.next_step, **_row(rule, row)}
        for code, rule in rules().items()
        for row in store.query(rule.query).to_dicts()
    ]
    found.sort(key=lambda row: (row["run_id"], SEVERITIES.index(row["severity"]), -row["citation_count"], row["code"]))
    count: dict[int, int] = {}
    for row in found:
        row["finding_id"] = count[row["run_id"]] = count.get(row["run_id"], -1) + 1
    return pl.DataFrame(found, schema=_SCHEMA, orient="row") if found else pl.DataFrame(schema=_SCHEMA)


def _row(rule: Rule, row: dict[str, Any]) -> dict[str, Any]:
    ranks = sorted({rank for rank in row.get("ranks") or () if rank is not None})
    told = {name: _listed(value) if isinstance(value, list) else value for name, value in row.items()}
    told["of_ranks"] = f" (ranks {_listed(ranks)})" if ranks else ""
    return {
        "run_id": row["run_id"],
        "severity": row.get("severity") or rule.severity,
        "subject_kind": row["subject_kind"],
        "subject": str(row["subject"]),
        "ranks": ranks,
        "summary": _SENTENCES.format(rule.summary, **told),
        "basis": row.get("basis") or "configuration evidence",
        "source_id": row["source_id"],
        "line": row["line"],
        "citation_count": row["citation_count"],
    }


def _listed(values: list[object]) -> str:
    """Values one after another; runs of whole numbers as `4-7`; cut after a dozen."""
    if values and all(isinstance(value, int) for value in values):
        values = list(_runs([value for value in values if isinstance(value, int)]))
    shown = ", ".join(str(value) for value in values[:_MOST_SHOWN])
    return shown + (f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else "")


def _runs(numbers: list[int]) -> list[str]:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
