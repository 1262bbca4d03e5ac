"""Words of the report and what they mean, in the order a reader meets them."""

GLOSSARY = (
    ("Iteration", "One training step over all ranks: from the first rank's start to the last rank's end."),
    ("Rank", "One process of the job, usually one GPU."),
    ("Delay and wait", "The culprit is delayed, the victims wait. Delays are accounted to culprits, never to victims."),
    ("Reference", "What an iteration would take if every operation took its usual time; delay is counted above it."),
    ("Lateness", "How long after the median rank, or where said after the first, a rank reaches its collectives."),
    ("Skew", "Time between the first and the last arrival at a collective."),
    ("Transfer", "Time from the last arrival at a collective until its end: the data travel."),
    ("Wait", "Time a rank spends in a collective while another rank is still missing."),
    ("Hidden communication", "Communication that runs while the rank computes; it costs no time of its own."),
    (
        "Phases",
        (
            "Each instant of a rank is one of compute, transfer, wait, copy, input (device idle, host loads data), "
            "runtime (device idle, host launches, allocates or synchronises) and idle. They sum to the wall clock."
        ),
    ),
    ("Bus bandwidth", "Bytes over transfer time, scaled by the operation, comparable to the speed of a link."),
    ("Clock residual", "Scatter that is left after the ranks' clocks are brought to one; the error of any lateness."),
    ("Below resolution", "A wait shorter than three times the largest clock residual; it supports no finding."),
    ("Synchronisation amplification", "A late rank makes every other rank wait at the next collective."),
    ("Fabric contention", "Transfers take longer than usual for their size."),
    ("GPU locality", "A rank's place in its machine (path to NIC, NUMA node) makes it slower."),
    ("Runtime and control plane", "The host keeps the device waiting: launches, allocation, input, garbage."),
    ("Unexplained", "Delay that no cause owns. It is never spread over the others."),
    ("Confidence", "High and medium are findings; low is a hint that the data cannot carry alone."),
    ("Variation", "Standard deviation of iteration time over its mean."),
    ("Gain if fixed", "Throughput of a replay without that delay: a ceiling, as other delays may take its place."),
    ("Pacing", "Holding early ranks back on purpose, so that arrivals come closer together."),
    (
        "Verdicts on pacing",
        (
            "Supported: the whole interval lies above zero. No effect: no pacing could gain a relevant share. "
            "Would harm: it lies below zero. Cannot be told: the data do not identify the coupling a gain needs."
        ),
    ),
)
