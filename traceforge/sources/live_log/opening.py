"""What a recording says of its process. In: its first facts. Out: `RecorderFacts`; every value is checked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from traceforge.reading.telemetry_series import MeasuredThing

_LARGEST_NS = 2**62
_MOST_RANKS = 1_000_000
_LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class RecorderFacts:
    """Facts of the first frame.

    Attributes:
        rank, world_size, host, backend: as stated; None where they are not.
        process: number of the process, as text.
        ahead_ns: epoch less monotonic time, when the recording began.
        facts: all that was said.
    """

    rank: int | None
    world_size: int | None
    host: str | None
    backend: str | None
    process: str
    ahead_ns: int
    facts: Mapping[str, object]

    @property
    def prefix(self) -> str:
        """Before the names of collectives: `gloo`, or `live` for any other backend."""
        return "live" if self.backend is not None and "gloo" not in self.backend else "gloo"

    def with_later(self, facts: Mapping[str, object]) -> "RecorderFacts":
        """With what was only known once the process group and the device were there."""
        known = {name: facts[name] for name in ("backend", "world_size", "torch", "device") if name in facts}
        if not known:
            return self
        return replace(
            self,
            backend=_text(known.get("backend")) or self.backend,
            world_size=_whole(known.get("world_size")) or self.world_size,
            facts={**self.facts, **known},
        )

    @property
    def device(self) -> MeasuredThing:
        """The device that the process reads, as far as it names it."""
        told = self.facts.get("device")
        facts = told if isinstance(told, dict) else {}
        uuid, address, name = (_text(facts.get(one)) for one in ("uuid", "pci", "name"))
        return MeasuredThing(self.host, None, uuid, address, name)

    def clock_change_ns(self, readings: object) -> int:
        """By how much a later reading of the clocks differs from the first, at most."""
        found = [ahead for one in _listed(readings) if (ahead := _ahead_ns(one)) is not None]
        return max((abs(ahead - self.ahead_ns) for ahead in found), default=0)


def read_opening(facts: Mapping[str, object]) -> RecorderFacts | None:
    """The opening; None where the facts hold no reading of the clocks."""
    ahead = next((ahead for one in _listed(facts.get("clock")) if (ahead := _ahead_ns(one)) is not None), None)
    if ahead is None:
        return None
    process = facts.get("pid")
    return RecorderFacts(
        rank=_whole(facts.get("rank")),
        world_size=_whole(facts.get("world_size")) or None,
        host=_text(facts.get("host")),
        backend=_text(facts.get("backend")),
        process=str(process) if isinstance(process, int) and 0 <= process < 2**31 else "0",
        ahead_ns=ahead,
        facts=facts,
    )


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _ahead_ns(reading: object) -> int | None:
    if not (isinstance(reading, list) and len(reading) == 2):
        return None
    monotonic, epoch = reading
    is_sound = all(type(one) is int and 0 <= one < _LARGEST_NS // 2 for one in reading)
    return epoch - monotonic if is_sound else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_RANKS else None


def _text(value: object) -> str | None:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else None
