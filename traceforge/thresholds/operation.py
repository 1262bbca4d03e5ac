"""What counts as a difference between the work of ranks, and of stages."""

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

# Why a stage of a pipeline computes longer than the others.
STAGE_REASON_SHARE: Annotated[
    float,
    Meaning(
        "share of what a stage computes longer", "Slower calls, or more, that make this much are why.", "stage_work"
    ),
] = 0.8
LEAST_SHARED_KERNELS: Annotated[
    int, Meaning("kernels", "With fewer that other stages run, too, their pace says nothing of a stage.", "stage_work")
] = 3
KNOWN_WORK_SHARE: Annotated[
    float,
    Meaning("share of a stage's kernel time", "Kernels of known shapes that take so long tell its pace.", "stage_work"),
] = 0.5
LIKE_FACTOR: Annotated[
    float, Meaning("times", "A kernel is slowed like all of a stage if within so many times of that.", "stage_work")
] = 2.0
ALIKE_SHARE: Annotated[
    float, Meaning("share of kernel time", "A stage is slow at the same work if so much is slowed alike.", "stage_work")
] = 0.75
NEARLY_ALL_SHARE: Annotated[
    float, Meaning("share of kernel time", "Of so much a range is said; without shapes so much is alike.", "stage_work")
] = 0.9
