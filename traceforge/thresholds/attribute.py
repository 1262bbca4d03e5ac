"""When a delay is a finding, how sure it is, what it costs, and what the verdict says."""

from typing import Annotated

from traceforge.thresholds import Meaning

# What is reported, and how sure it is.
REPORTED_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller delay is no finding.", "attribute.finding")
] = 0.01
AFFECTED_SHARE: Annotated[
    float,
    Meaning(
        "share of the median iteration", "From this delay on an iteration is affected.", "finding.affected_iterations"
    ),
] = 0.05
AFFECTED_SPREADS: Annotated[
    float,
    Meaning(
        "standard deviations",
        "Slow transfers affect an iteration only this far beyond the run's own spread.",
        "finding.affected_iterations",
    ),
] = 5.0
LOWEST_USUAL: Annotated[
    float,
    Meaning(
        "quantile of iterations", "Lower end of the range that shows a run's own spread.", "finding.affected_iterations"
    ),
] = 0.05
LOW_USUAL: Annotated[
    float,
    Meaning(
        "quantile of iterations",
        "Upper end of it; slow iterations may be most, so that it lies low.",
        "finding.affected_iterations",
    ),
] = 0.25
CLOCK_RESIDUALS: Annotated[
    float, Meaning("clock residuals", "A delay between ranks below this is not seen.", "finding.affected_iterations")
] = 3.0
MEDIUM_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller delay has low confidence.", "finding.confidence")
] = 0.025
HIGH_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration", "A smaller delay of a rank rarely has high confidence.", "finding.confidence"
    ),
] = 0.05
MEDIUM_P_VALUE: Annotated[
    float,
    Meaning(
        "probability",
        "A rank's delay that is likelier by chance has low confidence; strict, as some ten causes are tried.",
        "finding.confidence",
    ),
] = 0.01
HIGH_P_VALUE: Annotated[
    float,
    Meaning(
        "probability", "A rank's delay that is likelier by chance rarely has high confidence.", "finding.confidence"
    ),
] = 0.002
MEDIUM_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "A rank that owns less of it rarely counts.", "finding.confidence")
] = 0.4
HIGH_DOMINANCE: Annotated[
    float,
    Meaning(
        "share of the cause's delay",
        "A rank that owns this much is the culprit, not one of several.",
        "finding.confidence",
    ),
] = 0.6
SOLE_DOMINANCE: Annotated[
    float,
    Meaning("share of the cause's delay", "What nearly all belongs to one rank is that rank's.", "finding.subject"),
] = 0.8
HARD_HIT_SHARE: Annotated[
    float,
    Meaning(
        "share of the median iteration", "An affected iteration that loses this much is hit hard.", "finding.confidence"
    ),
] = 0.2
HARD_HIT_ITERATIONS: Annotated[
    int, Meaning("iterations", "This many hard hits of one rank count, however rare.", "finding.confidence")
] = 4
OVERWHELMING_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration",
        "So much, always on one rank, is no noise even in three iterations.",
        "finding.confidence",
    ),
] = 0.3
OVERWHELMING_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "The part of it that has to be one rank's.", "finding.confidence")
] = 0.9
FEW_ITERATIONS: Annotated[
    int,
    Meaning(
        "iterations",
        "Fewer affected or judged iterations cannot show that a delay recurs.",
        "finding.confidence, attribute.evidence",
    ),
] = 3
JOB_SPREADS: Annotated[
    float,
    Meaning(
        "standard deviations",
        "Affected iterations must lie this far above the others for a delay of the whole job.",
        "finding.confidence",
    ),
] = 4.0
PERSISTENT_SHARE: Annotated[
    float, Meaning("share of iterations", "What affects this many is there all the time.", "finding.pattern")
] = 0.6
EPISODE_ITERATIONS: Annotated[int, Meaning("iterations in a row", "Fewer are no episode.", "finding.pattern")] = 3
EPISODE_SHARE: Annotated[
    float, Meaning("share of affected iterations", "This many of them in a row make an episode.", "finding.pattern")
] = 0.6
LONGEST_EPISODE_SHARE: Annotated[
    float, Meaning("share of iterations", "A longer episode is persistent.", "finding.pattern")
] = 0.9

# Ranks that delay the job in turns.
ROTATING_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration",
        "Less lost in turns is an even pace; twice as much has high confidence.",
        "pattern rotating",
    ),
] = 0.06
ROTATING_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer affected ones are what any run on a busy machine shows.", "pattern rotating")
] = 10
ROTATING_LEADERS: Annotated[
    int, Meaning("ranks", "This many have to lead in turns, where there are as many.", "pattern rotating")
] = 3
ROTATING_SHARE_OF_TWO: Annotated[
    float,
    Meaning(
        "share of the mean iteration",
        "The same where there are two ranks, one of which leads in any noise.",
        "pattern rotating",
    ),
] = 0.18
ROTATING_PART_OF_TWO: Annotated[
    float,
    Meaning(
        "share of the cause's delay",
        "Of two ranks neither may own more of what they lose in turns.",
        "pattern rotating",
    ),
] = 0.7

# Which finding comes first, and whose it is.
COMPANION_FACTOR: Annotated[
    int,
    Meaning(
        "ratio of delays",
        "A cause this many times smaller than another of the same subject may be its by-product.",
        "finding.companion_of",
    ),
] = 4
HOST_SHARE: Annotated[
    float,
    Meaning(
        "share of a host's ranks",
        "A delay of this many of them at the same times is the host's.",
        "finding.subject_kind",
    ),
] = 0.75
HIGH_CONFIDENCE_WEIGHT: Annotated[
    int,
    Meaning(
        "ratio of delays",
        "What is likely must cost this many times as much as what is sure to come first.",
        "finding.finding_id",
    ),
] = 3

# What it costs.
MOST_SEPARATED: Annotated[
    int,
    Meaning(
        "findings",
        "More are not separated by replaying all their sets; the ledger's shares stand.",
        "finding.delay_ns_per_iteration",
    ),
] = 4
CLEAN_TRANSFERS: Annotated[
    int,
    Meaning(
        "transfers",
        "Fewer clean ones at a place are a worse reference than the first quartile of all.",
        "finding.delay_ns_per_iteration",
    ),
] = 8
EVEN_ERRORS: Annotated[
    float,
    Meaning(
        "standard errors of a median",
        "Work whose mean and median lie closer is only divided unevenly.",
        "finding.delay_ns_per_iteration",
    ),
] = 2.0
REPLAY_ERROR: Annotated[
    float,
    Meaning(
        "share of the cost", "Standard error of replaying without a delay, from generated jobs.", "finding.delay_low_ns"
    ),
] = 0.01
FEW_PEERS: Annotated[
    int,
    Meaning(
        "ranks",
        "Fewer peers are compared by standard deviation, more by median absolute deviation.",
        "finding.delay_low_ns",
    ),
] = 5
PLAUSIBLE_GROWTH: Annotated[
    float,
    Meaning(
        "share of the mean wait",
        "No public trace shows transfers that surely grow by more with the spread of arrivals.",
        "finding.cost_note",
    ),
] = 0.25
LOPSIDED: Annotated[
    float,
    Meaning(
        "ratio",
        "An end of a coupling's interval counts at most this many times as far as the other.",
        "finding.delay_low_ns",
    ),
] = 3.0
RESIDUAL_ITERATIONS: Annotated[
    int,
    Meaning("iterations", "Fewer affected, or unaffected, ones show no residual of the replay.", "finding.cost_note"),
] = 4
RESIDUAL_ERRORS: Annotated[
    float, Meaning("standard errors", "A smaller residual of the replay may be chance.", "finding.cost_note")
] = 3.0
RESIDUAL_SHARE: Annotated[
    float,
    Meaning(
        "share of an affected iteration's cost",
        "A smaller residual of the replay does not matter.",
        "finding.cost_note",
    ),
] = 0.02

# Who owns slow transfers, and which waits are none.
STEADY_EXCEPTIONS: Annotated[
    float, Meaning("share of iterations", "A slow path is slow in all but this many.", "cause slow_path")
] = 0.1
STEADY_SHARE: Annotated[
    float,
    Meaning(
        "share of its mean excess", "A slow path loses at least this much in each of the others.", "cause slow_path"
    ),
] = 0.5
PATH_EXCESS: Annotated[
    float,
    Meaning("share of the reference transfers", "Communicators that differ by less do not differ.", "cause slow_path"),
] = 0.1
SHARED_EXCESS: Annotated[
    float,
    Meaning(
        "share of the communicator's excess",
        "Peers that lose this much at the same time are slow as well.",
        "cause unrecorded_rank",
    ),
] = 0.5
MISSING_COMPUTE: Annotated[
    float,
    Meaning(
        "share of the usual compute", "A wait before which more is missing may be a late host's.", "attribute.delay"
    ),
] = 0.05
REAPPEARING_COMPUTE: Annotated[
    float, Meaning("share of the missing compute", "It is one if more than this comes after it.", "attribute.delay")
] = 0.5

# What the verdict and the evidence say.
UNCERTAIN_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration",
        "So large a delay of low confidence makes the verdict uncertain.",
        "attribute.verdict",
    ),
] = 0.1
MATCHED_SHARE: Annotated[
    float, Meaning("share of calls", "With fewer matched, who waits for whom cannot be known.", "attribute.verdict")
] = 0.5
SURE_NEGATIVE_ITERATIONS: Annotated[
    int, Meaning("iterations", "From this many on, that nothing stands out is certain.", "verdict.confidence")
] = 10
LEADING_SHARE: Annotated[
    float,
    Meaning(
        "share of iterations",
        "A rank that has most work of its own in this many is named, without a common clock.",
        "verdict.explanation",
    ),
] = 0.6
CHANCE_P_VALUE: Annotated[
    float,
    Meaning(
        "probability", "A likelier delay speaks against its finding, a less likely one for it.", "attribute.evidence"
    ),
] = 0.05
LAST_SHARE: Annotated[
    float,
    Meaning("share of collectives", "That a rank is last at this many speaks for its finding.", "attribute.evidence"),
] = 0.5
CONFIGURATION_STATEMENTS: Annotated[
    int, Meaning("statements", "No more facts of configuration are shown with a finding.", "attribute.evidence")
] = 3
HIDDEN_GAIN: Annotated[
    float,
    Meaning("share of the delay", "A smaller gain in the replay speaks against fixing it alone.", "attribute.evidence"),
] = 0.5
