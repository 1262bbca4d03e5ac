"""Algorithm choices and NCCL's performance model. Fills raw.nccl_tuning, raw.nccl_tuning_model.

Numbers became names with 2.24, which also dropped the predicted time; kernels without an algorithm came with 2.27.
"""

import re

from traceforge.sources.nccl_log.grammar import fitting, rule
from traceforge.sources.nccl_log.quantities import integer, microseconds

_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
_PROTOCOLS = ("ll", "ll128", "simple")
_NAMES = {name.replace("_", ""): name for name in (*_ALGORITHMS, *_PROTOCOLS)} | {"collnet": "collnet_direct"}
_MODES = {
    "Symmetric": "symmetric",
    "Copy Engine": "copy_engine",
    "CE": "copy_engine",
    "Hierarchical CE": "hierarchical_copy_engine",
}


def algorithm(text: str) -> str:
    """Name of an algorithm: its number before 2.24, or any spelling of its name; others stay as they are."""
    number = integer(text)
    if number is not None:
        return _ALGORITHMS[number] if 0 <= number < len(_ALGORITHMS) else text
    return _NAMES.get(text.lower().replace("_", ""), text.lower())


def protocol(text: str) -> str:
    """Name of a protocol: its number before 2.24, or any spelling of its name; others stay as they are."""
    number = integer(text)
    if number is not None:
        return _PROTOCOLS[number] if 0 <= number < len(_PROTOCOLS) else text
    return _NAMES.get(text.lower().replace("_", ""), text.lower())


def mode(text: str) -> str:
    """Name of a way of execution that has no algorithm."""
    return _MODES.get(text, text.lower().replace(" ", "_"))


def tuning_tail(match: re.Match[str]) -> dict[str, object]:
    """The part of a choice of the form of 2.24 that recurs from line to line."""
    return {
        "algorithm": algorithm(match["algorithm"]),
        "protocol": protocol(match["protocol"]),
        "channel_low": fitting(integer(match["channel_low"]), "i32"),
        "channel_high": fitting(integer(match["channel_high"]), "i32"),
    }


_READ = {"algorithm": algorithm, "protocol": protocol}

TUNINGS = (
    rule(
        "tuning",
        "2.24-2.32; cgaClusterSize since 2.31",
        r"(?P<op>\w+): (?P<size_bytes>\d+) Bytes -> Algo (?P<algorithm>\w+) proto (?P<protocol>\w+)"
        r" channel\{Lo\.\.Hi\}=\{(?P<channel_low>\d+)\.\.(?P<channel_high>\d+)\}(?: cgaClusterSize \d+)?$",
        anchor=" Bytes -> Algo ",
        table="tuning",
        read=_READ,
    ),
    rule(
        "tuning",
        "2.5-2.23; Op since 2.23",
        r"(?:(?P<op>\w+): )?(?P<size_bytes>\d+) Bytes -> Algo (?P<algorithm>\d+) proto (?P<protocol>\d+)"
        r" time (?P<predicted_ns>[\d.]+)$",
        anchor=" Bytes -> Algo ",
        table="tuning",
        read={**_READ, "predicted_ns": microseconds},
    ),
    rule(
        "tuning",
        "2.27-2.32",
        r"(?P<op>\w+) \[(?P<algorithm>[\w ]+)\]: (?P<size_bytes>\d+) Bytes -> (?:Kernel )?(?P<kernel>\S+)"
        r"(?: nchannels (?P<channel_count>\d+))?(?: nthreads (?P<thread_count>\d+))?",
        anchor=" Bytes -> ",
        table="tuning",
        read={"algorithm": mode},
    ),
    rule(
        "model_head",
        "2.5-2.30",
        r" *(?P<kind>Algorithm|Protocol|Max NThreads|Latency/AlgBw) *\|(?P<cells>.*)$",
        anchor="|",
        topic="model_head",
    ),
    rule(
        "model_row",
        "2.5-2.30",
        r" *(?P<op>[A-Z]\w+) \|(?P<cells>(?: *[\d.]+/ *[\d.]+ \|)+)$",
        anchor="|",
        topic="model_row",
    ),
    rule("enabled_matrix", "2.22-2.30", r"Enabled NCCL Func/Proto/Algo Matrix:", word="Enabled"),
)
