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
from tests.accuracy.capture_devices import Cores, Place, Slowed

BITS_PER_S = 1_000_000_000
_NEW_NETWORK, _NEW_NAMES = 0x40000000, 0x04000000


class Hosts(Cores):
    """Hosts of one rank or more; each computes on the machine's cores."""

    values, rows = 131_072, 2048

    def settle(self, place: Place) -> None:
        """Go into the rank's host."""
        super().settle(place)
        self.rank = place.rank
        self.slowed: Slowed | None = None
        self.switches: dict[str, tuple[Switch, ...]] = _switches(place.hosts) if self.rank == 0 else {}
        _enter(host(place.host), f"node{place.host}")
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


def _switches(hosts: int) -> dict[str, tuple[Switch, ...]]:
    made = {"uplink": tuple(Switch(rack(number), "uplink") for number in range(RACKS))}
    for one in range(hosts):
        ends = Switch(host(one), PORT), Switch(rack(one * RACKS // hosts), switch_port(host(one)))
        made[f"node{one}"] = ends
    return made


def _enter(namespace: str, name: str) -> None:
    """Make this thread, and all it starts, a part of a network namespace, under a host's name."""
    system = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", namespace).open("rb") as network:
        if system.setns(network.fileno(), _NEW_NETWORK) or system.unshare(_NEW_NAMES):
            raise OSError(ctypes.get_errno(), f"cannot enter the network of {namespace}; are you root?")
    socket.sethostname(name)


def network_of(machine: str, hosts: int) -> AbstractContextManager[object]:
    """The network while jobs are recorded, where the machine has one."""
    if machine != "network":
        return nullcontext()
    return Lab(ranks=hosts, nic_bits_per_s=BITS_PER_S, uplink_bits_per_s=BITS_PER_S)
