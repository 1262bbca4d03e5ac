"""NICs, interfaces and GPU Direct RDMA. Fills raw.nccl_nic, raw.nccl_gdr.

`distance d > l` compares path types whose integers vary by version (2.6, 2.8, 2.12, 2.21, 2.26, 2.27 all differ): kept
as text. Rail and plane came with 2.30.
"""

import re

from traceforge.sources.nccl_log.grammar import Rule, rule
from traceforge.sources.nccl_log.quantities import megabits

IB_ITEM = re.compile(
    r"\[(?P<nic>\d+)\](?P<name>[\w.+-]+):(?P<port>\d+)(?::(?P<rail>-?\d+))?(?::(?P<plane>-?\d+))?(?:/(?P<link>\w+))?"
)
INTERFACE_ITEM = re.compile(r"(?:\[(?P<nic>\d+)\])?(?P<name>[\w.@-]+):(?P<address>[^\s<]+)(?:<\d+>)?")


def is_enabled(text: str) -> bool:
    """Whether the statement is that it works."""
    return text in ("Enabled", "available")


def last_of_path(text: str) -> str:
    """PCI address at the end of a path of the system's device tree."""
    return text.rstrip("/").rpartition("/")[2]


def _gdr(versions: str, pattern: str) -> Rule:
    start = r"(?:NET/\w+ ?: )?GPU Direct RDMA (?P<is_enabled>Enabled|Disabled) for "
    return rule(
        "gdr",
        versions,
        start + pattern + r"(?: \((?P<reason>[^)]*)\))?",
        anchor="GPU Direct RDMA",
        table="gdr",
        read={"is_enabled": is_enabled},
    )


NETWORKS = (
    rule(
        "nics",
        "2.4-2.30",
        r"NET/(?P<network>IB\w*) ?: Using (?P<items>(?:\[\d+\]\S+ ?)*)(?:\[RO\])? ?;? ?(?:OOB (?P<oob>\S+))?$",
        anchor="NET/IB",
        topic="nics",
    ),
    rule(
        "nics",
        "plug-ins made of NCCL's own code for InfiniBand, under other names",
        r"NET/(?P<network>\w+) ?: Using (?P<items>(?:\[\d+\][\w.+-]+:\d+(?::-?\d+){0,2}/\w+ ?)+)(?:\[RO\])? ?;? ?"
        r"(?:OOB (?P<oob>\S+))?$",
        anchor=" : Using [",
        topic="nics",
    ),
    rule(
        "interfaces",
        "2.4-2.30; plug-ins that use sockets have names of their own",
        r"NET/(?P<network>\w*Socket) ?: Using (?P<items>.*)$",
        anchor="Socket : Using",
        topic="interfaces",
    ),
    rule(
        "interfaces",
        "2.4-2.30",
        r"(?P<network>Bootstrap) ?: Using (?P<items>.*)$",
        word="Bootstrap",
        topic="interfaces",
    ),
    rule(
        "nic",
        "2.19-2.32; its number is that of libibverbs, not the one of NCCL",
        r"NET/(?P<network>\w+) ?: \[\d+\] (?P<name>[\w.+-]+):\w+:(?P<port>\d+)/(?P<link>\w+)"
        r"(?: provider=\S+)?(?: speed=(?P<speed_bytes_per_s>\d+))?(?: context=\S+)?"
        r"(?: pciPath=(?:\(null\)|(?P<pci_address>\S+)))?",
        anchor=" context=",
        table="nic",
        read={"speed_bytes_per_s": megabits, "pci_address": last_of_path},
    ),
    rule(
        "virtual_nic",
        "2.23-2.30",
        r"NET/(?P<network>\w+) ?: Made virtual device \[(?P<nic>\d+)\] name=(?P<name>\S+)"
        r" speed=(?P<speed_bytes_per_s>\d+) ndevs=\d+(?: rail=(?P<rail>-?\d+))?",
        anchor="Made virtual device",
        table="nic",
        read={"speed_bytes_per_s": megabits},
    ),
    rule(
        "nic",
        "aws-ofi-nccl",
        r"NET/(?P<network>OFI) NIC group (?P<nic>\d+) device #\d+ (?P<pci_address>[0-9a-f:.]+)",
        word="NET/OFI",
        table="nic",
    ),
    _gdr("2.14-2.30", r"HCA (?P<nic>\d+)(?: '(?P<nic_name>[^']*)')?"),
    _gdr("2.6-2.28; TRACE only from 2.30.7", r"GPU (?P<gpu>\w+) / HCA (?P<nic>\w+)"),
    _gdr("2.29-2.30", r"(?P<gpu>GPU/[\w-]+)(?: \(rank \d+\))? - (?P<nic>NET/[\w-]+)"),
    rule(
        "gdr",
        "2.17-2.30",
        r"DMA-BUF is (?P<is_enabled>available|not available) on GPU device (?P<gpu>-?\d+)",
        word="DMA-BUF",
        table="gdr",
        constants={"reason": "DMA-BUF"},
        read={"is_enabled": is_enabled},
    ),
    rule(
        "gdr",
        "aws-ofi-nccl 1.16",
        r"NET/OFI (?P<reason>Could not disable CUDA API usage for HMEM), disabling GDR",
        word="NET/OFI",
        table="gdr",
        constants={"is_enabled": False},
    ),
)
