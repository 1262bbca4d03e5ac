"""Life of communicators: init, split, layout, channel counts, timings, destroy. Fills raw.nccl_communicator, _timing.

One pattern reads the START and COMPLETE lines of all versions, which only ever gained words: nvmlDev and commId with
2.18, the API's name with 2.21, `[Rank r]` with 2.29; commId left the line of a split with 2.23.
"""

from traceforge.sources.nccl_log.grammar import rule
from traceforge.sources.nccl_log.quantities import address, comm_hash, pci_address

_POINTER = r"(?:0x[0-9a-f.]+|\(nil\))"

COMMUNICATORS = (
    rule(
        "communicator",
        "2.4-2.30; RCCL adds localSize, used and core",
        r"(?:\[Rank \d+\] )?(?:(?P<api>nccl\w+) )?"
        rf"comm (?P<comm_pointer>{_POINTER}) rank (?P<rank>\d+) n[rR]anks (?P<rank_count>\d+)"
        r"(?: cudaDev (?P<device>\d+))?(?: nvmlDev (?P<nvml_device>\d+))?(?: busId (?P<pci_address>\w+))?"
        rf"(?: parent (?P<parent_pointer>{_POINTER}))?(?: (?:splitCount|childCount) \d+)?"
        r"(?: color (?P<split_color>-?\d+))?(?: key (?P<split_key>-?\d+))?(?: commId (?P<comm_hash>0x[0-9a-f.]+))?"
        r"(?: localSize \d+)?(?: used \d+ bytes)?(?: on core \d+)? ?"
        r"- (?P<what>Init|Destroy|Abort|Revoke|Finalize|Shrink|Grow|Split) (?P<phase>START|COMPLETE)",
        anchor="comm ",
        read={"pci_address": pci_address, "parent_pointer": address, "comm_hash": comm_hash},
        topic="communicator",
    ),
    rule(
        "communicator_torn",
        "2.21-2.32, where another rank wrote into the line: of its numbers the last may have lost digits",
        rf"(?:\[Rank \d+\] )?nccl\w+ comm (?P<comm_pointer>{_POINTER}) rank (?P<rank>\d+) nranks (?P<rank_count>\d+)"
        r" cudaDev ",
        anchor="comm ",
        topic="communicator_facts",
    ),
    rule(
        "communicator_layout",
        "2.20-2.30",
        rf"comm (?P<comm_pointer>{_POINTER}) rank (?P<rank>\d+) nRanks (?P<rank_count>\d+) nNodes (?P<node_count>\d+)"
        r" localRanks (?P<local_rank_count>\d+) localRank (?P<local_rank>\d+)",
        word="comm",
        topic="communicator_facts",
    ),
    rule(
        "communicator_hash",
        "2.29-2.30, of splits",
        r"(?:\[?Rank (?P<rank>\d+)[\]:] )?Generated commHash (?P<comm_hash>0x[0-9a-f]+) from baseMagic 0x[0-9a-f]+"
        r"(?: and newNRanks (?P<rank_count>\d+))?",
        anchor="commHash",
        read={"comm_hash": comm_hash},
        topic="communicator_facts",
    ),
    rule(
        "channel_counts",
        "2.8-2.30",
        rf"(?:comm (?P<comm_pointer>{_POINTER}),? )?(?P<channel_count>\d+) coll channels,"
        r"(?: (?P<collnet_channel_count>\d+) collnet channels,)?(?: (?P<nvls_channel_count>\d+) nvls channels,)?"
        r" (?P<p2p_channel_count>\d+) p2p channels(?:, (?P<p2p_channels_per_peer>\d+) p2p channels per peer)?",
        anchor=" coll channels",
        topic="communicator_facts",
    ),
    rule(
        "channel_counts",
        "RCCL 2.27",
        rf"comm:(?P<comm_pointer>{_POINTER}), nRanks:(?P<rank_count>\d+), nNodes:(?P<node_count>\d+),"
        r" coll channels:(?P<channel_count>\d+) collnet channels:(?P<collnet_channel_count>\d+),"
        r" nvls channels:(?P<nvls_channel_count>\d+), p2p channels:(?P<p2p_channel_count>\d+),"
        r" p2p channels per peer:(?P<p2p_channels_per_peer>\d+)",
        anchor=" coll channels",
        topic="communicator_facts",
    ),
    rule(
        "p2p_chunk",
        "2.18-2.30",
        r"P2P Chunksize set to (?P<p2p_chunk_bytes>\d+)",
        word="P2P",
        topic="communicator_facts",
    ),
    rule(
        "connected",
        "2.10-2.30; RCCL adds comm",
        r"Connected (?:all (?:rings|trees)|NVLS tree|binomial trees|Coll[nN]et(?: Chains)?)"
        r"(?:, use ring PXN \d+ GDR \d+)?"
        rf"(?: comm (?P<comm_pointer>{_POINTER}) nRanks 0*(?P<rank_count>\d+)(?: busId (?P<pci_address>\w+))?)?",
        word="Connected",
        read={"pci_address": pci_address},
        topic="communicator_facts",
    ),
    rule(
        "init_timings",
        "2.22-2.30; the API's name and alloc since 2.23",
        r"Init timings(?: - (?P<api>\w+))?: rank (?P<rank>\d+) nranks (?P<rank_count>\d+) total (?P<total>[\d.]+)"
        r"(?: \((?P<phases>[^)]*)\))?",
        word="Init",
        constants={"scope": "init"},
        topic="timings",
    ),
    rule(
        "bootstrap_timings",
        "2.23-2.30",
        r"Bootstrap timings total (?P<total>[\d.]+)(?: \((?P<phases>[^)]*)\))?",
        word="Bootstrap",
        constants={"scope": "bootstrap"},
        topic="timings",
    ),
    rule(
        "connect_timings",
        "2.24-2.30, subsystem PROFILE",
        r"timings: rank (?P<rank>\d+) nranks (?P<rank_count>\d+) (?P<scope>.+?) done in (?P<total>[\d.]+)",
        word="timings",
        topic="timings",
    ),
)
