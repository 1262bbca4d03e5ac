"""Configuration findings as `.sql` files. In: the folder `findings/`. Out: one `FindingRule` per file.

To add a finding, add one file `findings/NAME.sql`; NAME becomes `fabric.finding.code`. A finding is configuration
evidence from logs and measures no delay. The head comment says what a person needs, the query finds the rows:

    -- A NIC copies through host memory although it could reach the GPU.
    -- Mode: gpu_locality
    -- Severity: problem
    -- Summary: {edges:count connection} on {subject} copy through host memory{of_ranks}.
    -- Next step: Load nvidia-peermem,
    --   or use DMA-BUF.
    SELECT run_id, 'host' AS subject_kind, source_host AS subject, COUNT(*) AS edges, ...

`Mode` is the failure mode it may lead to, as in attribute.delay.mode. `Severity` is `problem` (wrong on every machine
we know of) or `notice` (may be intended, or the best there is). `Summary` is a format of the query's columns:
`{share:share}` is per cent, `{lines:count line}` is `1 line` or `2 lines`, `{on_hosts}` is `host a` or
`2 hosts, such as a`, `{of_ranks}` names the ranks, if any.
The query reads raw.* and fabric.* and returns one row per finding:

    run_id, subject_kind, subject   as in fabric.finding
    first                           (source_id, line) of the first line that shows it: MIN((source_id, line))
    citation_count                  how many lines show it
    ranks, basis, severity,         optional; NULL or absent for none, `configuration evidence`, and what the file says
    next_step
    ...                             whatever the summary quotes
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from traceforge.errors import PluginError

SEVERITIES = ("problem", "notice")
_FIELDS = ("Mode", "Severity", "Summary", "Next step")
_FIELD = re.compile(rf"-- ({'|'.join(_FIELDS)}): (.*)")
_CONTINUATION = "--   "


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A kind of finding; the fields are those of its file."""

    mode: str
    severity: str
    summary: str
    next_step: str
    query: str


@cache
def finding_rules(folder: Path | None = None) -> Mapping[str, FindingRule]:
    """All rules by name, in alphabetical order.

    Args:
        folder: with one `.sql` file per rule; None for those of this package.

    Raises:
        PluginError: a file does not have the form above.
    """
    folder = folder or Path(str(resources.files("traceforge.fabric"))) / "findings"
    return {path.stem: parse_rule(path.read_text(encoding="utf-8"), path.name) for path in sorted(folder.glob("*.sql"))}


def parse_rule(text: str, origin: str) -> FindingRule:
    """The rule of a file.

    Raises:
        PluginError: the head comment lacks a field, or the severity is unknown.
    """
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if match := _FIELD.fullmatch(line):
            name = match[1]
            fields[name] = match[2].strip()
        elif name and line.startswith(_CONTINUATION):
            fields[name] += f" {line.removeprefix(_CONTINUATION).strip()}"
        else:
            name = ""
        if not line.startswith("--"):
            break
    for field in _FIELDS:
        if not fields.get(field):
            raise PluginError(f"the head comment lacks `-- {field}: ...`", where=origin)
    if fields["Severity"] not in SEVERITIES:
        raise PluginError(f"the severity is not one of {', '.join(SEVERITIES)}", where=origin)
    mode, severity, summary, next_step = (fields[field] for field in _FIELDS)
    return FindingRule(mode, severity, summary, next_step, text.strip().rstrip(";"))
