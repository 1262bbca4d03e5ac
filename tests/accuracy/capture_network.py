"""Where jobs of `capture.py` run that send over a network: each rank a host of its own, in two racks with an uplink.

In: a rank's number. Out: a process inside the network that `sample_traces/record/lab.py` makes.
Idea: weights and batches are large enough for their transfers to take milliseconds; rank 0 slows a cable down or makes
it as fast as before when it begins a step, while the others are in their forward pass.
Needs: root, iproute2.
"""

import ctypes
import os
import socket
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from sample_traces.record.lab import PORT, RACKS, Lab, Switch, address, host, rack, switch_port
from tests.accuracy.capture_devices import Cores, Slowed
from tests.accuracy.capture_jobs import RANKS

BITS_PER_S = 1_000_000_000
UPLINK = (1, 2)
"""Stages of a pipeline whose messages pass the uplink."""
_NEW_NETWORK, _NEW_NAMES = 0x40000000, 0x04000000


class Hosts(Cores):
    """A host a rank; each computes on the machine's cores."""

    values, rows = 131_072, 2048

    def settle(self, rank: int) -> None:
        """Go into the rank's host."""
        super().settle(rank)
        self.rank = rank
        self.slowed: Slowed | None = None
        self.switches: dict[str, tuple[Switch, ...]] = _switches() if rank == 0 else {}
        _enter(host(rank), f"node{rank}")
        os.environ.update(MASTER_ADDR=address(host(0)), GLOO_SOCKET_IFNAME=PORT)

    def set_network(self, slowed: Slowed | None) -> None:
        """Give token buckets another rate where that changes."""
        if self.rank or slowed == self.slowed:
            return
        shares = {self.slowed.cable: 1.0} if self.slowed else {}
        shares |= {slowed.cable: slowed.share} if slowed else {}
        for cable, share in shares.items():
            for end in self.switches[cable]:
                end.set_rate(round(BITS_PER_S * share))
        self.slowed = slowed


def _switches() -> dict[str, tuple[Switch, ...]]:
    made = {"uplink": tuple(Switch(rack(number), "uplink") for number in range(RACKS))}
    for rank in range(RANKS):
        ends = Switch(host(rank), PORT), Switch(rack(rank * RACKS // RANKS), switch_port(host(rank)))
        made[f"node{rank}"] = ends
    return made


def _enter(namespace: str, name: str) -> None:
    """Make this thread, and all it starts, a part of a network namespace, under a host's name."""
    system = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", namespace).open("rb") as network:
        if system.setns(network.fileno(), _NEW_NETWORK) or system.unshare(_NEW_NAMES):
            raise OSError(ctypes.get_errno(), f"cannot enter the network of {namespace}; are you root?")
    socket.sethostname(name)


def network_of(machine: str) -> AbstractContextManager[object]:
    """The network while jobs are recorded, where the machine has one."""
    if machine != "network":
        return nullcontext()
    return Lab(ranks=RANKS, nic_bits_per_s=BITS_PER_S, uplink_bits_per_s=BITS_PER_S)
