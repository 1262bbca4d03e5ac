"""Recorded runs to which a delay was added. In: a recording and an edit. Out: its traces as they would have been.

Idea: nothing of the noise of a real run is invented; one delay is. It is inserted into a rank's time, and follows the
collectives: each ends as long after its last arrival as it did (plus what an edit of transfers adds), and a rank that
waited for it goes on that much later. A rank waited where it did nothing of its own when the collective ended; the
time that the delayed rank had waited shrinks first. The truth is by how much the iterations grow.
Not handled: a collective that overlapped with work and, ending later, would hold it up.
"""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.accuracy.recording import Event, RankRecording, matched, read

Kind = Literal["slow work", "pause", "everyone pauses", "slow transfers"]

_MODES: dict[Kind, str] = {
    "slow work": "synchronization_amplification",
    "pause": "runtime_control_plane",
    "everyone pauses": "runtime_control_plane",
    "slow transfers": "fabric_contention",
}
# A rank that did nothing for so long before a collective ended was waiting for it.
_WAITED_NS = 50_000
# Slow work is longer in this many of an iteration's operations.
_OPERATIONS = 8


@dataclass(frozen=True, slots=True)
class Edit:
    """What is added to a recording.

    Attributes:
        recording: its folder.
        kind: what is delayed.
        share: by how much an affected iteration is delayed, over the mean iteration.
        rank: whose work; 0 where everyone is delayed.
        first: first affected iteration, from 0.
        last: last one.
    """

    recording: Path
    kind: Kind
    share: float
    rank: int = 0
    first: int = 0
    last: int = 1_000_000

    def write(self, folder: Path) -> None:
        """Traces and truth.json."""
        ranks = read(self.recording)
        before_ns = _iterations_ns(ranks)
        delay_ns = round(self.share * sum(before_ns) / len(before_ns) / 1000) * 1000
        affected = [i for i in range(len(before_ns)) if self.first <= i <= self.last]
        for recording in ranks:
            self._delay(recording, affected, delay_ns)
        propagate(ranks, self._stretched_ns(ranks, affected, delay_ns))
        folder.mkdir(parents=True)
        truth = self._truth(ranks, before_ns, affected)
        for recording in ranks:
            (folder / recording.name).write_text(recording.text(), encoding="utf-8")
        (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")

    def _delay(self, recording: RankRecording, affected: Sequence[int], delay_ns: int) -> None:
        is_of_all = self.kind == "everyone pauses"
        if self.kind == "slow transfers" or (recording.rank != self.rank and not is_of_all):
            return
        steps = recording.steps
        for i in affected:
            if self.kind == "slow work":
                for at_ns in _within_longest(recording, steps[i]):
                    recording.insert(at_ns, delay_ns // _OPERATIONS)
            else:
                # Everyone begins at a moment of its own.
                begins = _beginnings(recording, steps[i])
                recording.insert(begins[recording.rank % min(3, len(begins)) if is_of_all else 0], delay_ns)

    def _stretched_ns(self, ranks: Sequence[RankRecording], affected: Sequence[int], delay_ns: int) -> dict[int, int]:
        """By the start of a collective's event on the first rank: how much longer its transfer takes."""
        if self.kind != "slow transfers":
            return {}
        steps = ranks[0].steps
        stretched: dict[int, int] = {}
        for i in affected:
            own = [e for e in ranks[0].collectives if steps[i].start_ns <= e.start_ns < steps[i].end_ns]
            stretched |= {event.start_ns: delay_ns // len(own) for event in own}
        return stretched

    def _truth(self, ranks: Sequence[RankRecording], before_ns: list[int], affected: Sequence[int]) -> dict[str, Any]:
        after_ns = _iterations_ns(ranks)
        grown = [after - before for after, before in zip(after_ns, before_ns, strict=True)]
        everyone = [recording.rank for recording in ranks]
        is_of_rank = self.kind in ("slow work", "pause")
        trouble = {
            "faults": [0],
            "modes": [_MODES[self.kind]],
            "subject_kind": "rank" if is_of_rank else "job",
            "subject": str(self.rank) if is_of_rank else "all",
            "ranks": [self.rank] if is_of_rank else everyone,
            "removed_ns": grown,
            "added_ns": grown,
        }
        return {
            "schema_version": 1,
            "scenario": f"{self.recording.name}, {self.kind}",
            "world_size": len(ranks),
            "hosts": [recording.host for recording in ranks],
            "iterations": [int(step.name.rpartition("#")[2]) for step in ranks[0].steps],
            "duration_ns": after_ns,
            "excess_ns": grown,
            "faults": [{"communicators": [everyone] if self.kind == "slow transfers" else [], "iterations": affected}],
            "troubles": [trouble],
        }


def propagate(ranks: Sequence[RankRecording], stretched_ns: dict[int, int]) -> None:
    """Move collectives, and all ranks that waited for them, after what was inserted."""
    idle = [recording.gaps for recording in ranks]
    edges = [sorted({t for e in r.events if not e.is_communication for t in (e.start_ns, e.end_ns)}) for r in ranks]
    busy_until: list[dict[tuple[str, str], int]] = [{} for _ in ranks]
    for members in matched(ranks):
        arrivals = []
        for recording, event, lanes in zip(ranks, members, busy_until, strict=True):
            arrivals.append(max(recording.moved_ns(event.start_ns), lanes.get(event.lane, 0)))
        later_ns = max(arrivals) - max(event.start_ns for event in members)
        later_ns += stretched_ns.get(members[0].start_ns, 0)
        for number, (recording, event) in enumerate(zip(ranks, members, strict=True)):
            event.moved = (arrivals[number], event.end_ns + later_ns)
            busy_until[number][event.lane] = event.moved[1]
            if _was_awaited(idle[number], event.end_ns):
                missing = event.moved[1] - recording.moved_ns(event.end_ns, is_end=True)
                if missing < 0:
                    # Only time in which nothing begins or ends can shrink.
                    edge = edges[number][bisect_left(edges[number], event.end_ns) - 1]
                    missing = max(missing, edge - event.end_ns)
                recording.insert(event.end_ns, missing)


def _was_awaited(idle: Sequence[tuple[int, int]], end_ns: int) -> bool:
    place = bisect_left(idle, end_ns, key=lambda gap: gap[1])
    return place < len(idle) and idle[place][0] + _WAITED_NS <= end_ns


def _iterations_ns(ranks: Sequence[RankRecording]) -> list[int]:
    """Each iteration from its first start to its last end."""
    spans = [[(r.moved_ns(step.start_ns), r.moved_ns(step.end_ns, is_end=True)) for step in r.steps] for r in ranks]
    return [max(end for _, end in of) - min(start for start, _ in of) for of in zip(*spans, strict=True)]


def _beginnings(recording: RankRecording, step: Event) -> list[int]:
    """When an iteration begins, and its pieces of work after idle moments before its first collective."""
    meets_ns = min(e.start_ns for e in recording.collectives if e.start_ns >= step.start_ns)
    return [step.start_ns, *(end for _, end in recording.gaps if step.start_ns < end < meets_ns)]


def _within_longest(recording: RankRecording, step: Event) -> list[int]:
    """Middles of the longest stretches that single pieces of work of an iteration spend on nothing else."""
    work = [e for e in recording.work if step.start_ns <= e.start_ns < step.end_ns]
    stretches: list[tuple[int, int]] = []
    open_work: list[Event] = []
    own_since: list[int] = []
    for event in sorted(work, key=lambda event: (event.lane, event.start_ns, -event.end_ns)):
        while open_work and (open_work[-1].lane != event.lane or open_work[-1].end_ns <= event.start_ns):
            _close(open_work, own_since, stretches)
        if open_work:
            _note(open_work[-1], own_since[-1], event.start_ns, stretches)
            own_since[-1] = event.end_ns
        open_work.append(event)
        own_since.append(event.start_ns)
    while open_work:
        _close(open_work, own_since, stretches)
    longest = sorted(stretches, key=lambda stretch: stretch[0] - stretch[1])[:_OPERATIONS]
    return [(start + end) // 2 for start, end in longest]


def _close(open_work: list[Event], own_since: list[int], stretches: list[tuple[int, int]]) -> None:
    event, since = open_work.pop(), own_since.pop()
    _note(event, since, event.end_ns, stretches)


def _note(event: Event, start_ns: int, end_ns: int, stretches: list[tuple[int, int]]) -> None:
    # What hands work to the communication library is no compute.
    if not event.name.startswith("c10d::") and start_ns < end_ns:
        stretches.append((start_ns, end_ns))
