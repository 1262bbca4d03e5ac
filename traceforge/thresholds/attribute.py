"""When a delay is a finding, how sure it is, what it costs, and what the verdict says."""

from typing import Annotated

from traceforge.thresholds import Meaning

# What is reported, and how sure it is.
REPORTED_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller delay is no finding.", "attribute.finding")
] = 0.01
AFFECTED_SHARE: Annotated[
    float, Meaning("share of the median iteration", "One that loses less is not affected.", "affected_iterations")
] = 0.05
AFFECTED_OF_LARGEST: Annotated[
    float, Meaning("share of the largest delay", "Smaller ones beside it affect nothing.", "affected_iterations")
] = 0.02
AFFECTED_SPREADS: Annotated[
    float, Meaning("standard deviations", "Transfers slower than usual by this affect one.", "affected_iterations")
] = 5.0
LOWEST_USUAL: Annotated[
    float, Meaning("quantile of iterations", "Lower end of what shows a run's own spread.", "affected_iterations")
] = 0.05
LOW_USUAL: Annotated[
    float, Meaning("quantile of iterations", "Its upper end; low, as most may be slow.", "affected_iterations")
] = 0.25
MEDIUM_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller delay has low confidence.", "confidence")
] = 0.025
HIGH_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller delay of a rank rarely has high confidence.", "confidence")
] = 0.05
MEDIUM_P_VALUE: Annotated[
    float, Meaning("probability", "Likelier by chance has low confidence; some ten causes are tried.", "confidence")
] = 0.01
HIGH_P_VALUE: Annotated[
    float, Meaning("probability", "Likelier by chance is rarely high, nor medium below HIGH_SHARE.", "confidence")
] = 0.002
CUT_OF_LARGEST: Annotated[
    float, Meaning("share of the largest delay", "Longer delays count no more, when many are counted.", "confidence")
] = 0.125
CUT_FACTOR: Annotated[
    float, Meaning("times", "Cut delays have to be unlikelier by this, as they are a second look.", "confidence")
] = 5.0
MEDIUM_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "A rank that owns less of it rarely counts.", "confidence")
] = 0.4
HIGH_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "A rank that owns this much is the sole culprit.", "confidence")
] = 0.6
SOLE_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "What nearly all belongs to one rank is that rank's.", "subject")
] = 0.8
STILL_SPREAD: Annotated[
    float, Meaning("share of their wait", "Ranks whose waits end further apart do not go on together.", "verdict")
] = 0.05
HARD_HIT_SHARE: Annotated[
    float,
    Meaning("share of the median iteration", "An affected iteration that loses this much is hit hard.", "confidence"),
] = 0.2
HARD_HIT_ITERATIONS: Annotated[
    int, Meaning("iterations", "This many hard hits of one rank count, however rare.", "confidence")
] = 4
OVERWHELMING_SHARE: Annotated[
    float,
    Meaning("share of the mean iteration", "So much on one rank is no noise even in three iterations.", "confidence"),
] = 0.3
OVERWHELMING_DOMINANCE: Annotated[
    float, Meaning("share of the cause's delay", "The part of it that has to be one rank's.", "confidence")
] = 0.9
IN_EACH_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "So much of each on one rank counts, however few.", "confidence")
] = 0.1
IN_EACH_FACTOR: Annotated[
    float, Meaning("ratio of delays", "A rank's least must be so much more than any other's largest.", "confidence")
] = 5.0
FEW_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer do not show that a delay recurs.", "confidence, evidence")
] = 3
JOB_SPREADS: Annotated[
    float, Meaning("standard deviations", "Less above the other iterations is no delay of the whole job.", "confidence")
] = 4.0
PERSISTENT_SHARE: Annotated[
    float, Meaning("share of iterations", "What affects this many is there all the time.", "pattern")
] = 0.6
EPISODE_ITERATIONS: Annotated[int, Meaning("iterations in a row", "Fewer are no episode.", "pattern")] = 3
EPISODE_SHARE: Annotated[
    float, Meaning("share of affected iterations", "This many of them in a row make an episode.", "pattern")
] = 0.6
LONGEST_EPISODE_SHARE: Annotated[
    float, Meaning("share of iterations", "A longer episode is persistent.", "pattern")
] = 0.9
ONE_OFF_SHARE: Annotated[
    float,
    Meaning("share of the median iteration", "One loss of this size, of one rank or all, is named.", "confidence"),
] = 0.5
ONE_OFF_COMPUTE_SHARE: Annotated[
    float,
    Meaning("share of the median iteration", "The same for compute and copies, whose noise has tails.", "confidence"),
] = 2.0
ONE_OFF_OTHERS: Annotated[
    int, Meaning("iterations", "Fewer others do not show what is usual beside a single loss.", "confidence")
] = 5
CLOSE_SHARE: Annotated[
    float, Meaning("share of a pause", "Ranks, and iterations beside it, that differ by less are alike.", "confidence")
] = 0.1
CONTENTION_P_VALUE: Annotated[
    float,
    Meaning(
        "probability",
        "Below it, what mostly strikes the same ranks is theirs: neither cores taken away nor ranks in turns.",
        "confidence",
    ),
] = 0.0005

EXPLAINED_BY_HOST: Annotated[
    float, Meaning("share of its device's longer waits", "A host that takes so much longer explains them.", "host_time")
] = 0.2

# Ranks that delay the job in turns.
ROTATING_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration", "Less is an even pace; twice as much has high confidence.", "pattern rotating"
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
        "share of the mean iteration", "The same for two ranks, one of which leads in any noise.", "pattern rotating"
    ),
] = 0.18
ROTATING_PART_OF_TWO: Annotated[
    float, Meaning("share of the cause's delay", "Of two ranks that take turns neither owns more.", "pattern rotating")
] = 0.7
ROTATING_SIZE: Annotated[
    float, Meaning("share of the affected iterations' mean", "A loss this large is of their size.", "pattern rotating")
] = 2 / 3
ROTATING_SMALLER: Annotated[
    float,
    Meaning("share of iterations", "With more that lose half to all of that, it is noise's tail.", "pattern rotating"),
] = 1 / 3
ROTATING_OTHERS: Annotated[
    float, Meaning("share of what strikes", "Ranks that are above their reference by less are noisy.", "delay")
] = 0.125
# Which finding comes first, and whose it is.
COMPANION_FACTOR: Annotated[
    int,
    Meaning(
        "ratio of delays", "A cause so much smaller than another of its subject may be its by-product.", "companion_of"
    ),
] = 4
SPACED_ITERATIONS: Annotated[
    int, Meaning("iterations", "So many that are evenly spaced are not so by chance.", "p_value, summary")
] = 4
COINCIDING_SHARE: Annotated[
    float,
    Meaning(
        "share of slow iterations",
        "What strikes so many of the same iterations may be one event, and slow transfers its by-product.",
        "companion_of, finding_id, summary",
    ),
] = 0.9
HOST_SHARE: Annotated[
    float, Meaning("share of a host's ranks", "A delay of this many of them at the same times is its.", "subject_kind")
] = 0.75
KNOWN_SET_PART: Annotated[
    float, Meaning("part of the best score", "A host or group that explains this much is named.", "subject_kind")
] = 0.9
ALIKE_PART: Annotated[
    float, Meaning("part of their mean", "Ranks that all have this much are slow alike.", "subject_kind")
] = 0.7
HIGH_CONFIDENCE_WEIGHT: Annotated[
    int, Meaning("ratio of delays", "Medium confidence comes before high where it costs this much more.", "finding_id")
] = 3

# What bounds the step.
NAMED_SHARE: Annotated[
    float,
    Meaning("share of the finding's delay", "An operation that explains less is not named.", "next_step, evidence"),
] = 0.5
HOT_EXPERT_RATIO: Annotated[
    float,
    Meaning("over the median rank", "A rank that moves this much more in all-to-all holds a hot expert.", "next_step"),
] = 1.15
SMALL_KERNEL_NS: Annotated[
    int, Meaning("ns", "A kernel whose median is shorter is too small to fill a device.", "attribute.bottleneck")
] = 10_000
COMPUTING_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A device that computes for this much is busy.", "attribute.bound")
] = 0.8
BOUND_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller part of it bounds nothing.", "attribute.bound")
] = 0.05
GAPS_LOOKED_AT: Annotated[
    int, Meaning("gaps", "So many of the longest gaps show what the host does meanwhile.", "attribute.bound")
] = 200
LONG_CALL_SHARE: Annotated[
    float, Meaning("share of the gaps", "A call to the runtime that fills so much holds the host.", "attribute.bound")
] = 0.5
LONG_CALL_NS: Annotated[int, Meaning("ns", "A shorter call is an ordinary launch.", "attribute.bound")] = 100_000
QUIET_HOST_SHARE: Annotated[
    float, Meaning("share of the gaps", "A host that works in less of them does something else.", "attribute.bound")
] = 0.5
MODELLED_SHARE: Annotated[
    float,
    Meaning("share of the kernels' time", "With less of it modelled, the use of the peak is a lower bound.", "MFU"),
] = 0.9
DRIFT_ITERATIONS: Annotated[
    int, Meaning("iterations", "Of fewer it is not said whether they grow longer.", "headline, explanation")
] = 10
DRIFT_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "Iterations that grow by this drift.", "headline, explanation")
] = 0.1
DRIFT_LEVEL_ITERATIONS: Annotated[
    int, Meaning("iterations", "A level that lasts so long may be new, and no drift.", "headline, explanation")
] = 3
OVERLAPPING_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "Where one begins so soon, they overlap.", "explanation, pace_ns")
] = 0.95

# What it costs.
MOST_SEPARATED: Annotated[
    int, Meaning("findings", "More are not separated by replays; the ledger's shares stand.", "delay")
] = 4
CLEAN_TRANSFERS: Annotated[
    int, Meaning("transfers", "Fewer clean ones are a worse reference than the first quartile.", "delay")
] = 8
EVEN_ERRORS: Annotated[
    float, Meaning("standard errors of a median", "Work with closer mean and median is only divided unevenly.", "delay")
] = 2.0
REPLAY_ERROR: Annotated[
    float,
    Meaning("share of the cost", "Standard error of replaying without a delay, from generated jobs.", "delay_low_ns"),
] = 0.01
FEW_PEERS: Annotated[
    int, Meaning("ranks", "Fewer peers are compared by standard deviation, more by MAD.", "delay_low_ns")
] = 5
PLAUSIBLE_GROWTH: Annotated[
    float, Meaning("share of the mean wait", "No public trace shows transfers that surely grow by more.", "cost_note")
] = 0.25
LOPSIDED: Annotated[
    float, Meaning("ratio", "How much farther one end of a coupling's interval may lie.", "delay_low_ns")
] = 3.0
RESIDUAL_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer affected, or unaffected, ones show no residual of the replay.", "cost_note")
] = 4
RESIDUAL_ERRORS: Annotated[
    float, Meaning("standard errors", "A smaller residual of the replay may be chance.", "cost_note")
] = 3.0
RESIDUAL_SHARE: Annotated[
    float, Meaning("share of its cost", "A smaller residual of the replay does not matter.", "cost_note")
] = 0.02
RESIDUAL_TAIL: Annotated[
    float, Meaning("share of iterations", "So many of either kind may reach over the gap between them.", "cost_note")
] = 0.1
RESIDUAL_GAP: Annotated[
    float, Meaning("share of the delay", "What loses as much is struck; a smaller gap is none.", "cost_note")
] = 0.5

# Who owns slow transfers, and which waits are none.
STEADY_EXCEPTIONS: Annotated[
    float, Meaning("share of iterations", "A slow path is slow in all but this many.", "cause slow_path")
] = 0.1
STEADY_SHARE: Annotated[
    float,
    Meaning("share of its mean excess", "A slow path loses at least this much in each other one.", "cause slow_path"),
] = 0.5
PATH_EXCESS: Annotated[
    float,
    Meaning("share of the reference transfers", "Communicators that differ by less do not differ.", "cause slow_path"),
] = 0.1
SLOW_LINK_PART: Annotated[
    float, Meaning("share of the mean slowdown", "Transfers that slow down by less are at pace.", "subject")
] = 0.5
SHARED_EXCESS: Annotated[
    float, Meaning("share of its excess", "Peers that lose this much then are slow as well.", "cause unrecorded_rank")
] = 0.5
TELLING_SHARE: Annotated[
    float, Meaning("share of all excess", "Transfers that lose less do not tell which link is slow.", "subject")
] = 0.1
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
    float, Meaning("share of the mean iteration", "A hint this large makes the verdict uncertain.", "verdict")
] = 0.1
MATCHED_SHARE: Annotated[
    float, Meaning("share of calls", "With fewer matched, who waits for whom cannot be known.", "verdict")
] = 0.5
UNSEEN_SHARE: Annotated[
    float, Meaning("share of the job's ranks", "With more not recorded, one of them may well be the last.", "finding")
] = 0.1
SIGHT_SHARE: Annotated[
    float, Meaning("share of draws", "A delay that is found this often would have been seen.", "attribute.sight")
] = 0.95
SHARP_SIGHT_SHARE: Annotated[
    float,
    Meaning("share of the mean iteration", "A negative is certain if a delay this small, to 0.1 %, shows.", "verdict"),
] = 0.05
BLURRED_SIGHT_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "It is low unless a smaller one would have been seen.", "verdict")
] = 0.15
SURE_NEGATIVE_ITERATIONS: Annotated[
    int, Meaning("iterations", "From this many on, that nothing stands out is certain.", "verdict")
] = 10
LEADING_SHARE: Annotated[
    float, Meaning("share of iterations", "A rank with most work in this many is named without a clock.", "verdict")
] = 0.6
LEAST_COST_BESIDE: Annotated[
    float,
    Meaning("share of its affected cost", "A finding that costs so much more beside says so.", "summary, headline"),
] = 0.2
LEAST_SHOWN_P_VALUE: Annotated[
    float, Meaning("probability", "A smaller one is shown as less than this: the model of chance ends.", "evidence")
] = 1e-4
CHANCE_P_VALUE: Annotated[
    float, Meaning("probability", "A likelier delay speaks against its finding, a less likely one for it.", "evidence")
] = 0.05
LAST_SHARE: Annotated[
    float, Meaning("share of collectives", "That a rank is last at this many speaks for its finding.", "evidence")
] = 0.5
CONFIGURATION_STATEMENTS: Annotated[
    int, Meaning("statements", "At most so much configuration is shown with a finding.", "evidence")
] = 3
HIDDEN_GAIN: Annotated[
    float, Meaning("share of the delay", "A smaller gain in the replay speaks against fixing it alone.", "evidence")
] = 0.5
SPREAD_SHARE: Annotated[
    float,
    Meaning("share of the mean iteration", "Without a finding so much delay is lost to many, not green.", "verdict"),
] = 0.05
COMMON_LOSS_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "So much that all lose alike leads the verdict.", "verdict")
] = 0.2
UNBALANCED_STAGE_SHARE: Annotated[
    float, Meaning("share of the mean stage's compute", "A stage this much longer limits a pipeline.", "verdict")
] = 0.05
UNBALANCED_SAVING_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "Stages or links are uneven if evening saves this.", "verdict")
] = 0.03
HIDING_BUBBLE_SHARE: Annotated[
    float, Meaning("share of a step", "Bubbles of this size hide part of what is uneven.", "verdict")
] = 0.25
UNEVEN_LINK_FACTOR: Annotated[
    float,
    Meaning("times the usual transfer", "Hosts whose messages always take so long have an uneven link.", "verdict"),
] = 2.0
HINT_PART: Annotated[
    float, Meaning("share of all delay", "A hint that is so much of it is told before its being spread.", "verdict")
] = 0.5
TOLD_BUBBLE_SHARE: Annotated[
    float, Meaning("share of an iteration", "Smaller kinds of bubble or work are not reported.", "attribute.verdict")
] = 0.01
WHOLE_POINTS: Annotated[
    float, Meaning("points of a hundred", "From here on the verdict says whole points.", "attribute.verdict")
] = 10
LEAST_CLOCK_READINGS: Annotated[
    int, Meaning("readings of a device", "With fewer in its time, telemetry is too coarse for a finding.", "evidence")
] = 5
CLOCK_DROP: Annotated[
    float, Meaning("share of the peers' clock", "A device clocked lower by this much is slowed down.", "evidence")
] = 0.03
HELD_SHARE: Annotated[
    float, Meaning("share of readings", "From here on a reason for a lower clock is named.", "evidence")
] = 0.5
LOADED_SHARE: Annotated[
    float, Meaning("share of time", "Without times, a device busier than this is under load.", "evidence")
] = 0.5
POWER_LIMIT_SHARE: Annotated[
    float, Meaning("share of the limit", "From here on the power is at its limit.", "evidence")
] = 0.97
# How the pace of exposed communication is judged.
NEAR_LINE_RATE: Annotated[
    float, Meaning("share of line rate", "From here on only overlap or fewer bytes make transfers shorter.", "exposed")
] = 0.7
FAR_BELOW_LINE_RATE: Annotated[
    float, Meaning("share of line rate", "Below it something other than the links sets the pace.", "exposed")
] = 0.4
LATENCY_BOUND_NS: Annotated[
    int, Meaning("ns of a call", "Shorter calls wait for latency more than for bandwidth.", "exposed")
] = 100_000
HOST_BOUND_SHARE: Annotated[
    float, Meaning("share of an iteration", "Hosts that need this much by themselves set the pace.", "verdict")
] = 0.85
STARVED_SHARE: Annotated[float, Meaning("share of an iteration", "So long some device lacks work.", "verdict")] = 0.1
UNEQUAL_WORK_SHARE: Annotated[float, Meaning("share of the median FLOPs", "More is unequal work.", "verdict")] = 0.1
