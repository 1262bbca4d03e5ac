"""A collective takes longer after all recorded ranks have arrived, and not all of its ranks were recorded."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="unrecorded_rank",
    mode="unexplained",
    phrase="takes longer although all recorded ranks have arrived: a rank that was not recorded comes late, or the "
    "network is slow",
    next_step="Record all ranks in the same steps: who of those without a trace comes late, or whether the network is "
    "slow, cannot be known from the others.",
    claims_transfer="unrecorded",
)
