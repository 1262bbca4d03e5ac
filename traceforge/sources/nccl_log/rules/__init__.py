"""The grammar's rules, one module a subject. In: nothing. Out: `GRAMMAR`, all of them in the order they are tried.

Idea: tables only; what a match needs beyond its groups is done by the handler its topic names (see interpreter).
Sources: NVIDIA/nccl 2.3.5 to 2.30.7, ROCm/rccl (2.21), aws-ofi-nccl, and logs of these. NCCL's authors do not
document the messages; unknown ones are expected.
"""

from traceforge.sources.nccl_log.grammar import RuleSet
from traceforge.sources.nccl_log.rules.calls import CALLS
from traceforge.sources.nccl_log.rules.chatter import CHATTER
from traceforge.sources.nccl_log.rules.communicators import COMMUNICATORS
from traceforge.sources.nccl_log.rules.connections import CONNECTIONS
from traceforge.sources.nccl_log.rules.networks import NETWORKS
from traceforge.sources.nccl_log.rules.plugins import PLUGINS
from traceforge.sources.nccl_log.rules.processes import PROCESSES
from traceforge.sources.nccl_log.rules.topology import TOPOLOGY
from traceforge.sources.nccl_log.rules.trouble import TROUBLE
from traceforge.sources.nccl_log.rules.tunings import TUNINGS

GRAMMAR = RuleSet(
    (
        *CALLS,
        *COMMUNICATORS,
        *CONNECTIONS,
        *TUNINGS,
        *TOPOLOGY,
        *PROCESSES,
        *TROUBLE,
        *NETWORKS,
        *PLUGINS,
        *CHATTER,
    )
)
