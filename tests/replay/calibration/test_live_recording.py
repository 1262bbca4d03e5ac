"""Couplings of a job that `traceforge.live` recorded, whose work has names and no operations."""

from pathlib import Path
from random import Random

from tests.given import add_facts, built
from tests.live.jobs import MS, TRANSFER_NS, HandClock, recorder
from traceforge.replay.calibration.contention_of_run import measure_host_waiting
from traceforge.store.database import Store

STEPS, PIECES = 40, 4


def record(folder: Path, slowed: float) -> None:
    """Two ranks of a host, of which rank 1 works more slowly while rank 0 waits, from an instant that varies."""
    # rank 0  |0|1|2|3|wait··························|transfer|      rank 0  |0···|1···|2···|3···|wait··|transfer|
    # rank 1  |0···|1········|2·······|3·············|transfer|      rank 1  |0···|1···|2···|3··········|transfer|
    draw = Random(1)  # noqa: S311  # no secret
    clocks = [HandClock(), HandClock()]
    with recorder(folder, clocks[0], 0, 2) as early, recorder(folder, clocks[1], 1, 2) as late:
        for _ in range(STEPS):
            varied = draw.uniform(0.2, 1.8)
            for one, clock, share in ((early, clocks[0], varied), (late, clocks[1], 2.0)):
                for piece in range(PIECES):
                    with one.phase(f"layer{piece}"):
                        work = round(share * MS * draw.uniform(1, 1.2))
                        beside = max(clock.now_ns + work - max(clock.now_ns, clocks[0].now_ns), 0)
                        clock.turn(work + round(slowed * beside) * (one is late))
            meetings = [one.collective("all_reduce", size_bytes=8) for one in (early, late)]
            end = max(clock.now_ns for clock in clocks) + TRANSFER_NS
            for one, meeting, clock in zip((early, late), meetings, clocks, strict=True):
                clock.now_ns = end
                meeting.end()
                one.step()


def measured(folder: Path) -> tuple[float, float]:
    """Interval of how far work slows while a neighbour waits."""
    with Store(None) as store:
        add_facts(store, folder)
        built(store, "align.name_class", "timeline.collective", "timeline.iteration", "timeline.segment")
        found = measure_host_waiting(store, 0)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_named_work_that_slows_while_a_neighbour_waits_is_measured(tmp_path: Path) -> None:
    # given work that takes 60 % longer while the other rank of the host waits
    record(tmp_path, slowed=0.6)

    low, high = measured(tmp_path)

    assert 0.3 < low < 0.6 < high < 1


def test_named_work_that_nobody_slows_shows_no_coupling(tmp_path: Path) -> None:
    record(tmp_path, slowed=0.0)

    low, high = measured(tmp_path)

    assert low < 0 < high
