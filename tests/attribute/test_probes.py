"""Eight questions that tools which name a straggler from kernel times answer wrongly: the right answers.

Eight ranks; every collective ends on all of them together, and starts scatter by up to 60 us. Where rank 5 is late, the
others' communication kernels are longer by a factor, as they wait in them: the late rank has the shortest.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.given import MS, US, Trace, rows_of
from tests.stories import told

COMPUTE, TRANSFER, SCATTER = 2_000 * US, 300 * US, 60 * US
MODERN = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
OLD = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"


@dataclass(frozen=True)
class Probe:
    """How much longer the others' kernels are than rank 5's, whose clock is off, and who is to blame."""

    longer: float
    clock_ns: tuple[tuple[int, int], ...] = ()
    culprit: str | None = None
    kernel: str = MODERN
    own_longer: float = 1


PROBES = {
    "nobody is late": Probe(1),
    "nobody is late, and rank 5's clock is 5 ms ahead": Probe(1, ((5, 5 * MS),)),
    "the others wait twice as long": Probe(2, culprit="5"),
    "the others wait five times as long": Probe(5, culprit="5"),
    "the same, and rank 2's clock is 20 ms ahead": Probe(5, ((2, 20 * MS),), "5"),
    "the others wait ten times as long": Probe(10, culprit="5"),
    "twenty times as long, and rank 5 three times": Probe(20, culprit="5", own_longer=3),
    "kernels bear the names of NCCL before 2.19": Probe(5, ((2, 5 * MS),), "5", OLD),
}


def traces_of_probe(probe: Probe) -> list[Trace]:
    """Twelve iterations of two collectives.

    rank 0   |compute·····|wait···········|t|
    rank 5   |compute·················|t····|
    """
    rng = np.random.default_rng(1)
    clocks = dict(probe.clock_ns)
    traces = [Trace(rank, host=f"node{rank // 4}", clock_ns=clocks.get(rank, 0)) for rank in range(8)]
    late = (probe.longer - 1) * TRANSFER
    now = 0
    for step in range(12):
        begin = now
        for _ in range(2):
            scatter = rng.uniform(0, SCATTER, 8)
            arrivals = [now + int(COMPUTE + scatter[rank] + (late if rank == 5 else 0)) for rank in range(8)]
            end = max(arrivals) + int(TRANSFER * probe.own_longer)
            for trace, arrival in zip(traces, arrivals, strict=True):
                trace.kernel(now, arrival).collective(arrival, end, kernel=probe.kernel)
            now = end
        for trace in traces:
            trace.step(step, begin, now)
    return traces


@pytest.mark.parametrize("name", PROBES)
def test_the_probe_is_answered_rightly(name: str) -> None:
    probe = PROBES[name]

    with told(*traces_of_probe(probe)) as store:
        named = rows_of(
            store,
            "SELECT mode, subject_kind, subject FROM attribute.finding"
            " WHERE confidence IN ('high', 'medium') ORDER BY finding_id",
        )

    assert named == ([] if probe.culprit is None else [("synchronization_amplification", "rank", probe.culprit)])
