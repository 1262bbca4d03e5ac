"""What runs of the grid vary in. In: nothing. Out: clusters, clocks, noises, couplings, workloads, places of faults."""

from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, faults
from traceforge.synth.load import Noise
from traceforge.synth.program import Workload
from traceforge.synth.task import Coupling

CLUSTERS = {
    4: Cluster(2, 2),
    8: Cluster(2, 4),
    16: Cluster(4, 4, nodes_per_rack=2),
    32: Cluster(4, 8, 4, nodes_per_rack=2),
    64: Cluster(8, 8, nodes_per_rack=4),
}
# A device's path shows only against its peers': these faults need several groups.
GROUPED = {
    8: Cluster(2, 4, 2),
    16: Cluster(4, 4, 4),
    32: Cluster(4, 8, 4),
    64: Cluster(8, 8, 8, nodes_per_rack=4),
}

CLOCKS = {
    "one clock": ClockErrors(0, 0, 0),
    "skewed": ClockErrors(),
    "far off": ClockErrors(50_000_000, 20_000, 50_000),
}

NOISES = {
    "usual": Noise(),
    "quiet": Noise(kernel=0.01, iteration=0.001, lasting=0.0, device=0.001, transfer=0.01),
    "lasting": Noise(iteration=0.01, lasting=0.9),
    "uneven devices": Noise(device=0.006),
    "rough": Noise(kernel=0.05, iteration=0.01, device=0.004, transfer=0.15, host=0.3),
    "heavy tail": Noise(tail_probability=0.001, tail_share=1.0),
    "rare stalls": Noise(tail_probability=0.0002, tail_share=5.0),
}

COUPLINGS = {"none": Coupling(), "coupled": Coupling(kappa=0.2, eta_wait=0.1, eta_transfer=0.1)}

WORKLOADS = {
    "reads its loss": Workload(),
    "runs ahead": Workload(reads_loss_every=0),
    "frees memory": Workload(frees_memory=True),
    "many buckets": Workload(layers=6, buckets=6, forward_ns=1_500_000),
}


def injection(fault: str, cluster: Cluster, seed: int, severity: float) -> Injection:
    """A fault at a place and time that depend on the seed."""
    befalls = faults()[fault].target
    count = {"rank": cluster.ranks, "node": cluster.nodes, "job": 1}[befalls]
    place = (7 * seed + 3) % count
    if fault in ("fabric_episode", "oversubscribed_uplink", "slow_nic"):
        # What is slow from the first iteration to the last has nothing to be compared with.
        return Injection(fault, place, 2 * severity, 6 + seed % 4, None if seed % 2 else 14)
    if fault in ("gc_pause", "checkpoint_pause", "input_stall") and seed % 2:
        return Injection(fault, place, 2 * severity, first=seed % 3, every=4)
    if fault == "compute_straggler" and seed % 3 == 1:
        return Injection(fault, place, severity, first=5, last=13)
    return Injection(fault, place, severity)
