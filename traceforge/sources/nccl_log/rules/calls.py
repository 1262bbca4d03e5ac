"""Calls: COLL lines, API calls, RCCL's kernel trace. Fills raw.nccl_collective_call, raw.nccl_kernel_event.

COLL lines are the same in all versions from 2.4 to 2.32; most never get here (see canonical_lines).
"""

from traceforge.sources.nccl_log.grammar import rule
from traceforge.sources.nccl_log.quantities import pci_address, seconds

_POINTER = r"(?:0x[0-9a-f.]+|\(nil\))"
_API_ARGUMENTS = (
    r"\((?P<send_address>[^,]*),(?P<receive_address>[^,]*),(?P<element_count>\d+),(?P<datatype>\d+),"
    r"(?P<reduction>-?\d+),(?P<root>-?\d+),(?P<comm>[^,]*),(?P<stream>[^,)]*)\)"
)

CALLS = (
    rule(
        "collective_call",
        "2.4-2.32; RCCL adds task and globalrank, and acc in 2.27",
        rf"(?P<op>[A-Za-z]\w*): opCount (?P<op_count>[0-9a-f]+) sendbuff (?P<send_address>{_POINTER})"
        rf" recvbuff (?P<receive_address>{_POINTER})(?: acc {_POINTER})? count (?P<element_count>\d+)"
        rf" datatype (?P<datatype>\d+) op (?P<reduction>\d+) root (?P<root>-?\d+) comm (?P<comm>{_POINTER})"
        r"(?: \[nranks=(?P<rank_count>\d+)\])?"
        rf"(?: stream (?P<stream>{_POINTER}))?(?: task (?P<task>\d+))?(?: globalrank (?P<global_rank>\d+))?$",
        anchor=": opCount ",
        topic="call",
    ),
    rule(
        "api_call",
        "2.13-2.30, level CALL; the buffer that a Send or Recv does not have is 0",
        r"nccl(?P<op>AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AlltoAll|Gather|Scatter|Send|Recv)"
        + _API_ARGUMENTS,
        anchor="nccl",
        topic="api_call",
    ),
    rule("api_other", "2.13-2.30, level CALL", r"nccl[A-Z]\w*\(.*\)?$", anchor="nccl"),
    rule(
        "kernel_event",
        "RCCL 2.8-2.21",
        r"## \[\s*(?P<device_time_ns>\d+\.\d+)\] "
        r"\[(?P<rank>\d+):(?P<block>\d+)(?:[:-](?P<channel>\d+))?(?::[0-9a-f]+)?\]"
        r" (?:L:\d+ )?(?P<op_count>[0-9a-f]+(?:-[0-9a-f]+)?) (?P<event>[A-Z]{2})\b(?: HWID +[0-9a-f]+)?"
        r"(?: (?P<function>[A-Za-z]\w*_\w+))?(?:.*? busId (?P<pci_address>[0-9a-fA-F]+))?"
        r"(?: nRanks (?P<rank_count>\d+))?(?: comm (?P<comm>0x[0-9a-f]+))?",
        word="##",
        read={"device_time_ns": seconds, "pci_address": pci_address},
        topic="kernel_event",
    ),
    rule("kernel_data", "RCCL 2.8-2.21", r"## \[\s*\d+\.\d+\] \[[^\]]*\] L:\d+ DT ", word="##"),
)
