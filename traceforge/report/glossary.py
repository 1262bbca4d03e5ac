"""Words of the report and what they mean, in the order a reader meets them."""

from types import MappingProxyType

GLOSSARY = (
    ("Iteration", "One training step over all ranks: from the first rank's start to the last rank's end."),
    ("Rank", "One process of the job, usually one GPU."),
    ("Delay and wait", "The culprit is late, the victims wait. Delay is attributed to culprits, never to victims."),
    ("Reference", "What an iteration would take if every operation took its usual time; delay is counted above it."),
    ("Lateness", "How long after the median rank, or where said after the first, a rank reaches its collectives."),
    ("Skew", "Time between the first and the last arrival at a collective."),
    ("Transfer", "Time from the last arrival at a collective until its end: data moves."),
    ("Wait", "Time a rank spends in a collective while another rank is still missing."),
    ("Hidden communication", "Communication that runs while the rank computes; it costs no time of its own."),
    (
        "Phases",
        (
            "Each instant of a rank is one of compute, transfer, wait, communication (either of the two: a member has "
            "no trace), copy, input (device idle, host loads data), runtime (device idle, host launches, allocates or "
            "synchronises) and idle. They sum to the wall clock."
        ),
    ),
    ("Bus bandwidth", "Bytes over transfer time, scaled by the operation, comparable to the speed of a link."),
    ("Clock residual", "Scatter left after aligning the ranks' clocks; the error of every lateness."),
    ("Below resolution", "A wait shorter than three times the largest clock residual; it supports no finding."),
    ("Synchronisation amplification", "A late rank makes every other rank wait at the next collective."),
    ("Fabric contention", "Transfers take longer than usual for their size."),
    ("GPU locality", "A rank's place in its machine (path to NIC, NUMA node) makes it slower."),
    (
        "Runtime and control plane",
        "The host keeps the device waiting: launches, allocation, input, garbage collection.",
    ),
    ("Unexplained", "Delay without an attributed cause. It is never spread over other causes."),
    (
        "Recoverable time",
        (
            "What an iteration would be shorter by without the finding, from replays without it. It is the one size of "
            "a finding; time booked by cause (the ledger) and lateness are other measures and are named as such."
        ),
    ),
    ("Confidence", "High and medium are findings; low is a hint that needs more data."),
    ("Variation", "Standard deviation of iteration time over its mean."),
    (
        "Gain if fixed",
        (
            "Throughput in a replay without that delay, by a rank's own step, shorter than the iteration of all ranks. "
            "An upper bound: other delays may take its place."
        ),
    ),
    ("Pacing", "Deliberately delaying early ranks so that arrivals are closer together."),
    (
        "Verdicts on pacing",
        (
            "Supported: the whole interval is above zero, in the recording and in as many steps to come. No effect: "
            "at most 1 % is likely to be gained. Would harm: more than that is lost. Cannot be determined: the data do "
            "not tell."
        ),
    ),
)

_LABELS = MappingProxyType(
    {
        "Recoverable per iteration": "Recoverable time",
        "Throughput if fixed": "Gain if fixed",
        "Variation between iterations": "Variation",
        "Delay in an iteration": "Reference",
        "Confidence": "Confidence",
        "Unexplained": "Unexplained",
        "Clocks": "Clock residual",
    }
)


def meaning(label: str) -> str:
    """What a label means; empty where the list has no such word."""
    return dict(GLOSSARY).get(_LABELS.get(label, ""), "")
