"""What concerns a process: versions, settings, where it runs. Fills raw.nccl_version, _environment, _cpu_placement.

The full stop behind a value is printed for integers only, and taken off.
"""

from traceforge.sources.nccl_log.grammar import Rule, rule
from traceforge.sources.nccl_log.quantities import value_of_setting

_NAME = r"(?P<name>[A-Z][A-Z0-9_]*)"


def _version(component: str, versions: str, pattern: str, word: str) -> Rule:
    return rule("version", versions, pattern, word=word, table="version", constants={"component": component})


PROCESSES = (
    rule(
        "version",
        "2.3-2.30, RCCL; without head on rank 0 until 2.21",
        r"(?P<flavour>NCCL|RCCL) version ?:? ?(?P<version>\d[\w.]*)"
        r"(?:\+(?P<platform>cuda|hip|rocm)(?P<platform_version>[\d.]+))?",
        anchor="CCL version",
        topic="version",
    ),
    _version("nccl_git", "2.29-2.30", r"NCCL git version (?P<version>.+?)$", "NCCL"),
    _version("cuda_driver", "2.12-2.30", r"cudaDriverVersion (?P<version>\d+)", "cudaDriverVersion"),
    _version(
        "aws_ofi_nccl",
        "aws-ofi-nccl",
        r"NET/OFI (?:Initializing|Using) aws-ofi-nccl (?P<version>\S+)",
        "NET/OFI",
    ),
    _version("libfabric", "aws-ofi-nccl", r"NET/OFI Using Libfabric version (?P<version>\S+)", "NET/OFI"),
    _version("cuda_driver", "aws-ofi-nccl", r"NET/OFI Using CUDA driver version (?P<version>\S+)", "NET/OFI"),
    _version("gib", "Google's plug-in", r"NET/gIB ?: Initializing gIB v?(?P<version>\S+)", "NET/gIB"),
    rule(
        "environment",
        "2.4-2.30",
        rf"{_NAME} set by (?P<origin>\w[\w ]*?) to (?P<value>.*)$",
        anchor=" set by ",
        table="environment",
        read={"value": value_of_setting},
    ),
    rule(
        "environment",
        "2.7-2.30",
        rf"{_NAME} set to (?P<value>.*)$",
        anchor=" set to ",
        table="environment",
        constants={"origin": "adopted"},
        read={"value": value_of_setting},
    ),
    rule(
        "environment",
        "aws-ofi-nccl",
        rf"NET/OFI (?:Running on .*?, )?(?:Setting|Adding) {_NAME}(?: environment variable)?(?: to |=)(?P<value>\S+)",
        word="NET/OFI",
        table="environment",
        constants={"origin": "plugin"},
    ),
    rule(
        "cpu_affinity",
        "2.4-2.27, a mask first, then ranges of cores",
        r"Setting affinity for GPU (?P<device>\d+) to (?P<cpu_set>[0-9a-f,-]*)$",
        word="Setting",
        table="cpu_placement",
        constants={"subject": "affinity", "is_near_gpu": True},
    ),
    rule(
        "cpu_affinity",
        "2.28-2.30; no core is known to be near, as in many virtual machines",
        r"(?:ncclTopoGetCpuAffinity: )?Affinity for GPU (?P<device>\d+) is empty, ignoring\. "
        r"\(GPU affinity = +; CPU affinity = (?P<cpu_set>[^)]*)\)",
        anchor="Affinity for GPU",
        table="cpu_placement",
        constants={"subject": "affinity"},
    ),
    rule(
        "cpu_affinity",
        "2.28-2.30",
        r"(?:ncclTopoGetCpuAffinity: )?Affinity for GPU (?P<device>\d+) is empty, ignoring\. "
        r"\(GPU affinity = *[^; ][^;]* ; CPU affinity = (?P<cpu_set>[^)]*)\)",
        anchor="Affinity for GPU",
        table="cpu_placement",
        constants={"subject": "affinity", "is_near_gpu": False},
    ),
    rule(
        "cpu_affinity",
        "2.28-2.30",
        r"(?:ncclTopoGetCpuAffinity: )?Affinity for GPU (?P<device>\d+) is (?P<cpu_set>.*?)\. \(GPU affinity = ",
        anchor="Affinity for GPU",
        table="cpu_placement",
        constants={"subject": "affinity", "is_near_gpu": True},
    ),
    rule(
        "proxy_thread",
        "2.25-2.30",
        r"\[(?P<subject>Proxy (?:Service UDS|Service|Progress))\] Device (?P<device>\d+) CPU core (?P<cpu_core>-?\d+)",
        word="[Proxy",
        table="cpu_placement",
    ),
)
