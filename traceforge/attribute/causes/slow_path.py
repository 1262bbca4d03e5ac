"""A communicator is slower than its peers, which move the same bytes at the same place, in all iterations."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="slow_path",
    mode="gpu_locality",
    phrase="is slower than its peers for the same bytes",
    next_step="Compare the paths of {subject} with its peers': NIC and NUMA node of each device, PCIe switch, P2P or "
    "shared memory (NCCL_DEBUG=INFO; nvidia-smi topo -m, or amd-smi topology), and the link's width and errors.",
    claims_transfer="path",
)
