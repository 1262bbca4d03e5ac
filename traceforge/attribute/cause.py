"""What a cause is. In: nothing. Out: the type that every file of `causes/` exposes as `CAUSE`, and their list.

Which kinds of work (phase, activity) a cause owns stands in `vocabulary.toml`, each at most once; work that no cause
owns is `unexplained`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from traceforge.errors import PluginError
from traceforge.registry import discover
from traceforge.vocabulary import vocabulary

MODES = (
    "synchronization_amplification",
    "fabric_contention",
    "gpu_locality",
    "runtime_control_plane",
    "unexplained",
)

Claim = Literal["path", "fabric", "unrecorded"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why a completion is late.

    Attributes:
        name: as in `attribute.delay.cause`.
        mode: one of `MODES`.
        claims_transfer: which transfers that take longer than the reference it owns: those of a communicator that is
            slower than its peers throughout (`path`), those that a rank without a trace may have held up
            (`unrecorded`), all others (`fabric`), or none.
        phrase: what happened, for a sentence such as "rank 2 … ".
        next_step: what an engineer does next; `{subject}` is filled in, and `{peer}`, what it is compared with.
        next_step_of_link: the same where a link is named, as {subject}; by default `next_step`.
        next_step_on_one_host: the same where all ranks are of one host and have no device; by default `next_step`.
        next_step_of_host: the same where no device was recorded; by default `next_step`.
        next_step_between_devices: the same where all ranks are devices of one host; by default `next_step`.
        phrase_of_all: `phrase` where all ranks are struck in the same iterations; by default `phrase`.
        phrase_of_host: the same where no device was recorded; by default `phrase`.
        is_like_taken_cores: whether other programs on the same cores look like it in a job without devices.
        follows_pauses: whether a pause of a host brings it about: with the pause it goes as well.
        comes_with_slow_hosts: whether a host that always launches late has it, too, as all that it does takes longer.
    """

    name: str
    mode: str
    phrase: str
    next_step: str
    claims_transfer: Claim | None = None
    is_like_taken_cores: bool = False
    follows_pauses: bool = False
    comes_with_slow_hosts: bool = False
    next_step_of_link: str = ""
    next_step_on_one_host: str = ""
    next_step_of_host: str = ""
    next_step_between_devices: str = ""
    phrase_of_all: str = ""
    phrase_of_host: str = ""

    @property
    def is_of_hosts(self) -> bool:
        """Whether it is what hosts do, for which their devices wait."""
        return self.mode == "runtime_control_plane"

    def is_pause(self, has_device: bool) -> bool:
        """Whether no rank's part of the program makes it so: a device idles; or a host, and not for want of a core."""
        return self.is_of_hosts and (has_device or not self.is_like_taken_cores)


# Owner of what no cause owns. Not a plug-in: it is what remains.
UNEXPLAINED = Cause(
    name="unexplained",
    mode="unexplained",
    phrase="is late for a reason the trace does not show",
    phrase_of_all="stands still for a reason the trace does not show",
    next_step="Record what the host does, too (CPU activities, with_stack=True), so that {subject}'s gaps get names.",
)

# Owner of what several causes own together; mode and next step are those of the largest.
SEVERAL = Cause(
    name="several_causes",
    mode="unexplained",
    phrase="is late for several reasons",
    next_step="",
)


@cache
def causes() -> Mapping[str, Cause]:
    """All causes by name, `unexplained` last.

    Raises:
        PluginError: a file of `causes/` exposes something else, or the vocabulary names a cause that has no file.
    """
    found: dict[str, Cause] = {}
    for module, plugin in discover("traceforge.attribute.causes", "CAUSE").items():
        if not isinstance(plugin, Cause) or plugin.mode not in MODES:
            raise PluginError("CAUSE is not a Cause of a known mode", where=f"traceforge.attribute.causes.{module}")
        found[plugin.name] = plugin
    if missing := vocabulary().causes - found.keys():
        raise PluginError(f"there is no file in causes/ for {', '.join(sorted(missing))}", where="vocabulary.toml")
    return MappingProxyType({**found, UNEXPLAINED.name: UNEXPLAINED})


def of_hosts(name: str) -> bool:
    """Whether what owns a loss is what hosts do; not of what no cause owns."""
    return name in causes() and causes()[name].is_of_hosts


def cause_of_work(phase: str, activity: str | None) -> str:
    """Name of the cause that owns a kind of work."""
    return vocabulary().cause_of_work(phase, activity) or UNEXPLAINED.name


def cause_of_transfer(claim: Claim) -> str:
    """Name of the cause that owns slow transfers of a kind."""
    return next((cause.name for cause in causes().values() if cause.claims_transfer == claim), UNEXPLAINED.name)
