"""What counts as slow, held up or warm-up on the timeline."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_HELD_SHARE: Annotated[
    float, Meaning("share of a gap", "What held the training thread for this much is the cause.", "timeline.gap.cause")
] = 0.5
WARMUP_RATIO: Annotated[
    float,
    Meaning("ratio to the median", "A first iteration that is longer is warm-up.", "timeline.iteration.is_warmup"),
] = 2
LEAST_ITERATIONS: Annotated[
    int, Meaning("iterations", "A run of fewer has no warm-up.", "timeline.iteration.is_warmup")
] = 3
MOST_WARMUP_SHARE: Annotated[
    float, Meaning("share of iterations", "Warm-up is a smaller share of the run.", "timeline.iteration.is_warmup")
] = 0.5
RETURNING_SHARE: Annotated[
    float,
    Meaning("share of a first iteration", "A later one that takes this is like it.", "timeline.iteration.is_warmup"),
] = 0.9
RETURNING_ITERATIONS: Annotated[
    int,
    Meaning("iterations", "With so many later ones like it the first is no warm-up.", "timeline.iteration.is_warmup"),
] = 2
MOST_LOST_SHARE: Annotated[
    float,
    Meaning(
        "share of the calls of an iteration",
        "An iteration in which more than usual lack partners by more than this is not whole.",
        "timeline.iteration.is_partial",
    ),
] = 0.1
MOST_UNTIMED_SHARE: Annotated[
    float,
    Meaning(
        "share of a rank's device work in an iteration",
        "An iteration in which more has no time is not whole.",
        "timeline.iteration.is_partial",
    ),
] = 0.02
USUAL_TRANSFER_QUANTILE: Annotated[
    float, Meaning("quantile", "The usual transfer of a kind.", "timeline.slow_collective.reference_transfer_ns")
] = 0.25
SLOW_TRANSFER_RATIO: Annotated[
    float, Meaning("ratio to the usual transfer", "A transfer that takes longer is slow.", "timeline.slow_collective")
] = 2
LEAST_ALIKE: Annotated[
    int, Meaning("collectives of a kind", "Fewer do not show what is usual.", "timeline.slow_collective")
] = 4
MOST_UNSPLIT_SHARE: Annotated[
    float,
    Meaning(
        "share of the ranks' time",
        "With more communication of which members have no trace, waiting and transfer are not measured.",
        "timeline.coverage.is_split",
    ),
] = 0.02
LEAST_WEIGHT_SHARE: Annotated[
    float,
    Meaning(
        "share of the backward time",
        "Kernels between turns that take less are no gradients of weights.",
        "timeline.microbatch.direction",
    ),
] = 0.1
LEAST_RING_SHARE: Annotated[
    float,
    Meaning(
        "share of the most messages between two ranks of a group",
        "Where all neighbours exchange as many, the last and the first too, they are a ring and no pipeline.",
        "timeline.mesh",
    ),
] = 0.95
LONGER_STAGE_SHARE: Annotated[
    float,
    Meaning(
        "share of the usual stage's compute", "A stage that computes so much more is longer.", "timeline.stage_load"
    ),
] = 0.05
MORE_MICROBATCHES_RATIO: Annotated[
    int, Meaning("ratio", "So many times the micro-batches are the example of more.", "timeline.pipeline")
] = 4
UNNAMED_HOST_NS: Annotated[
    int,
    Meaning("ns", "A host that begins and ends nothing for longer may wait.", "attribute.host_pace.host_ns"),
] = 1_000_000
UNNAMED_HOST_SHARE: Annotated[
    float, Meaning("share of a step", "So may one that takes more of the step.", "attribute.host_pace.host_ns")
] = 0.02
DEVICE_WAIT_ENDS_NS: Annotated[
    int,
    Meaning(
        "ns", "Fetching that ends so soon after the device's work did waits for it.", "attribute.host_pace.host_ns"
    ),
] = 100_000
DEVICE_LAUNCH_NS: Annotated[
    int,
    Meaning(
        "ns",
        "A device that waits longer for its next work had no more in its queue; clocks of host and device differ less.",
        "attribute.host_pace.host_ns",
    ),
] = 10_000
LONGEST_LAUNCH_NS: Annotated[
    int, Meaning("ns", "A call to launch that takes longer may have to wait.", "attribute.host_pace.host_ns")
] = 20_000
STALLED_NS: Annotated[
    int,
    Meaning(
        "ns", "An operation in which nothing begins or ends for so long stands still.", "timeline.segment.activity"
    ),
] = 3_000_000
