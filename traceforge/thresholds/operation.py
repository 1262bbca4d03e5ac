"""What counts as a difference between the work of ranks."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_EXCESS_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "What costs a rank less is no difference.", "operation.difference")
] = 0.01
EXPLAINING_SHARE: Annotated[
    float,
    Meaning("share of the excess", "More work that explains this much is why it takes longer.", "difference.kind"),
] = 0.5
ROUNDED_NS: Annotated[
    int, Meaning("ns", "Spans of a thread that overlap by no more follow one another.", "operation.kernel")
] = 1_000
