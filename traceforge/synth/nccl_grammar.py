"""How versions of NCCL phrase their logs. In: the name of a version. Out: how its messages differ.

Idea: a version is a row of a table; the writer asks the row and never compares numbers of versions. Written from the
sources of NCCL 2.21.5 and 2.27.5. Not handled: versions between them, RCCL.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from traceforge.errors import UsageError


@dataclass(frozen=True, slots=True)
class LogGrammar:
    """What differs between versions.

    Attributes:
        banner: the line that names the version.
        banner_has_head: whether every process prints it with a head; else rank 0 alone, without one.
        bootstrap: words before the interface that ranks find one another through.
        network: messages about the network in use.
        chooses_in_words: whether algorithm, protocol and channels of a choice have names; else numbers and a
            predicted time.
        connects_late: whether rings and trees are connected at a communicator's first call, not in its init.
        counts_on_node: whether opCount grows on communicators within a node.
        has_timings: whether an init states how long its parts took.
        has_stamps: whether lines may begin with the time.
        distances: number of each class of path, as `distance` lines print it.
    """

    banner: str
    banner_has_head: bool
    bootstrap: str
    network: tuple[str, ...]
    chooses_in_words: bool
    connects_late: bool
    counts_on_node: bool
    has_timings: bool
    has_stamps: bool
    distances: Mapping[str, int]


GRAMMARS: Mapping[str, LogGrammar] = {
    "2.21.5": LogGrammar(
        banner="NCCL version 2.21.5+cuda12.4",
        banner_has_head=False,
        bootstrap="Bootstrap : Using",
        network=("Using non-device net plugin version 0", "Using network IB"),
        chooses_in_words=False,
        connects_late=False,
        counts_on_node=True,
        has_timings=False,
        has_stamps=False,
        distances={"PIX": 3, "PXB": 4, "PXN": 5, "PHB": 6, "SYS": 7},
    ),
    "2.27.5": LogGrammar(
        banner="NCCL version 2.27.5+cuda12.9",
        banner_has_head=True,
        bootstrap="Bootstrap: Using",
        network=("Initialized NET plugin IB", "Assigned NET plugin IB to comm", "Using network IB"),
        chooses_in_words=True,
        connects_late=True,
        counts_on_node=False,
        has_timings=True,
        has_stamps=True,
        distances={"PIX": 4, "PXB": 5, "P2C": 6, "PXN": 7, "PHB": 8, "SYS": 9},
    ),
}


@dataclass(frozen=True, slots=True)
class NcclLogs:
    """Which debug logs a job leaves.

    Attributes:
        version: version of NCCL, as in GRAMMARS; empty for no logs.
        stamped: whether lines begin with the time (NCCL 2.26 and later).
        by_host: one file a host with the lines of its ranks mixed, instead of one a rank.
        inspector: whether the Inspector's files are written too (or alone, without a version).
    """

    version: str = ""
    stamped: bool = False
    by_host: bool = False
    inspector: bool = False

    def grammar(self) -> LogGrammar:
        """How this version phrases its messages.

        Raises:
            UsageError: the version is not known, or has no time stamps and is asked for them.
        """
        if self.version not in GRAMMARS:
            raise UsageError(f"NCCL {self.version} is not known", hint=f"choose one of: {', '.join(GRAMMARS)}")
        grammar = GRAMMARS[self.version]
        if self.stamped and not grammar.has_stamps:
            raise UsageError(f"NCCL {self.version} prints no time stamps", hint="choose 2.27.5, or leave them out")
        return grammar
