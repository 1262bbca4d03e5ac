"""When something lasting is said of many runs."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_RUNS_BEFORE: Annotated[
    int, Meaning("runs", "With fewer runs of a level, no change from it is looked for.", "LevelChange")
] = 10

MOST_RUNS_BEFORE: Annotated[
    int, Meaning("runs", "Only so many runs before a change say what is usual.", "LevelChange")
] = 60

RUNS_OF_A_STEP: Annotated[
    int, Meaning("runs", "So many in a row beyond what is usual, on one side, are a lasting change.", "LevelChange")
] = 3

STEP_SPREADS: Annotated[
    float,
    Meaning(
        "standard deviations between runs",
        "Each of these runs is further from the usual than this (more where few runs say what is usual).",
        "LevelChange",
    ),
] = 3.0

RUNS_OF_A_SMALL_STEP: Annotated[
    int, Meaning("runs", "The same for a smaller change, which takes longer to show.", "LevelChange")
] = 8

SMALL_STEP_SPREADS: Annotated[
    float, Meaning("standard deviations between runs", "The same for a smaller change.", "LevelChange")
] = 1.5

OUTLIER_SPREADS: Annotated[
    float,
    Meaning(
        "standard deviations between runs",
        "A run further from the usual is drawn in to here: it is no scatter.",
        "LevelChange",
    ),
] = 2.5

LEAST_CHANGE_SHARE: Annotated[
    float, Meaning("share of the usual value", "A smaller change is never reported.", "LevelChange")
] = 0.01

GUILTY_P_VALUE: Annotated[
    float,
    Meaning(
        "probability",
        "A host or NIC is named where chance would name any of them falsely less often (Holm over all of them).",
        "Suspect.is_named",
    ),
] = 0.01

RECENT_RUNS: Annotated[
    int,
    Meaning(
        "runs", "A change that became certain within so many last runs of a series fails a check.", "history check"
    ),
] = 3
