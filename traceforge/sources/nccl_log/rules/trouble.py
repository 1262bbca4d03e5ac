"""Warnings and errors, and what explains them. Fills raw.nccl_event.

Completion errors changed their wording with 2.20 (status=) and 2.28 (names beside numbers); opcodes of failed
operations are garbage before 2.28. A WARN that no rule reads is kept with its text, kind `warning`.
"""

from traceforge.sources.nccl_log.grammar import Rule, rule
from traceforge.sources.nccl_log.quantities import peer_address

_COMPLETION = r"NET/[\w/]+ ?: Got completion(?: from peer (?P<peer>[^\s<]+(?:<\d+>)?))? with "
_GIDS = (
    r"(?:,? (?!localGid |remoteGid|hca )\S+)*"
    r"(?: localGid (?P<local_gid>\S+))?(?: remoteGids? ?(?P<remote_gid>\S+))?(?: hca (?P<nic_name>\S+))?"
)
_PORT = r"NET/[\w/]+ ?: (?:(?P<nic_name>[\w.-]+):\d+ )?"
_HARMLESS_EVENTS = (
    "communication established|send queue drained|path migrated|port active|LID change|P_Key change|SM change"
    "|SRQ limit reached|last WQE reached|client reregistration|GID table change"
)
"""As libibverbs names them (ibv_event_type_str)."""


def _event(kind: str, versions: str, pattern: str, *, word: str | None = None, anchor: str = "") -> Rule:
    return rule(
        kind,
        versions,
        pattern,
        word=word,
        anchor=anchor,
        table="event",
        constants={"kind": kind},
        read={"peer": peer_address},
        topic="event",
    )


TROUBLE = (
    _event(
        "completion_error",
        "2.4-2.19",
        _COMPLETION + r"error (?P<code>\d+)(?:, opcode (?P<opcode>-?\d+))?(?:, len(?: -?\d+)?)?"
        rf"(?:, vendor err (?P<vendor_error>-?\d+))?{_GIDS}",
        anchor="Got completion",
    ),
    _event(
        "completion_error",
        "2.20-2.27",
        _COMPLETION + r"status=(?P<code>\d+) opcode=(?P<opcode>-?\d+) len=-?\d+"
        rf" vendor[ _]err[ =](?P<vendor_error>-?\d+){_GIDS}",
        anchor="Got completion",
    ),
    _event(
        "completion_error",
        "2.28-2.30",
        _COMPLETION + r"status=\w+\((?P<code>\d+)\),? opcode=(?P<opcode>\w+)\(\d+\),?(?: \w+=-?\d+,?)*?"
        rf" vendor[ _]err[ =](?P<vendor_error>-?\d+){_GIDS}",
        anchor="Got completion",
    ),
    _event(
        "request_failed",
        "aws-ofi-nccl",
        r"NET/OFI Request(?: \S+)? completed with error\. RC: (?P<code>-?\d+)",
        word="NET/OFI",
    ),
    _event(
        "request_failed",
        "aws-ofi-nccl",
        r"NET/OFI (?:Unable to|Could not) register memory(?:.*?\. RC: (?P<code>-?\d+))?",
        word="NET/OFI",
    ),
    _event(
        "port_event",
        "2.4-2.32",
        rf"{_PORT}Got (?:non-fatal )?async (?:error )?event ?: (?:{_HARMLESS_EVENTS})",
        anchor="Got ",
    ),
    _event(
        "port_event",
        "2.31-2.32",
        rf"{_PORT}(?:speed change detected|GID refreshed|(?:\w+: )?GID table changed)",
        anchor="NET/IB",
    ),
    _event(
        "async_event",
        "2.4-2.32",
        rf"{_PORT}(?:[Aa]sync fatal event|Got (?:non-fatal )?async (?:error )?event)",
        anchor="async",
    ),
    _event(
        "device_failed",
        "2.30-2.32, with failover of ports",
        rf"{_PORT}(?:\w+: )?(?:Device \d+ marked as failed|Marking device \d+ as permanently failed"
        r"|marking device with fatal error)",
        anchor="NET/IB",
    ),
    _event(
        "connect_retry",
        "2.27-2.30",
        r".*?connect(?: to (?P<peer>\S+))? (?:returned|failed).*retrying(?: \((?P<code>\d+)/)?",
        anchor="retrying",
    ),
    _event(
        "connection_closed",
        "2.4-2.30",
        r".*?[Cc]onnection closed by (?:remote )?(?:peer|localRank)(?: (?P<peer>[^\s<]+))?",
        anchor="onnection closed",
    ),
    _event(
        "call_failed",
        "2.4-2.32",
        r"(?:(?:NET/)?\w+ ?: )?Call to \w+(?: (?:from|to) (?P<peer>\S+))? (?:failed|returned|timed out)",
        anchor="Call to ",
    ),
    _event(
        "call_failed",
        "2.20-2.30",
        r"(?:\w+: )?connect to (?P<peer>\S+) returned .*exceeded error retry count",
        anchor="exceeded error retry",
    ),
    _event("call_failed", "2.4-2.30", r"\w+\(\) failed", anchor="() failed"),
    _event("cuda_failure", "2.4-2.30", r"(?:Cuda|CUDA|HIP|Hip) failure (?:(?P<code>\d+) )?'", anchor=" failure "),
    _event(
        "unwinding",
        "2.3-2.32; the function since 2.30.7",
        r"(?P<place>[\w./-]+\.(?:cc|cu|cuh|cpp|c|h|hpp):\d+)(?: \([^()\s]{1,200}\))? -> (?P<code>-?\d+)",
        anchor=" -> ",
    ),
    _event("p2p_disabled", "2.8-2.30", r"P2P is disabled between", word="P2P"),
    _event("nvlink_domain", "2.20-2.32", r"MNNVL busId \S+ fabric UUID \S+ cliqueId \S+ state \d+", word="MNNVL"),
    _event("p2p_unavailable", "2.4-2.12, where CUDA has none", r"Could not enable P2P between dev", word="Could"),
    _event("duplicate_gpu", "2.5-2.30", r"Duplicate GPU detected", word="Duplicate"),
    _event("mismatched_collective", "2.4", r"Mismatched collective detected", word="Mismatched"),
    _event(
        "mismatched_collective",
        "2.4-2.32, where what comes is not what was asked for; of bootstrap, other versions or settings",
        r"NET/[\w/]+ ?: (?:req \S+ tag \w+ )?peer (?P<peer>\S+) (?:collective mismatch error|message truncated)",
        anchor="NET/",
    ),
    _event("mismatched_collective", "2.4-2.32", r"Message truncated ?: received", word="Message"),
    _event(
        "mismatched_start",
        "2.3-2.30, where ranks begin one communicator with other sizes, numbers or versions (info)",
        r"Bootstrap Root ?: (?:mismatch in (?:rank count|info)|rank \d+ of \d+ ranks has already checked in)",
        word="Bootstrap",
    ),
    _event("no_path", "2.5-2.30", r"Could not find a path for pattern (?P<code>\d+)", word="Could"),
    _event("shared_memory", "2.8-2.30", r"Error(?:: failed to extend| while (?:creating|attaching))", word="Error"),
    _event("network_not_found", "2.8-2.30", r"Error: network .+ not found", word="Error"),
    _event("network_not_found", "2.27-2.32", r"Failed to initialize any NET plugin", word="Failed"),
    _event(
        "plugin_failed",
        "aws-ofi-nccl",
        r"NET/\w+ (?:Unable to find a protocol that worked|\S+ initialization failed|Initializing plugin failed"
        r"|Finalizing already finalized plugin)",
        word="NET/OFI",
    ),
)
