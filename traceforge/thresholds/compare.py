"""When a change between two runs counts."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "A smaller change is never significant.", "Change.is_significant")
] = 0.005

FALSE_POSITIVE_RATE: Annotated[
    float,
    Meaning("probability", "Chance of any false change among all families of rows.", "Change.is_significant"),
] = 0.01

RANK_DRIFT_RATE: Annotated[
    float,
    Meaning(
        "probability",
        "Chance that the scatter among ranks' changes makes one stand out, which must exceed its own scatter too.",
        "Change.is_significant",
    ),
] = 0.05

LEAST_ITERATIONS: Annotated[
    int,
    Meaning("iterations of either run", "With fewer, no significant change means nothing.", "Comparison.is_judged"),
] = 5

MOST_UNSEEN_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration",
        "Where even a larger change would not have shown, no significant change means nothing.",
        "Comparison.is_judged",
    ),
] = 0.2

COMPARABLE_SHARE: Annotated[
    float,
    Meaning("share", "Amounts of work that differ by more make runs hard to compare.", "Objection"),
] = 0.01

OTHER_SIZE_SHARE: Annotated[
    float,
    Meaning("share", "Where what a rank sends differs by more, runs may be of different models.", "Objection"),
] = 0.1

OTHER_PROGRAM_SHARE: Annotated[
    float,
    Meaning("share of the time of operations", "With more in one run alone, programs differ.", "Objection"),
] = 0.5

ONE_RANK_SHARE: Annotated[
    float,
    Meaning(
        "share of an operation's change, over all ranks",
        "With more on one rank the change is that rank's alone.",
        "OperationChange.rank",
    ),
] = 0.8
