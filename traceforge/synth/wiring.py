"""What NCCL finds of the machines. In: a cluster and its faults. Out: NICs, paths and settings of each host.

Idea: a host is two sockets with half of the devices and NICs each, a NIC beside each device below one PCI switch, and
NVLink between all devices; a fault that lasts from the first iteration to the last may have changed that, and only such
a fault shows in what is logged at the start. Not handled: NVLink SHARP, several NICs a device.
"""

from dataclasses import dataclass, field

from traceforge.synth.cluster import Cluster

SPEED_MEGABITS = 400_000
_BUS = 0x1000


@dataclass(slots=True)
class Wiring:
    """The machines as NCCL sees them; faults change it.

    Attributes:
        nic_of: number of the NIC that each rank uses, by rank.
        without_p2p: hosts whose devices cannot reach one another's memory.
        without_relay: hosts where no device drives a NIC for another one (PXN).
        speed_megabits: speed of NICs that are not at full speed, Mbit/s, by host and number.
        settings: environment variables, by host.
    """

    cluster: Cluster
    nic_of: dict[int, int] = field(default_factory=dict)
    without_p2p: set[int] = field(default_factory=set)
    without_relay: set[int] = field(default_factory=set)
    speed_megabits: dict[tuple[int, int], int] = field(default_factory=dict)
    settings: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def nics(self) -> int:
        """NICs of a host; at least one a socket."""
        return max(2, self.cluster.devices)

    def nic(self, rank: int) -> int:
        """Number of the NIC that a rank uses."""
        return self.nic_of.get(rank, self.device(rank))

    def device(self, rank: int) -> int:
        """Number of a rank's device on its host."""
        return rank % self.cluster.devices

    def far_nic(self, rank: int) -> int:
        """A NIC on the other socket."""
        return (self.device(rank) + self.nics // 2) % self.nics

    def socket(self, number: int) -> int:
        """The socket of a device, or of the NIC of the same number."""
        return int(2 * number >= self.nics)

    def path_to_nic(self, node: int, device: int, nic: int) -> str:
        """Class of the path from a device to a NIC, as NCCL names it."""
        if device == nic:
            return "PIX"
        if self.relays(node) and nic < self.cluster.devices:
            return "PXN"
        return "PHB" if self.socket(device) == self.socket(nic) else "SYS"

    def path_between(self, node: int, device: int, other: int) -> str:
        """Class of the path between two devices of a host."""
        if device == other:
            return "LOC"
        if node not in self.without_p2p:
            return "NVL"
        return "PHB" if self.socket(device) == self.socket(other) else "SYS"

    def relays(self, node: int) -> bool:
        """Whether a device of a host may drive its NIC for another one."""
        return node not in self.without_p2p | self.without_relay

    def gpu_bus(self, device: int) -> int:
        """PCI bus id of a device, as NCCL prints it in hex."""
        return self.switch_bus(device) + 0x3000

    def nic_bus(self, nic: int) -> int:
        """PCI bus id of a NIC."""
        return self.switch_bus(nic) + 0x2000

    def switch_bus(self, number: int) -> int:
        """PCI bus id of the switch above a device and its NIC."""
        return (0x80000 if self.socket(number) else 0x10000) + number * 8 % 0x70 * _BUS

    def set(self, node: int, name: str, value: str) -> None:
        """Set an environment variable on a host."""
        self.settings.setdefault(node, {})[name] = value
