"""What each recorded run is: steps, sizes, rates and the one thing that is made to go wrong in it.

In:   nothing.
Out:  `SCENARIOS`, by name, in the order in which they are recorded.
Idea: a scenario is data. The programs that train and that switch the network read it and know no names.
Not:  how a fault is made (`workload.py`, `lab.py`, `traffic.py`).
"""

from dataclasses import dataclass, replace

WORLD_SIZE = 4
WAIT_STEPS = 8
WARMUP_STEPS = 4
ACTIVE_STEPS = 30
FIRST_STEP = WAIT_STEPS + WARMUP_STEPS
"""Number of the first recorded ProfilerStep."""
RECORDED_STEPS = tuple(range(FIRST_STEP, FIRST_STEP + ACTIVE_STEPS))

WIDTH = 384
LAYERS = 6
BATCH = 480

NIC_BITS_PER_S = 1_000_000_000
UPLINK_BITS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Scenario:
    """One recorded run. Steps are ProfilerStep numbers; a fault is on in `steps` and off elsewhere."""

    name: str
    story: str
    kind: str | None = None
    mode: str | None = None
    rank: int | None = None
    steps: tuple[int, ...] = ()
    extra_share: float = 0.0
    """Extra products beside each layer of `rank`, a share of the layer's own (first one: only forward)."""
    extra_batch: float = 0.0
    """Extra rows in the batches of `rank`, a share of the others' rows."""
    stall_ns: int = 0
    """Sleep inside the data loader of `rank`, in each of `steps`."""
    slow_nic_bits_per_s: int = 0
    """Rate of the NIC of `rank` in `steps`, both directions."""
    traffic_flows: int = 0
    """TCP flows of other hosts over the uplink in `steps`."""
    tensor_parallel: int = 1
    """Neighbouring ranks that share one copy of the model."""
    execution_trace_steps: int = 4
    """Recorded steps that stay in the execution trace, from the first."""
    ranks: int = WORLD_SIZE
    active_steps: int = ACTIVE_STEPS
    one_host: bool = False
    """Whether all ranks say that they run on one host (they have a core each)."""
    times_collectives: bool = False
    """Whether ranks time their all-reduces, as pacing needs; runs without pacing do so too, to be comparable."""
    one_bucket: bool = False
    """Whether all gradients go in one all-reduce, after the backward pass."""
    busy_wait: int = 0
    """Processes of a rank that spin while it waits, on the next rank's core."""

    @property
    def data_groups(self) -> list[list[int]]:
        """Ranks that average their gradients, a list a group."""
        return [list(range(first, self.ranks, self.tensor_parallel)) for first in range(self.tensor_parallel)]

    @property
    def tensor_groups(self) -> list[list[int]]:
        """Ranks that share one copy of the model, a list a group; none if each rank has its own."""
        size = self.tensor_parallel
        return [list(range(first, first + size)) for first in range(0, self.ranks, size)] if size > 1 else []

    @property
    def steps_in_all(self) -> int:
        """Steps of the program, recorded or not."""
        return WAIT_STEPS + WARMUP_STEPS + self.active_steps


_ALL = (
    Scenario(
        name="healthy",
        story="Nothing is injected.",
        execution_trace_steps=ACTIVE_STEPS,
    ),
    Scenario(
        name="compute_straggler",
        story="Rank 2 does 56 % more matrix work than the others, in every step.",
        kind="compute_straggler",
        mode="synchronization_amplification",
        rank=2,
        steps=RECORDED_STEPS,
        extra_share=0.6,
    ),
    Scenario(
        name="input_stall",
        story="The data loader of rank 1 waits for its storage (a sleep in the dataset) in five steps.",
        kind="input_stall",
        mode="runtime_control_plane",
        rank=1,
        steps=(17, 22, 23, 30, 37),
        stall_ns=90_000_000,
    ),
    Scenario(
        name="congested_uplink",
        story="Another job sends TCP over the uplink between the racks during ten consecutive steps.",
        kind="uplink_congestion",
        mode="fabric_contention",
        steps=tuple(range(22, 32)),
        traffic_flows=1,
    ),
    Scenario(
        name="slow_nic",
        story="The NIC of rank 3's host drops to 300 Mbit/s after a third of the run and stays there.",
        kind="slow_nic",
        mode="fabric_contention",
        rank=3,
        steps=tuple(range(22, FIRST_STEP + ACTIVE_STEPS)),
        slow_nic_bits_per_s=300_000_000,
    ),
    Scenario(
        name="tp2dp2",
        story="Tensor parallel inside each rack, data parallel between the racks; nothing is injected.",
        tensor_parallel=2,
    ),
)
SCENARIOS = {scenario.name: scenario for scenario in _ALL}

_PACED = Scenario(
    name="even",
    story="Both ranks have equal work and a core each; a rank that waits sleeps.",
    kind="compute_straggler",
    ranks=2,
    active_steps=60,
    one_host=True,
    times_collectives=True,
    one_bucket=True,
)
PACED = {
    scenario.name: scenario
    for scenario in (
        _PACED,
        replace(
            _PACED,
            name="straggler",
            story="Rank 1 has larger batches than rank 0, and a core of its own; a rank that waits sleeps.",
            rank=1,
            extra_batch=0.6,
        ),
        replace(
            _PACED,
            name="busy_wait",
            story="As straggler, but three processes of a rank that waits spin on the other rank's core.",
            rank=1,
            extra_batch=0.6,
            busy_wait=3,
        ),
    )
}
"""Runs that `paced.py` records with and without pacing, by name."""
