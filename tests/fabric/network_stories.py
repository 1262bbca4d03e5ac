"""Logs of pairs of ranks whose network, or NVLink between hosts, is not what it could be."""

from tests.fabric.logs import Process


def fallen_back(*, nodes: int = 2) -> list[Process]:
    """Two ranks whose plug-in for EFA does not start; the log ends before they connect."""
    processes = [Process(rank, host="ab"[rank % nodes], device=rank // nodes) for rank in range(2)]
    for process in processes:
        for text in ("Unable to find a protocol that worked.  Failing initialization.", "Initializing plugin failed"):
            process.lines.append(process.head.replace("INFO", f"WARN NET/OFI {text}").rstrip())
        process.says("NET/IB : No device found.", "Using network Socket").init()
    return processes


def joined_by_nvlink(*, domains: str = "77", state: int = 3) -> list[Process]:
    """Two hosts, each in some domain of NVLink, which connect over InfiniBand."""
    processes = [Process(rank, host="ab"[rank]) for rank in range(2)]
    for process, domain in zip(processes, domains, strict=True):
        uuid = "0.0 cliqueId 0x0" if domain == "0" else f"a4{domain}.7d cliqueId 0x7ffe"
        process.says(f"MNNVL busId 0x801000 fabric UUID {uuid} state {state} healthMask 0xaa").init()
        process.sends(1 - process.rank, "NET/IB/0/GDRDMA").receives(1 - process.rank, "NET/IB/0/GDRDMA")
    return processes
