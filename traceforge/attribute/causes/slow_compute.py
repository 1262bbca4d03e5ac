"""A rank computes longer than the others on the same place of the program (or than itself at other times)."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="slow_compute",
    mode="synchronization_amplification",
    phrase="computes longer than its peers before they communicate",
    phrase_of_all="computes longer than in other iterations",
    next_step="Compare the same operations on {subject} with another {peer}: clock, temperature and power of the "
    "processor first, then the work it was given (batch, sequence lengths, experts).",
    next_step_on_one_host="See what else runs on the host's cores (other programs, more threads than cores), then "
    "compare the same operations on {subject} with another {peer}: the work it was given (batch, sequence lengths, "
    "experts), clock and temperature of the processor.",
)
