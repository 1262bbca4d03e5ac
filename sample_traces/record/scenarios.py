"""What each recorded run is: the steps, the rates and the one thing that is made to go wrong in it.

In:   nothing.
Out:  `SCENARIOS`, by name, in the order in which they are recorded.
Idea: a scenario is data. The programs that train and that switch the network read it and know no names.
Not:  how a fault is made (`workload.py`, `lab.py`, `traffic.py`).
"""

from dataclasses import dataclass

WORLD_SIZE = 4
WAIT_STEPS = 8
WARMUP_STEPS = 4
ACTIVE_STEPS = 30
FIRST_STEP = WAIT_STEPS + WARMUP_STEPS
"""Number of the first recorded ProfilerStep."""
RECORDED_STEPS = tuple(range(FIRST_STEP, FIRST_STEP + ACTIVE_STEPS))

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
    """Extra matrix products of `rank`, as a share of the model's own."""
    stall_ns: int = 0
    """Sleep inside the data loader of `rank`, in each of `steps`."""
    slow_nic_bits_per_s: int = 0
    """Rate of the NIC of `rank` in `steps`, both directions."""
    traffic_flows: int = 0
    """TCP flows of other hosts over the uplink in `steps`."""


_ALL = (
    Scenario(name="healthy", story="Nothing is injected."),
    Scenario(
        name="compute_straggler",
        story="Rank 2 has 60 % more matrix products to do than the others, forward and backward, in every step.",
        kind="compute_straggler",
        mode="synchronization_amplification",
        rank=2,
        steps=RECORDED_STEPS,
        extra_share=0.6,
    ),
    Scenario(
        name="input_stall",
        story="The data loader of rank 1 waits for its storage (a sleep in the dataset) in five of the steps.",
        kind="input_stall",
        mode="runtime_control_plane",
        rank=1,
        steps=(17, 22, 23, 30, 37),
        stall_ns=60_000_000,
    ),
    Scenario(
        name="congested_uplink",
        story="Two other hosts send TCP over the uplink between the racks during ten consecutive steps.",
        kind="uplink_congestion",
        mode="fabric_contention",
        steps=tuple(range(22, 32)),
        traffic_flows=4,
    ),
    Scenario(
        name="slow_nic",
        story="The NIC of rank 3's host drops to 300 Mbit/s after the first third of the run and stays there.",
        kind="slow_nic",
        mode="fabric_contention",
        rank=3,
        steps=tuple(range(22, FIRST_STEP + ACTIVE_STEPS)),
        slow_nic_bits_per_s=300_000_000,
    ),
)
SCENARIOS = {scenario.name: scenario for scenario in _ALL}
