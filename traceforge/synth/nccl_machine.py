"""What NCCL logs about the machine. In: a communicator and a host. Out: messages on NICs, GPU Direct RDMA and topology.

Idea: the tree of devices and the matrix of paths are printed from the wiring, so that a fault that changed it shows.
Not handled: the search for channels beyond its result.
"""

from collections.abc import Iterator

from traceforge.synth.nccl_channels import Communicator
from traceforge.synth.nccl_grammar import LogGrammar
from traceforge.synth.wiring import SPEED_MEGABITS, Wiring

_NVLINK, _PCI = 360.0, 48.0
_GUID = 0xA088C20300E3A000
_HIGHEST_DISTANCE = "PXB"


def nics(wiring: Wiring, node: int) -> Iterator[str]:
    """Messages that list the NICs of a host."""
    for nic in range(wiring.nics):
        bus, switch = wiring.nic_bus(nic), wiring.switch_bus(nic)
        path = "/".join(f"0000:{number >> 12:02x}:00.0" for number in (switch, switch + 0x1000, bus))
        speed = wiring.speed_megabits.get((node, nic), SPEED_MEGABITS)
        yield (
            f"NET/IB: [{nic}] mlx5_{nic}:uverbs{nic}:1/IB provider=Mlx5 speed={speed} context=0x55d0c8{nic:02x}4a0 "
            f"pciPath=/sys/devices/pci0000:{switch >> 12:02x}/{path} ar=0"
        )
    listed = " ".join(f"[{nic}]mlx5_{nic}:1/IB" for nic in range(wiring.nics))
    yield f"NET/IB : Using {listed} [RO]; OOB eth0:{address(node)}<0>"


def address(node: int) -> str:
    """Address of a host on the network by which ranks find one another."""
    return f"10.0.{node // 250}.{node % 250 + 1}"


def direct_access(wiring: Wiring, rank: int, grammar: LogGrammar) -> Iterator[str]:
    """Whether the NICs that a rank may use reach its device's memory directly."""
    node, device = wiring.cluster.node_of(rank), wiring.device(rank)
    limit = grammar.distances[_HIGHEST_DISTANCE]
    for nic in sorted({device, wiring.nic(rank)}):
        distance = grammar.distances[wiring.path_to_nic(node, device, nic)]
        word, sign = ("Enabled", "<=") if distance <= limit else ("Disabled", ">")
        yield (
            f"GPU Direct RDMA {word} for GPU {wiring.gpu_bus(device):x} / HCA {nic} "
            f"(distance {distance} {sign} {limit})" + (", read 1" if word == "Enabled" else "")
        )


def topology(communicator: Communicator, node: int) -> Iterator[str]:
    """The dump of a host: the tree of devices, the matrix of paths, the search's result."""
    wiring = communicator.wiring
    devices = [communicator.device(rank) for rank in communicator.local(node)]
    has_nvlink = node not in wiring.without_p2p and len(devices) > 1
    total = _NVLINK if has_nvlink else _PCI
    yield f"=== System : maxBw {total:.1f} totalBw {total:.1f} ==="
    for socket in range(2):
        yield f"CPU/0-{socket} (1/1/2)"
        yield f"+ SYS[10.0] - CPU/0-{1 - socket}"
        for number in (one for one in range(wiring.nics) if wiring.socket(one) == socket):
            yield from _switch(communicator, node, number, has_nvlink=has_nvlink)
    yield "=" * 42
    for device in devices:
        yield f"{_gpu(wiring, device)} :" + "".join(_paths(wiring, node, device, devices, has_nvlink=has_nvlink))
    within = "NVL" if has_nvlink else "PHB"
    yield (
        f"Pattern 4, crossNic 0, nChannels {len(communicator.channels)}, bw 40.0/40.0, "
        f"type {within}/PIX, sameChannels 1"
    )
    for channel in communicator.channels:
        chain = [rank for rank in channel.order if communicator.node(rank) == node]
        names = [_gpu(wiring, communicator.device(rank)) for rank in chain]
        if len(communicator.nodes) > 1:
            net = f"NET/0-{wiring.nic(communicator.ranks[chain[0]]):x}"
            names = [net, *names, net]
        yield f"{channel.number:2} : {' '.join(names)}"


def _switch(communicator: Communicator, node: int, number: int, *, has_nvlink: bool) -> Iterator[str]:
    """A PCI switch with the device and the NIC below it."""
    wiring = communicator.wiring
    below = 14 * " "
    yield f"+ PCI[{_PCI:.1f}] - PCI/0-{wiring.switch_bus(number):X} (1000c01010de13b8)"
    for rank in communicator.local(node):
        if communicator.device(rank) == number:
            yield f"{below}+ PCI[{_PCI:.1f}] - {_gpu(wiring, number)} ({rank})"
            if has_nvlink:
                yield f"{below}{below}+ NVL[{_NVLINK:.1f}] - NVS/0-0"
    speed = wiring.speed_megabits.get((node, number), SPEED_MEGABITS) / 8_000
    yield f"{below}+ PCI[{_PCI:.1f}] - NIC/0-{wiring.nic_bus(number):X}"
    yield (f"{below}{below}+ NET[{speed:.1f}] - NET/0-{number:x} (0/{_GUID + 16 * node + number:x}/1/{speed:.6f})")


def _paths(wiring: Wiring, node: int, device: int, devices: list[int], *, has_nvlink: bool) -> Iterator[str]:
    for other in devices:
        kind = wiring.path_between(node, device, other)
        hops, speed = {"LOC": (0, 5000.0), "NVL": (2, _NVLINK), "PHB": (4, _PCI), "SYS": (5, 10.0)}[kind]
        yield f"{_gpu(wiring, other)} ({hops}/{speed:.1f}/{kind}) "
    if has_nvlink:
        yield f"NVS/0-0 (1/{_NVLINK:.1f}/NVL) "
    for socket in range(2):
        kind = "PHB" if wiring.socket(device) == socket else "SYS"
        yield f"CPU/0-{socket} ({2 if kind == 'PHB' else 3}/{_PCI if kind == 'PHB' else 10.0:.1f}/{kind}) "
    for nic in range(wiring.nics):
        kind = wiring.path_to_nic(node, device, nic)
        hops, speed = {"PIX": (3, _PCI), "PXN": (5, _PCI), "PHB": (6, _PCI), "SYS": (7, 10.0)}[kind]
        yield f"NET/0-{nic:x} ({hops}/{speed:.1f}/{kind}) "


def _gpu(wiring: Wiring, device: int) -> str:
    return f"GPU/0-{wiring.gpu_bus(device):X}"
