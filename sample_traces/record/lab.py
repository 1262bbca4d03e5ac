"""A small network of namespaces on one machine: four hosts in two racks, an uplink between the racks.

In:   NIC and uplink rates, bits/s.
Out:  namespaces to start processes in, and `Switch`, which changes a rate within about a millisecond.
Idea: one veth pair a cable, one bridge a rack, one token bucket (tc tbf) a direction of each cable.
Not:  latency or loss (netem is not needed); every host shares the machine's clock, cores and memory.
Needs: root, iproute2.
"""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

PREFIX = "tftrace-"
"""Every namespace made here begins with this; nothing else is touched."""
PORT = "eth0"
RACKS = 2
SUBNET = "10.77.0"
BURST_BYTES = 128 * 1024
QUEUE_BYTES = 4 * 1024 * 1024


class LabError(RuntimeError):
    """A network command failed; the text says which and why."""


def command(*words: str) -> None:
    """Run one command; raise `LabError` with its own words if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"`{' '.join(words)}` failed: {(done.stderr or done.stdout).strip()}")


def host(rank: int) -> str:
    """Return the namespace of a rank's host."""
    return f"{PREFIX}node{rank}"


def rack(number: int) -> str:
    """Return the namespace of a rack's switch."""
    return f"{PREFIX}rack{number}"


def outsider(number: int) -> str:
    """Return the namespace of the host in rack `number` that belongs to another job."""
    return f"{PREFIX}other{number}"


def address(namespace: str) -> str:
    """Return a host's IPv4 address: 10.77.0.1 … for ranks, 10.77.0.101 … for outsiders."""
    number = int(namespace[-1]) + 1
    return f"{SUBNET}.{100 + number if 'other' in namespace else number}"


def tbf(bits_per_s: int) -> str:
    """Return the words of a token bucket of this rate for `tc qdisc`."""
    return f"tbf rate {bits_per_s}bit burst {BURST_BYTES} limit {QUEUE_BYTES}"


class Lab:
    """The network while the `with` block lasts; leftovers of a killed run are removed on entry."""

    def __init__(self, *, ranks: int, nic_bits_per_s: int, uplink_bits_per_s: int) -> None:
        """Say how large and how fast; nothing is made yet."""
        self.ranks = ranks
        self.nic_bits_per_s = nic_bits_per_s
        self.uplink_bits_per_s = uplink_bits_per_s

    def __enter__(self) -> Self:
        """Make everything, or remove what was made and raise."""
        remove_all()
        try:
            self._build()
        except BaseException:
            remove_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove everything."""
        remove_all()

    def rack_of(self, rank: int) -> int:
        """Return the rack of a rank: the first half of the ranks is in rack 0."""
        return rank * RACKS // self.ranks

    def _build(self) -> None:
        for number in range(RACKS):
            make_rack(number)
        for rank in range(self.ranks):
            self._plug(host(rank), self.rack_of(rank), self.nic_bits_per_s)
        for number in range(RACKS):
            self._plug(outsider(number), number, None)
        self._lay_uplink()

    def _plug(self, namespace: str, rack_number: int, bits_per_s: int | None) -> None:
        """Make a host and its cable to the rack's switch; the switch's end is named after the host."""
        switch, port = rack(rack_number), switch_port(namespace)
        command("ip", "netns", "add", namespace)
        command("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", PORT, "netns", namespace)
        command("ip", "-n", switch, "link", "set", port, "master", "br0", "up")
        command("ip", "-n", namespace, "addr", "add", f"{address(namespace)}/24", "dev", PORT)
        command("ip", "-n", namespace, "link", "set", PORT, "up")
        command("ip", "-n", namespace, "link", "set", "lo", "up")
        tune_tcp(namespace)
        if bits_per_s:
            shape(namespace, PORT, bits_per_s)
            shape(switch, port, bits_per_s)

    def _lay_uplink(self) -> None:
        near, far = rack(0), rack(1)
        command("ip", "-n", near, "link", "add", "uplink", "type", "veth", "peer", "uplink", "netns", far)
        for switch in (near, far):
            command("ip", "-n", switch, "link", "set", "uplink", "master", "br0", "up")
            shape(switch, "uplink", self.uplink_bits_per_s)


class Switch:
    """A `tc` that waits for orders inside one namespace, so that a change takes about a millisecond."""

    def __init__(self, namespace: str, device: str) -> None:
        """Start it."""
        self.device = device
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "tc", "-batch", "-"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def set_rate(self, bits_per_s: int) -> None:
        """Give the device's token bucket a new rate; queued packets stay."""
        assert self.process.stdin  # noqa: S101 - made with a pipe above
        self.process.stdin.write(f"qdisc change dev {self.device} root {tbf(bits_per_s)}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End it; raise `LabError` if an order failed."""
        _, complaint = self.process.communicate(timeout=10)
        if complaint.strip():
            raise LabError(f"tc on {self.device}: {complaint.strip()}")


def switch_port(namespace: str) -> str:
    """Return the name of the switch's end of a host's cable."""
    return "to-" + namespace.removeprefix(PREFIX)


def make_rack(number: int) -> None:
    """Make a switch: a namespace with one bridge."""
    command("ip", "netns", "add", rack(number))
    command("ip", "-n", rack(number), "link", "add", "br0", "type", "bridge")
    command("ip", "-n", rack(number), "link", "set", "br0", "up")


def shape(namespace: str, device: str, bits_per_s: int) -> None:
    """Put a token bucket on what leaves a device."""
    command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *tbf(bits_per_s).split())


def tune_tcp(namespace: str) -> None:
    """Set TCP up as in a data centre: no slow start after each pause, no delayed acknowledgements (40 ms)."""
    command("ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv4.tcp_slow_start_after_idle=0")
    command("ip", "-n", namespace, "route", "change", f"{SUBNET}.0/24", "dev", PORT, "quickack", "1")


def remove_all() -> None:
    """Remove every namespace of ours; their cables and bridges go with them."""
    folder = Path("/run/netns")
    for entry in sorted(folder.glob(f"{PREFIX}*")) if folder.exists() else ():
        command("ip", "netns", "delete", entry.name)
