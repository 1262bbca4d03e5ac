"""What a rule for a finding is. In: nothing. Out: the type that each file of `findings/` exposes as `RULE`; all rules.

A rule finds configuration evidence in what logs said; it measures no delay. Its query gives one row a finding:
`run_id`, `subject_kind`, `subject`, `source_id` and `line` (the first line that shows it), `citation_count` (how many
do), and whatever its sentence quotes; `severity` where the rule's own does not always apply.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from traceforge.errors import PluginError
from traceforge.registry import discover

SEVERITIES = ("problem", "notice")


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding.

    Attributes:
        mode: failure mode it may lead to, as in attribute.delay.mode.
        severity: `problem` (wrong on every machine we know of) or `notice` (may be meant, or be the best there is).
        summary: one sentence, a format of the query's columns; `{share:share}` is per cent, `{hosts:count host}` is
            `1 host` or `2 hosts`.
        next_step: what an engineer does next.
        query: SQL over raw.nccl_* and fabric.*.
    """

    mode: str
    severity: str
    summary: str
    next_step: str
    query: str


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by name.

    Raises:
        PluginError: a file of `findings/` exposes something else.
    """
    found: dict[str, Rule] = {}
    for name, plugin in discover("traceforge.fabric.findings", "RULE").items():
        if not isinstance(plugin, Rule) or plugin.severity not in SEVERITIES:
            raise PluginError("RULE is not a Rule of a known severity", where=f"traceforge.fabric.findings.{name}")
        found[name] = plugin
    return MappingProxyType(found)
