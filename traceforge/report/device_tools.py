"""Commands that look at devices. In: names of a job's devices. Out: the tools of their maker, or none.

Idea: what a page tells people to run has to exist on their hosts. Where no name was recorded NVIDIA's tools are meant,
as on most hosts. Not handled: jobs on devices of several makers, and makers whose tools nobody here has seen.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NVIDIA = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|RTX|\b(GB|GH|[ABHLTVP])\d{2,3}\b", re.IGNORECASE)
_AMD = re.compile(r"\bAMD\b|Instinct|Radeon|\bMI\d{2,3}|\bgfx\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeviceTools:
    """What shows how devices run, which path each has to its NIC, and errors of the links between them."""

    clocks: str
    paths: str
    link_errors: str
    link_name: str


NVIDIA = DeviceTools("nvidia-smi -q -d CLOCK,POWER,PERFORMANCE", "nvidia-smi topo -m", "nvidia-smi nvlink -e", "NVLink")
AMD = DeviceTools(
    "amd-smi metric --clock --power --temperature", "amd-smi topology", "amd-smi metric --xgmi-err", "XGMI"
)


def tools_of(names: Iterable[str]) -> DeviceTools | None:
    """The tools for devices of these names; None where they are of several makers, or of another one."""
    found = {AMD if _AMD.search(name) else NVIDIA if _NVIDIA.search(name) else None for name in names}
    return next(iter(found or {NVIDIA})) if len(found) < 2 else None
