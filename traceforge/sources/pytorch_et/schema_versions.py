"""Versions of PyTorch's execution trace schema. In: a version as written. Out: findings about it.

Seen: 1.0.1 to 1.1.1; a later 1.x is read like the nearest known one, and noted as an issue.
"""

import re

from traceforge.reading.issue_log import IssueLog

_KNOWN = re.compile(r"1\.0\.[1-4](?:-chakra\.0\.0\.4)?|1\.1\.[01](?:-chakra\.(?:0\.0\.4|1\.0\.0))?")


def check_schema(schema: str | None, issues: IssueLog) -> None:
    """Say so where the schema is missing or was not seen before."""
    if schema is None:
        issues.add("no_schema")
    elif not _KNOWN.fullmatch(schema):
        issues.add("unknown_schema", because=schema[:40])
