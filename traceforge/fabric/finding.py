"""Findings from configuration evidence. Runs the queries of `findings/`; fills fabric.finding.

Idea: a rule is a query and a sentence; problems come before notices, and errors before settings. Each finding cites
the line that shows it.
Not handled: whether anything waits for it (stage attribute joins findings with measured delays).
"""

from collections import Counter
from pathlib import Path
from string import Formatter
from typing import Any

import polars as pl

from traceforge.fabric.finding_rule import SEVERITIES, FindingRule, finding_rules
from traceforge.store.database import Store
from traceforge.units import format_share, plural

_CITED = """
SELECT * EXCLUDE (first, citation_count), first[1] AS source_id, first[2] AS line,
  CAST(citation_count AS BIGINT) AS citation_count
FROM (
{query}
)
ORDER BY source_id, line, CAST(subject AS VARCHAR)
"""
# Timelines and execution traces hold no line that a finding could cite.
_WITH_CONFIGURATION = """
SELECT COUNT(*) FROM meta.source ANTI JOIN raw.profile USING (source_id) WHERE kind NOT IN ('chakra', 'pytorch_et')
"""
_MAX_LISTED = 12
_CONFIGURATION = "configuration evidence"
_COUNT = "count "


class _SummaryFormatter(Formatter):
    """Formats with shares and counted nouns."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "share":
            return format_share(value)
        if format_spec.startswith(_COUNT):
            return plural(value, format_spec.removeprefix(_COUNT))
        return str(super().format_field(value, format_spec))


_FORMATTER = _SummaryFormatter()


def rows(store: Store, folder: Path | None = None) -> pl.DataFrame:
    """The findings of all runs, by the rules of this package or of another folder."""
    rules = finding_rules(folder) if store.value(_WITH_CONFIGURATION) else {}
    found = [
        {"code": code, "mode": rule.mode, **_row(rule, row)}
        for code, rule in rules.items()
        for row in store.records(_CITED.format(query=rule.query))
    ]
    found.sort(key=_order)
    count: Counter[int] = Counter()
    for row in found:
        row["finding_id"] = count[row["run_id"]]
        count[row["run_id"]] += 1
    return pl.DataFrame(found, infer_schema_length=None)


def _order(row: dict[str, Any]) -> tuple[int, int, bool, int, str]:
    """Problems first; of these what went wrong, such as an error message, before what may."""
    may_only = row["basis"] == _CONFIGURATION
    return row["run_id"], SEVERITIES.index(row["severity"]), may_only, -row["citation_count"], row["code"]


def _row(rule: FindingRule, row: dict[str, Any]) -> dict[str, Any]:
    ranks = sorted({rank for rank in row.get("ranks") or () if rank is not None})
    quoted = {name: _listed(value) if isinstance(value, list) else value for name, value in row.items()}
    if isinstance(row.get("hosts"), int):
        several = f"{plural(row['hosts'], 'host')}, such as {row['subject']}"
        quoted["on_hosts"] = f"host {row['subject']}" if row["hosts"] == 1 else several
    quoted["of_ranks"] = f" ({'rank' if len(ranks) == 1 else 'ranks'} {_listed(ranks)})" if ranks else ""
    return {
        "run_id": row["run_id"],
        "severity": row.get("severity") or rule.severity,
        "subject_kind": row["subject_kind"],
        "subject": str(row["subject"]),
        "ranks": ranks,
        "summary": _FORMATTER.format(rule.summary, **quoted),
        "next_step": row.get("next_step") or rule.next_step,
        "basis": row.get("basis") or _CONFIGURATION,
        "source_id": row["source_id"],
        "line": row["line"],
        "citation_count": row["citation_count"],
    }


def _listed(values: list[object]) -> str:
    """Values one after another, at most a dozen; consecutive whole numbers as `4–7`."""
    if values and all(isinstance(value, int) for value in values):
        values = list(_ranges([value for value in values if isinstance(value, int)]))
    shown = ", ".join(str(value) for value in values[:_MAX_LISTED])
    return shown + (f" and {len(values) - _MAX_LISTED} more" if len(values) > _MAX_LISTED else "")


def _ranges(numbers: list[int]) -> list[str]:
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return [str(own[0]) if len(own) == 1 else f"{own[0]}\N{EN DASH}{own[-1]}" for own in ranges]
