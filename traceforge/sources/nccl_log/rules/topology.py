"""What NCCL found of the machine (subsystem GRAPH). Fills raw.nccl_topology*, raw.nccl_path, raw.nccl_graph*.

Ids are `GPU/81000` until 2.20, `GPU/0-81000` since 2.21; bandwidths were called widths and speeds until 2.13;
indentation is depth: a `+` stands below the name of the node it hangs on.
"""

from traceforge.sources.nccl_log.grammar import rule
from traceforge.sources.nccl_log.quantities import gigabytes

_NODE = r"[A-Z][A-Z0-9]*/[0-9A-Fa-f]+(?:-[0-9A-Fa-f]+)?"
_PATTERNS = {
    "1": "balanced_tree",
    "2": "split_tree",
    "3": "tree",
    "4": "ring",
    "5": "nvls",
    "6": "collnet_direct",
}


def pattern_name(text: str) -> str:
    """Name of a pattern's number; the number where unknown."""
    return _PATTERNS.get(text, text)


def is_one(text: str) -> bool:
    """Whether a flag is set."""
    return text == "1"


TOPOLOGY = (
    rule(
        "topology",
        "2.4-2.30",
        r"=== System : max(?:Bw|Width|Speed) (?P<max_bandwidth_bytes_per_s>[\d.]+)"
        r"(?: total(?:Bw|Width|Speed) (?P<total_bandwidth_bytes_per_s>[\d.]+))? ===",
        word="===",
        read={"max_bandwidth_bytes_per_s": gigabytes, "total_bandwidth_bytes_per_s": gigabytes},
        topic="topology",
    ),
    rule("topology_end", "2.4-2.30", r"={20,}$", anchor="===="),
    rule(
        "topology_node",
        "2.4-2.30",
        r"(?P<indent> *)(?:\+ (?P<link>[A-Z0-9]+)\[(?P<bandwidth_bytes_per_s>[\d.]+)\] - )?"
        rf"(?P<name>{_NODE})(?: \((?P<detail>[^()]*)\))?$",
        anchor="/",
        topic="topology_node",
    ),
    rule(
        "paths",
        "2.4-2.30",
        rf"(?P<from_name>{_NODE}) :(?P<paths>(?:{_NODE} \(\d+/[\d.]+/[A-Z0-9]+\) ?)+)$",
        anchor=" :",
        read={"bandwidth_bytes_per_s": gigabytes},
        topic="paths",
    ),
    rule(
        "graph",
        "2.5-2.30; speed until 2.13",
        r"Pattern (?P<pattern>\d+), crossNic (?P<cross_nic>\d+), nChannels (?P<channel_count>\d+),"
        r" (?:bw|speed) (?P<intra_bandwidth_bytes_per_s>[\d.]+)/(?P<inter_bandwidth_bytes_per_s>[\d.]+),"
        r" type (?P<intra_path_type>\w+)/(?P<inter_path_type>\w+), sameChannels (?P<has_same_channels>\d)",
        word="Pattern",
        read={
            "pattern": pattern_name,
            "intra_bandwidth_bytes_per_s": gigabytes,
            "inter_bandwidth_bytes_per_s": gigabytes,
            "has_same_channels": is_one,
        },
        topic="graph",
    ),
    rule(
        "graph_channel",
        "2.5-2.30",
        r" *(?P<channel>\d+) :(?P<nodes>(?: (?:[A-Z][A-Z0-9]*/[0-9A-Fa-f-]+(?:\(\d+\))?))+)$",
        anchor=" : ",
        topic="graph_channel",
    ),
)
