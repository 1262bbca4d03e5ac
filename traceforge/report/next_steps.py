"""What to do next, with commands to copy. In: a finding, where it is, the command that made the report. Out: steps.

Commands only look; none changes anything. A name from a trace enters a command only if it consists of letters, digits,
dots, dashes and underscores: what a shell might take otherwise is left out; the command then runs where it is typed.
"""

import re
import shlex
from collections.abc import Mapping
from types import MappingProxyType

from traceforge.report.answer_blocks import Advice
from traceforge.report.device_tools import DeviceTools
from traceforge.report.diagnosis import Finding

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DATABASE = "run.duckdb"

# What stands in braces is said of one rank or of several.
_OF_HOST = ("See what else runs on {its} cores while the job runs.", "top -b -n 1 -o %CPU")
_OF_LINKS = ("Read the NICs' error and congestion counters, twice.", "rdma statistic show")
_BY_CAUSE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "slow_transfer": _OF_LINKS,
        "late_launch": _OF_HOST,
        "host_stall": _OF_HOST,
        "input_stall": ("See whether {its} storage or the data loader's workers are busy.", "iostat -x 1 3"),
    }
)
_QUERIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "slow_compute": ("See where {it_spends} more than the others.", "slow_kernels"),
        "slow_transfer": ("See which collectives were slow.", "slow_collectives"),
        "slow_path": ("See which ranks use a far NIC.", "far_nics"),
        "input_stall": ("See which iterations wait for input.", "input_outliers"),
        "late_launch": ("See in which calls the device idles.", "idle_by_cause"),
        "host_stall": ("See in which calls the device idles.", "idle_by_cause"),
        "garbage_collection": ("See in which calls the device idles.", "idle_by_cause"),
        "allocator_stall": ("See in which calls the device idles.", "idle_by_cause"),
    }
)
_STACKS = Advice(
    "While the job still hangs, print the stack of each process that holds a GPU of that host.",
    "nvidia-smi --query-compute-apps=pid --format=csv,noheader | xargs -n 1 py-spy dump --pid",
)
_OF_HANGS: Mapping[str, Advice] = MappingProxyType(
    {
        "absent": _STACKS,
        "order": _STACKS,
        "none": _STACKS,
        "stuck": Advice("Read what the kernel of that host says of its devices.", "dmesg -T | grep -i xid"),
        "transfer": Advice(*_OF_LINKS),
    }
)


def steps(
    advice: str,
    finding: Finding | None,
    *,
    tools: DeviceTools | None,
    has_devices: bool,
    is_other_work: bool,
    command: str | None,
    is_one_host: bool = False,
    hang: str = "",
) -> list[Advice]:
    """The advice of the verdict, then what to run.

    Args:
        advice: the verdict's own next step.
        tools: what looks at the job's devices; None where that is not known.
        is_other_work: whether the culprit has more to do than its peers, so that its hardware is no suspect.
        command: what made the report.
        is_one_host: whether all ranks are known to be of one host, so that no NIC is between them.
        hang: kind of the hang that the verdict tells of; empty where it tells of none.
    """
    found = [Advice(advice)] if advice else []
    if hang in _OF_HANGS:
        found.append(_OF_HANGS[hang])
    if finding is None:
        return found
    if not is_other_work and (look := _look(finding, tools, has_devices, is_one_host)) is not None:
        found.append(look)
    target = _target(command)
    if (query := _query(finding, target, has_devices=has_devices)) is not None:
        found.append(query)
    found.append(Advice("Change one thing, record again, and compare.", f"traceforge compare {target} NEW_TRACES"))
    return found


def _look(finding: Finding, tools: DeviceTools | None, has_devices: bool, is_one_host: bool) -> Advice | None:
    advice = _command(finding.cause, tools, has_devices, is_one_host)
    if advice is None:
        return None
    text = advice[0].format(its="their" if finding.is_of_several else "its")
    return Advice(text, f"ssh {finding.host} {advice[1]}" if _PLAIN_NAME.fullmatch(finding.host) else advice[1])


def _command(cause: str, tools: DeviceTools | None, has_devices: bool, is_one_host: bool) -> tuple[str, str] | None:
    """What shows more of a cause, and why to run it."""
    is_within = cause == "slow_transfer" and is_one_host
    if not has_devices and (cause == "slow_compute" or is_within):
        return _OF_HOST
    if not is_within and cause not in ("slow_compute", "slow_copy", "slow_path"):
        return _BY_CAUSE.get(cause)
    if tools is None:
        return None
    if is_within:
        return f"Read the error counters of {tools.link_name}, twice.", tools.link_errors
    if cause == "slow_compute":
        return "Read {its} clocks, power and throttle reasons while the job runs.", tools.clocks
    return "See which path each GPU has to its NIC.", tools.paths


def _query(finding: Finding, target: str, *, has_devices: bool) -> Advice | None:
    name = _QUERIES.get(finding.cause)
    if name is None or (finding.cause == "slow_compute" and not has_devices):
        return None
    database = target if target.endswith((".duckdb", ".db")) else _DATABASE
    make = "" if database == target else f"traceforge ingest {target} --db {database} && "
    text = name[0].format(it_spends="they spend" if finding.is_of_several else "it spends")
    return Advice(text, f"{make}traceforge sql {database} --name {name[1]}")


def _target(command: str | None) -> str:
    """What the report was made of, quoted for a shell."""
    try:
        words = shlex.split(command)[2:3] if command and command.startswith("traceforge report ") else []
    except ValueError:  # a quotation without its end: not a command that this program wrote
        words = []
    return shlex.quote(words[0]) if words and words[0].isprintable() else "TRACES"
