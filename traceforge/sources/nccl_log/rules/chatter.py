"""Messages that are known but carry nothing worth a column. Fill only raw.nccl_record, under these names.

Idea: a name says that the message was recognised; add a table when something in it becomes useful.
"""

from traceforge.sources.nccl_log.grammar import Rule, rule

# File and line, and the function since 2.30.7.
_PLACE = r"\S+:\d+ (?:\([^()\s]+\) )?"
# By name: first words of messages, and patterns.
_BY_WORD = {
    "launch_mode": {"Launch": r"Launch mode "},
    "comm_config": {"Comm": r"Comm config "},
    "rccl_machine": {
        "Kernel": r"Kernel version: ",
        "Hipruntime": r"Hipruntime version: ",
        "ROCr": r"ROCr version ",
        "Dmabuf": r"Dmabuf feature ",
        "GFX9": r"GFX9 cheap fence ",
        "RCCL": r"RCCL Unroll Factor ",
        "initialized": r"initialized internal alternative rsmi ",
        "[node_id": r"\[node_id = \d+; gpu_id = ",
        "[rocprofiler-sdk-rccl][": r"\[rocprofiler-sdk-rccl\]",
    },
    "queue_pair": {"NET/IB": r"NET/IB ?: (?:NCCL Dev \d+ )?IbDev \d+ Port "},
    "ring_drawing": {"[RINGS]": r"\[RINGS\]"},
    "topology_nic": {"ncclTopoPopulateNics": r"ncclTopoPopulateNics : "},
    "plugin_state": {"Retrieving": r"Retrieving state for ", "Initialized": r"Initialized state \d+ for "},
    "thread_thresholds": {"threadThresholds": r"threadThresholds [\d/ |]+"},
    "confidential_computing": {"CC": r"CC (?:Off|On)"},
    "multi_node_nvlink": {"MNNVL": r"MNNVL "},
    "p2p_type": {"Check": r"Check P2P Type "},
    "ras": {"RAS": r"RAS "},
    "memory_manager": {"MemManager": r"MemManager: ", "Mem": r"Mem Realloc "},
    "proxy_connection": {"New": r"New proxy \w+ connection ", "Connected": r"Connected to proxy "},
    "proxy_message": {
        "proxyProgressAsync": r"proxyProgressAsync ",
        "ncclPollProxyResponse": r"ncclPollProxyResponse ",
        "Received": r"Received and initiated operation",
    },
    "shared_buffer": {
        "MMAP": r"MMAP allocated shareable",
        "Allocated": r"Allocated (?:\d+ bytes of )?(?:shareable|shared)",
        "Imported": r"Imported shareable buffer ",
        "CUMEM": r"CUMEM ",
    },
    "symmetric_memory": {"Symmetric": r"Symmetric memory "},
    "kernel_limits": {"Kernels": r"Kernels? ", "Skipping": r"Skipping "},
    "virtual_nic": {"TOPO/NET": r"TOPO/NET"},
    "topology_unread": {"Topology": r"Topology detection ?: could not read ", "Could": r"Could not get speed from "},
    "p2p_schedule": {"ncclP2pSchedule": r"ncclP2pSchedule: "},
    "net_devices": {"Local": r"Local Net device counts", "Rank": r"Rank \d+: \d+ Net devices"},
}
# By name: literals inside messages, and patterns.
_BY_ANCHOR = {
    "allocation": {
        " Cuda ": _PLACE + r"Cuda (?:Host )?(?:[CM]?[Aa]lloc|Free)\w* ",
        " Size ": _PLACE + r"\w[\w ]* Size \d+ ",
        "memory stack": _PLACE + r"memory stack (?:non-)?hunk malloc",
    },
    "proxy_message": {"resp.opId=": r"resp\.opId=0x"},
}

CHATTER: tuple[Rule, ...] = (
    *(rule(name, "any", text, word=word) for name, words in _BY_WORD.items() for word, text in words.items()),
    *(rule(name, "any", text, anchor=anchor) for name, some in _BY_ANCHOR.items() for anchor, text in some.items()),
)
