"""Connections, rings and trees. Fills raw.nccl_link, raw.nccl_ring_order, raw.nccl_ring_member, raw.nccl_tree.

`[x]` behind a rank is a PCI bus id until 2.17 (and in RCCL), an NVML device since; `/I` came with 2.12 (NET) and 2.14
(P2P), never for SHM. `(rank)` behind a NIC is the rank whose proxy drives it (PXN). In 2.4 and 2.5 `Ring 00 : a -> b
via` is a connection, since 2.10 `Ring 00 : a -> b -> c` a place in a ring.
"""

from traceforge.sources.nccl_log.grammar import rule

_RCCL_TAIL = r"(?: comm (?P<comm_pointer>0x[0-9a-f]+) nRanks 0*(?P<rank_count>\d+)(?: busId \w+)?)?$"
_ENDS = (
    r"(?P<source_rank>\d+)(?:\[(?P<source_device>[0-9a-fx]+)\])? -> "
    r"(?P<target_rank>\d+)(?:\[(?P<target_device>[0-9a-fx]+)\])? (?:\[(?P<direction>send|receive)\] )?"
)

VIA = (
    rule(
        "net",
        "2.4-2.30; names may hold blanks",
        r"(?P<transport>NET|COLLNET)/(?P<network>.+?)/(?P<nic>-?\d+)(?:\((?P<proxy_rank>\d+)\))?"
        r"(?P<is_gdr>/GDRDMA)?(?:\((?P<o1>PCI)\))?(?:/(?P<o2>Shared))?$",
    ),
    rule("collnet_sharp", "2.6-2.30", r"(?P<transport>COLLNET)/(?P<network>\w+)$"),
    rule(
        "p2p",
        "2.4-2.30",
        r"(?P<transport>P2P)/(?P<mode>IPC|CUMEM|MNNVL|direct pointer|indirect/\d+\[\w+\])"
        r"(?:/(?P<o1>read))?(?:/(?P<o2>CE))?$",
    ),
    rule("shm", "2.14-2.30", r"(?P<transport>SHM)(?:/(?P<mode>(?:direct|CE)(?:/(?:direct|CE))?))?$"),
    rule(
        "shm_in_words",
        "2.4-2.13",
        r"(?P<mode>direct shared memory)(?:/(?P<o1>CE))?$",
        constants={"transport": "SHM"},
    ),
)
"""Tried on what stands behind `via`, not on messages."""

CONNECTIONS = (
    rule(
        "link",
        "2.6-2.30",
        rf"Channel (?P<channel>\d+)(?:/(?P<connection_index>\d+))? : {_ENDS}via (?P<via>.+?){_RCCL_TAIL}",
        word="Channel",
        topic="link",
    ),
    rule("link", "2.4-2.5", rf"Ring (?P<channel>\d+) : {_ENDS}via (?P<via>.+?)$", word="Ring", topic="link"),
    rule(
        "link",
        "2.6-2.30, CollNet",
        r"Coll(?:Net)? (?P<channel>\d+)(?:/(?P<connection_index>\d+))? : (?P<source_rank>\d+)"
        r"(?:\[(?P<source_device>[0-9a-fx]+)\])? \[(?P<direction>send|receive)\] via (?P<via>.+?)$",
        anchor="via COLLNET",
        topic="link",
    ),
    rule(
        "ring_order",
        "2.4-2.30; cut after about 20 ranks, marked by ... since 2.23",
        r"Channel (?P<channel>\d+)/(?P<channel_count>\d+) : *(?P<ranks>\d+(?: +\d+)*)?(?: *\.\.\.)?$",
        word="Channel",
        topic="ring_order",
    ),
    # What only inits say: in 2.4 it is all that stands before the connections of most ranks.
    rule("ring_order_uncounted", "2.4", r"Channel \d+ : *\d+(?: +\d+)*$", word="Channel", topic="init_step"),
    rule("nic_distance", "2.3-2.4", r"CUDA Dev \d+\[\d+\], .* distance : ", word="CUDA", topic="init_step"),
    rule(
        "ring_member",
        "2.10-2.30, subsystem GRAPH",
        rf"Ring (?P<channel>\d+) : (?P<previous_rank>-?\d+) -> (?P<rank>-?\d+) -> (?P<next_rank>-?\d+){_RCCL_TAIL}",
        word="Ring",
        table="ring_member",
        topic="with_handle",
    ),
    rule(
        "tree_member",
        "2.10-2.30, subsystem GRAPH",
        r"Tree (?P<channel>\d+) : (?P<parent>-?\d+) -> (?P<rank>-?\d+) -> (?P<children>-?\d+(?:/-?\d+)*)" + _RCCL_TAIL,
        word="Tree",
        topic="tree_member",
    ),
    rule(
        "trees",
        "2.4-2.30; until 2.7 each tree is written down and up, with | between",
        r"Trees (?P<trees>\[\d+\] .+?)" + _RCCL_TAIL,
        word="Trees",
        topic="trees",
    ),
)
