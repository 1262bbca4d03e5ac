"""Where a process runs. In: `/sys`, the environment. Out: facts of the first frame.

Idea: what decides whether a rank is far from its NIC stands in files that any process may read. Only settings of
communication libraries are taken from the environment, for it holds secrets, too. Each fact is left out where the
machine does not tell it. Not handled: what is behind a hypervisor, which tells a story of its own.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

_SETTINGS = ("NCCL_", "TORCH_NCCL_", "GLOO_", "RCCL_", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
_LONGEST_TEXT = 500


def locality(environment: Mapping[str, str], system: Path = Path("/sys")) -> dict[str, object]:
    """Host, process, cores, NUMA nodes, NICs and their distance, settings of communication."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    nodes = _nodes(system)
    own = [number for number, members in nodes.items() if members.intersection(cores)]
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "cores": cores,
        "numa_nodes": own,
        "nics": _nics(system, own),
        "environment": {
            name: value[:_LONGEST_TEXT] for name, value in sorted(environment.items()) if name.startswith(_SETTINGS)
        },
    }


def _nodes(system: Path) -> dict[int, set[int]]:
    """Cores of each NUMA node."""
    folders = sorted(system.glob("devices/system/node/node[0-9]*"))
    return {int(folder.name.removeprefix("node")): _listed(_text(folder / "cpulist")) for folder in folders}


def _nics(system: Path, own_nodes: list[int]) -> list[dict[str, object]]:
    """Network devices that are hardware, with PCI address, NUMA node and how far that is (10: none)."""
    found: list[dict[str, object]] = []
    for folder in sorted(system.glob("class/net/*")):
        if not (folder / "device").exists():
            continue
        node = _number(_text(folder / "device" / "numa_node"))
        distances = [
            int(word)
            for own in own_nodes
            for place, word in enumerate(_text(system / f"devices/system/node/node{own}/distance").split())
            if place == node and word.isdigit()
        ]
        address = (folder / "device").resolve().name
        found.append({"name": folder.name, "pci": address, "numa_node": node, "distance": min(distances, default=None)})
    return found


def _listed(text: str) -> set[int]:
    """Numbers of a list such as `0-3,8`."""
    cores: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            cores.update(range(int(first), int(last or first) + 1))
    return cores


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
