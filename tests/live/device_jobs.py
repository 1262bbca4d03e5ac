"""Recorded jobs of devices, on clocks that the test turns. In: what each rank does. Out: files as a job writes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.live.jobs import MS, HandClock, recorder
from traceforge.live.layout import RowKind
from traceforge.live.tracks import KnownCollective

LOAD_NS, LAUNCH_NS, WORK_NS, TRANSFER_NS = 2 * MS, 3 * MS, 40 * MS, 2 * MS
_MARK, _COLLECTIVE = int(RowKind.DEVICE_MARK), int(RowKind.DEVICE_COLLECTIVE)


@dataclass(frozen=True)
class DeviceFaults:
    """What ranks do besides, ns by rank.

    Attributes:
        works: how much longer the device computes.
        loads: how much longer the host waits for its batch.
        pauses: how long the host does something else before it launches.
    """

    works: Mapping[int, int] = field(default_factory=dict)
    loads: Mapping[int, int] = field(default_factory=dict)
    pauses: Mapping[int, int] = field(default_factory=dict)


def record_device_job(folder: Path, faults: DeviceFaults, *, ranks: int = 4, steps: int = 20) -> list[Path]:
    """Record a data-parallel job with one bucket a step, whose hosts await each step's end.

        host     |load|launch|reduce?|·····················|end
        device        |work··················|reduce|······|
                  L   F                      C      W      E      marks, and the collective C

    Each rank's work varies by up to 0.5 % of itself.
    """
    paths, now = [], 1_000 * MS
    clocks = [HandClock(now) for _ in range(ranks)]
    recorders = [recorder(folder, clock, rank, ranks) for rank, clock in enumerate(clocks)]
    for one in recorders:
        one.__enter__()
    kinds: list[KnownCollective] = [
        one.tracks.kind("all_reduce", "dp", tuple(range(ranks)), 1_000, 1_000, "float", None) for one in recorders
    ]
    for step in range(steps):
        loaded = [now + LOAD_NS + faults.loads.get(rank, 0) for rank in range(ranks)]
        given = [at + faults.pauses.get(rank, 0) for rank, at in enumerate(loaded)]
        works = [
            WORK_NS + faults.works.get(rank, 0) + (step * 7_919 + rank * 104_729) % 200_000 for rank in range(ranks)
        ]
        reached = [begun + work for begun, work in zip(given, works, strict=True)]
        ended = max(reached) + TRANSFER_NS
        for rank, one in enumerate(recorders):
            tracks, asked = one.tracks, given[rank] + LAUNCH_NS
            with one.phase("enumerate(DataLoader)#next"):
                clocks[rank].now_ns = loaded[rank]
            tracks.add((_MARK, 0, now, now, 0, 0, 0))
            tracks.add((_MARK, 0, loaded[rank], loaded[rank], 1, 0, 0))
            tracks.add((_MARK, 0, given[rank], given[rank], 0, 0, 0))
            tracks.add((_COLLECTIVE, kinds[rank].name, reached[rank], ended, step, reached[rank] - asked, 0))
            tracks.add((_MARK, 0, asked + 1_000, reached[rank] + 1_000, 0, 0, 0))
            tracks.add((_MARK, 0, asked + 2_000, ended, 1, 0, 0))
            clocks[rank].now_ns = ended + MS
            tracks.add((_MARK, 0, ended + MS, ended + MS, 0, 0, 0))
            one.step()
        now = ended + MS
    for one in recorders:
        one.close()
        assert one.path is not None
        paths.append(one.path)
    return paths
