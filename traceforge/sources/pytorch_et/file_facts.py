"""What a trace says about itself. In: the members beside its nodes. Out: rows of raw.chakra_file, known versions.

Idea: PyTorch states its schema, process, local wall time, and start and finish in ms of the host's steady clock, which
are not comparable between hosts or with a timeline. All members are kept as JSON text.
Seen: 1.0.1 to 1.1.1. Not handled: time zones (none is written).
"""

import re
from dataclasses import dataclass, field

import msgspec

from traceforge.sources.pytorch_et.issues import IssueLog
from traceforge.sources.pytorch_et.lenient import integer_of

_KNOWN_SCHEMAS = re.compile(r"1\.0\.[1-4](?:-chakra\.0\.0\.4)?|1\.1\.[01](?:-chakra\.(?:0\.0\.4|1\.0\.0))?")
_NS_PER_MS = 1_000_000
_LIMIT = 2**63


@dataclass(slots=True)
class Part:
    """One trace of a file.

    Attributes:
        has_metadata: whether it begins with metadata.
        facts: members beside the nodes, by name.
        node_count: nodes stored.
        has_times: whether a node has a start (an ET+).
        rank: global rank, where a member or a call states it.
        world_size: ranks of the job, where the default group states it.
    """

    has_metadata: bool = False
    facts: dict[str, object] = field(default_factory=dict)
    node_count: int = 0
    has_times: bool = False
    rank: int | None = None
    world_size: int | None = None

    def row(self, number: int, is_complete: bool) -> dict[str, object]:
        """The row of raw.chakra_file."""
        return {
            "part": number,
            "format": "pytorch_et_plus" if self.has_times else "pytorch_et",
            "schema_version": _text(self.facts.get("schema")),
            "has_metadata": self.has_metadata,
            "is_complete": is_complete,
            "node_count": self.node_count,
            "rank": self.rank,
            "process_id": _integer(self.facts.get("pid"), 1),
            "recorded_at": _text(self.facts.get("time")),
            "raw_start_ns": _integer(self.facts.get("start_ts"), _NS_PER_MS),
            "raw_finish_ns": _integer(self.facts.get("finish_ts"), _NS_PER_MS),
            "time_unit": "us" if self.has_times else None,
            "metadata": msgspec.json.encode(self.facts).decode("utf-8", "replace"),
        }

    def check_schema(self, issues: IssueLog) -> None:
        """Say so where the schema is missing or was not seen before."""
        schema = _text(self.facts.get("schema"))
        if schema is None:
            issues.add("no_schema")
        elif not _KNOWN_SCHEMAS.fullmatch(schema):
            issues.add("unknown_schema", because=schema[:40])


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _integer(value: object, factor: int) -> int | None:
    number = integer_of(value)
    return number * factor if number is not None and abs(number * factor) < _LIMIT else None
