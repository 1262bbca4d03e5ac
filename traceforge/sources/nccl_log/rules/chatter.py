"""Messages that are known but carry nothing worth a column. Fill only raw.nccl_record, under these names.

Idea: a name says that the message was recognised; add a table when something in it becomes useful.
"""

from traceforge.sources.nccl_log.grammar import Rule, rule

# File and line, and the function since 2.30.7.
_PLACE = r"\S+:\d+ (?:\([^()\s]+\) )?"
# By name: first words of messages, and patterns.
_BY_WORD = {
    "launch_mode": {"Launch": r"Launch mode "},
    "comm_config": {
        "Comm": r"Comm config ",
        "User": r"User asked for a (?:min|max)imum of ",
        "Env": r"Env var for \w+=",
        "Config": r"Config \w+=",
        "minCTAs": r"minCTAs \d+ is larger",
        "maxCTAs": r"maxCTAs \d+ is larger",
        "Communicator": r"Communicator has \d+ nodes which is less",
        "Tuning": r"Tuning P2P operations ",
    },
    "setting_note": {
        "Invalid": r"Invalid value .*? for \w+, using default ",
        "ENV": r"ENV: ",
        "Warning": r"Warning: ENV ",
        "PARAM": r"PARAM: ",
        "Parsed": r"Parsed environment variable ",
    },
    "library_symbol": {
        "dlvsym": r"dlvsym failed on ",
        "dlsym": r"dlsym failed on ",
        "ncclOsDlsym": r"ncclOsDlsym failed on ",
        "Retrieve": r"Retrieve \w+ (?:version \d+ )?failed",
        "GDRCOPY": r"GDRCOPY ",
    },
    "communicator_step": {
        "commDestroySync": r"commDestroySync: ",
        "bootstrapSplit": r"bootstrapSplit: ",
        "CommRevokeAsync": r"CommRevokeAsync ",
        "ncclCommGrow": r"ncclCommGrow: ",
        "ncclCommSuspend": r"ncclCommSuspend: ",
        "ncclCommResume": r"ncclCommResume: ",
    },
    "collnet_layout": {
        "nUp": r"nUp \d+ nHeads ",
        "headRank": r"headRank \d+ out ",
        "CollNetDirect": r"CollNetDirect channel ",
        "CollNet": r"CollNet channel ",
        "Collnet": r"Collnet Chains ",
    },
    "buffer_registration": {
        "rank": r"rank \d+ (?:- )?(?:NET|IPC|COLLNET|NVLS|RMA|\w*register|reuse|successfully|failed to)",
        "Proxy": r"Proxy rank \d+ register ",
        "Cleanup": r"Cleanup buffer ",
    },
    "topology_file": {"Loading": r"Loading (?:topology|graphs) ", "Search": r"Search \d+ : \d+ channels loaded"},
    "profiler": {"Profiler": r"Profiler", "[Profiler": r"\[Profiler Thread\]"},
    "choice_note": {"Best": r"Best tuning", "algSelection": r"algSelection: "},
    "gpu_cpu_link": {"GPU": r"GPU \d+ / HCA \w+ connected to CPU "},
    "p2p_progress": {"P2p": r"P2p connect"},
    "socket_threads": {"NET/Socket": r"NET/Socket ?: (?:Using \d+ threads|ncclNetSocketListen)"},
    "proxy_state": {"[Proxy": r"\[Proxy [\w ]+\] (?:Created|Set|exit)", "UDS": r"UDS\b"},
    "rccl_machine": {
        "Kernel": r"Kernel version: ",
        "Hipruntime": r"Hipruntime version: ",
        "ROCr": r"ROCr version ",
        "Dmabuf": r"Dmabuf feature ",
        "GFX9": r"GFX9 cheap fence ",
        "RCCL": r"RCCL (?!version)",
        "MSCCL": r"MSCCL",
        "initialized": r"initialized internal alternative rsmi ",
        "[node_id": r"\[node_id = \d+; gpu_id = ",
        "[rocprofiler-sdk-rccl][": r"\[rocprofiler-sdk-rccl\]",
    },
    "ring_drawing": {"[RINGS]": r"\[RINGS\]"},
    "topology_nic": {"ncclTopoPopulateNics": r"ncclTopoPopulateNics : "},
    "plugin_state": {
        "Plugin": r"Plugin (?:Path|version) : ",
        "Retrieving": r"Retrieving state for ",
        "Initialized": r"Initialized state \d+ for ",
    },
    "thread_thresholds": {
        "threadThresholds": r"threadThresholds [\d/ |]+",
        "Threads": r"Threads per block : ",
        "Using": r"Using \d+ threads, Min Comp Cap ",
    },
    "confidential_computing": {"CC": r"CC (?:Off|On)"},
    "multi_node_nvlink": {"MNNVL": r"MNNVL "},
    "p2p_type": {"Check": r"Check P2P Type "},
    "ras": {"RAS": r"RAS "},
    "memory_manager": {"MemManager": r"MemManager: ", "Mem": r"Mem Realloc "},
    "proxy_connection": {
        "New": r"New proxy \w+ connection ",
        "Connected": r"Connected to proxy ",
        "Connection": r"Connection to proxy ",
    },
    "proxy_message": {
        "proxyProgressAsync": r"proxyProgressAsync ",
        "ncclPollProxyResponse": r"ncclPollProxyResponse ",
        "Received": r"Received and initiated operation",
        "Queuing": r"Queuing opId=",
        "ProxyCall": r"ProxyCall UDS ",
        "recvConnect": r"recvConnect ",
        "sendConnect": r"sendConnect ",
    },
    "shared_buffer": {
        "MMAP": r"MMAP (?:allocated|imported) shareable",
        "Set": r"Set Access for buffer ",
        "NVLS": r"NVLS ",
        "Allocated": r"Allocated (?:\d+ bytes of )?(?:shareable|shared)",
        "Imported": r"Imported shareable buffer ",
        "CUMEM": r"CUMEM ",
    },
    "symmetric_memory": {
        "Symmetric": r"Symmetric ",
        "symmetricSupport": r"symmetricSupport ",
        "SymCheck": r"SymCheck: ",
    },
    "kernel_limits": {"Kernels": r"Kernels? ", "Skipping": r"Skipping "},
    "virtual_nic": {"TOPO/NET": r"TOPO/NET"},
    "topology_unread": {"Topology": r"Topology detection ?: ", "Could": r"Could not get speed from "},
    "p2p_schedule": {"ncclP2pSchedule": r"ncclP2pSchedule: "},
    "net_devices": {"Local": r"Local Net device counts", "Rank": r"Rank \d+: \d+ \w+ devices"},
    "split_left_out": {"Rank": r"Rank \d+ has color with NCCL_SPLIT_NOCOLOR"},
}
# By name: literals inside messages, and patterns.
_BY_ANCHOR = {
    "allocation": {
        " Cuda ": _PLACE + r"Cuda (?:Host )?(?:[CM]?[Aa]lloc|Free)\w* ",
        " Size ": _PLACE + r"\w[\w ]* Size \d+ ",
        "memory stack": _PLACE + r"memory stack (?:non-)?hunk malloc",
    },
    "shared_buffer": {"shareable ": _PLACE + r"(?:Allocated|Imported) shareable buffer "},
    "memory_manager": {" Mem Realloc ": _PLACE + r"Mem Realloc "},
    "proxy_message": {"pId=": r"re(?:sp\.op|cvOp)Id=0x", "proxyUDSRecvReq": r"proxyUDSRecvReq"},
    "call_retried": {", retrying": _PLACE + r"Call to \w+ returned "},
    "channel_adjustment": {"threadThreshold:": r"(?:pre|post)-adjustment ", "minNChannels:": r"minNChannels:-?\d+$"},
    "comm_config": {"leaving it set at": r"NCCL_\w+ -?\d+ is "},
    "queue_pair": {" Port ": r"NET/\w+ ?: .{0,80}?Dev \d+ Port \d+ "},
    # Functions of the plug-in, which names itself: retries on other ports, and recovery of failed ones.
    "port_recovery": {": ncclIb": r"NET/IB ?: ncclIb\w+: "},
    "request_latency": {": WQE ": r"NET/IB ?: WQE "},
}

CHATTER: tuple[Rule, ...] = (
    *(rule(name, "any", text, word=word) for name, words in _BY_WORD.items() for word, text in words.items()),
    *(rule(name, "any", text, anchor=anchor) for name, some in _BY_ANCHOR.items() for anchor, text in some.items()),
)
