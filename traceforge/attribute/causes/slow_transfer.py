"""A collective takes longer, after all ranks have arrived, than it takes in the run's other iterations."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="slow_transfer",
    mode="fabric_contention",
    phrase="takes longer for the same bytes although no rank is late",
    next_step="Look at what else used the links in those iterations (other jobs, storage, checkpoints), at switch "
    "counters (ECN, PFC, drops) and at NIC errors; record NCCL_DEBUG=INFO to learn the paths.",
    next_step_of_host="Look at what else used the links in those iterations (other jobs, storage, checkpoints), at "
    "switch counters (ECN, drops) and at errors and retransmissions of the hosts (ethtool -S, nstat, ss -ti).",
    next_step_on_one_host="All ranks share the cores and the memory of one host, and communicate through them: look at "
    "what else ran there in those iterations (other programs, workers of data loaders, limits of a container).",
    next_step_between_devices="All ranks are devices of one host: look at what else used its PCIe and its memory in "
    "those iterations (copies to the host, data loaders, checkpoints, other programs), at errors of their links "
    "(NVLink, XGMI, PCIe), and whether devices reach one another directly (NCCL_DEBUG=INFO says P2P).",
    next_step_of_link="Look at {subject}: speed and errors of NICs, cables and switch ports (ethtool -S, perfquery), "
    "drops and pauses (ECN, PFC), and what else used it in those iterations (other jobs, storage, checkpoints).",
    claims_transfer="fabric",
    is_like_taken_cores=True,
)
