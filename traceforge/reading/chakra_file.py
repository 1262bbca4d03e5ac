"""What a trace says about itself. In: members or attributes beside its nodes. Out: a row of raw.chakra_file.

Idea: PyTorch states its schema, process, local wall time, and start and finish in ms of the host's steady clock, which
are not comparable between hosts or with a timeline; its converter repeats them. All facts are kept as JSON text.
Not handled: time zones (none is written).
"""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from traceforge.errors import InputUnusableError
from traceforge.reading.numbers import int64_of, text_of
from traceforge.reading.stream import ByteStream

_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Part:
    """One trace of a file.

    Attributes:
        has_metadata: whether it begins with metadata.
        version: of the wire format, as a Chakra file's metadata states it.
        facts: what stands beside its nodes, by name.
        node_count: nodes stored.
        recorded_rank: global rank that its nodes state.
        world_size: ranks of the job, where the default group states it.
    """

    has_metadata: bool = False
    version: str | None = None
    facts: dict[str, object] = field(default_factory=dict)
    node_count: int = 0
    recorded_rank: int | None = None
    world_size: int | None = None

    @property
    def rank(self) -> int | None:
        """Global rank: as stated beside the nodes (the known writers do not), else as the nodes state it."""
        stated = self.facts.get("rank")
        return stated if isinstance(stated, int) and 0 <= stated < 2**31 else self.recorded_rank

    @property
    def schema(self) -> str | None:
        """Version of the schema of execution traces, as written."""
        return text_of(self.facts.get("schema"))

    def row(self, number: int, form: str, time_unit: str | None, is_complete: bool) -> dict[str, object]:
        """The row of raw.chakra_file."""
        return {
            "part": number,
            "format": form,
            "schema_version": self.schema,
            "wire_version": self.version,
            "has_metadata": self.has_metadata,
            "is_complete": is_complete,
            "node_count": self.node_count,
            "rank": self.rank,
            "process_id": int64_of(self.facts.get("pid")),
            "recorded_at": text_of(self.facts.get("time")),
            "raw_start_ns": int64_of(self.facts.get("start_ts"), _NS_PER_MS),
            "raw_finish_ns": int64_of(self.facts.get("finish_ts"), _NS_PER_MS),
            "time_unit": time_unit,
            "metadata": msgspec.json.encode(self.facts).decode("utf-8", "replace"),
        }


def nothing_there(stream: ByteStream, path: Path) -> InputUnusableError:
    """The error of a file without a byte that can be read."""
    what = "the file is empty" if stream.damage is None else f"nothing can be decompressed: {stream.damage}"
    return InputUnusableError(what, where=str(path), hint="copy the file again from where it was written")
