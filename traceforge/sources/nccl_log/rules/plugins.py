"""Plug-ins, networks, NVLink SHARP and registered buffers. Fills raw.nccl_plugin, raw.nccl_nvls, raw.nccl_registration.

What a plug-in message says is found by its first words; the wording drifts with nearly every version.
"""

from traceforge.sources.nccl_log.grammar import Rule, rule

_KIND = r"(?P<kind>NET|COLLNET|CollNet|TUNER|PROFILER|ENV|GIN|RMA)"


def _plugin(event: str, word: str, pattern: str, kind: str | None = None) -> Rule:
    constants = {"event": event} | ({"kind": kind} if kind else {})
    return rule("plugin", "2.4-2.30", pattern, word=word, table="plugin", constants=constants)


def _loader(event: str, pattern: str) -> Rule:
    """A message of the part that loads plug-ins."""
    text = rf"{_KIND}/Plugin ?: {pattern}"
    return rule("plugin", "2.8-2.30", text, anchor="/Plugin", table="plugin", constants={"event": event})


def _nvls(event: str, pattern: str) -> Rule:
    return rule(
        "nvls", "2.17-2.30", pattern, word="NVLS", table="nvls", constants={"event": event}, topic="with_handle"
    )


def is_available(text: str) -> bool:
    """Whether the statement is that it works."""
    return text == "available"


PLUGINS = (
    _plugin("used", "Using", r"Using network (?P<name>.+?)$", "NET"),
    _plugin("used", "Using", r"Using tuner plugin:? '?(?P<name>[^']+?)'?$", "TUNER"),
    _plugin("used", "Using", r"Using non-device net plugin version (?P<detail>\d+)", "NET"),
    _plugin("initialized", "Initialized", rf"Initialized {_KIND} plugin (?P<name>.+?)$"),
    _plugin("failed", "Failed", rf"Failed to initialize {_KIND} plugin ?(?P<name>.*?)$"),
    _plugin("assigned", "Assigned", rf"Assigned {_KIND} plugin (?P<name>.+?) to comm"),
    _plugin("loaded", "P2P", r"P2P plugin (?P<name>.+?)$", "NET"),
    _plugin("named", "Plugin", r"Plugin name set by env to (?P<name>\S+)", "NET"),
    _plugin("loaded", "Successfully", r"Successfully loaded external (?:\w+ )?plugin (?P<name>\S+)", "NET"),
    _plugin("failed", "Failed", r"(?P<detail>Failed to open libibverbs\S*)", "NET"),
    _loader("not_found", r"Could not find: (?P<name>.+?)(?:\. ?(?P<detail>.*))?$"),
    _loader("not_found", r"(?P<detail>.*?No plugin found.*)$"),
    _loader("failed", r"(?P<detail>(?:Plugin load|dlerror).*)$"),
    _loader("symbol_missing", r"Failed to find (?P<name>\w+) symbol(?P<detail>.*)$"),
    _loader("loaded", r"Loaded (?:\w+ )?plugin (?P<name>.+?)(?: \((?P<detail>v\d+)\))?$"),
    _loader("loaded", r"Using (?P<name>\S+) \((?P<detail>v\d+)\)"),
    _loader("internal", r"Using (?P<detail>(?:the )?internal .*)$"),
    _loader("named", r"Plugin name set by env to (?P<name>\S+)"),
    _loader("closed", r"Clos(?:ing|ed) (?:\w+ )?plugin (?P<name>.+?)$"),
    _loader("message", r"(?P<detail>.*)$"),
    rule(
        "plugin",
        "2.4-2.30",
        r"NET/(?P<name>\w+) ?: No device found",
        anchor="No device found",
        table="plugin",
        constants={"event": "no_device", "kind": "NET"},
    ),
    _plugin(
        "provider",
        "NET/OFI",
        r"NET/OFI Selected [Pp]rovider is (?P<name>\S+?),?(?: fabric is \S+)?(?: \((?P<detail>[^)]*)\))?$",
        "NET",
    ),
    _plugin("message", "NET/OFI", r"NET/OFI (?P<detail>.*)$", "NET"),
    rule(
        "nvls",
        "2.17-2.30",
        r"NVLS multicast support is (?P<is_available>available|not available) on dev (?P<device>\d+)",
        word="NVLS",
        table="nvls",
        constants={"event": "support"},
        read={"is_available": is_available},
    ),
    _nvls(
        "communicator",
        r"NVLS comm (?P<comm_pointer>0x[0-9a-f]+) headRank (?P<head_rank>-?\d+) nHeads (?P<head_count>\d+)"
        r"(?: .*?nvlsTotalSize (?P<size_bytes>\d+))?",
    ),
    _nvls("head", r"NVLS Head +(?P<head_rank>\d+):"),
    _nvls("buffer", r"NVLS rank \d+ \(dev (?P<device>\d+)\) "),
    _nvls("group", r"NVLS [A-Z]\w* (?:.*? size (?P<size_bytes>\d+))?"),
    rule(
        "registration",
        "2.19-2.30",
        r"[Rr]egister comm (?P<comm_pointer>0x[0-9a-f.]+) buffer (?P<address>0x[0-9a-f.]+) size (?P<size_bytes>\d+)",
        anchor="egister comm",
        table="registration",
        topic="with_handle",
    ),
)
