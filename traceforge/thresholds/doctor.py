"""When what was recorded is enough."""

from typing import Annotated

from traceforge.thresholds import Meaning

ENOUGH_ITERATIONS: Annotated[
    int, Meaning("iterations", "With fewer judged iterations rare delays go unnoticed.", "doctor: iterations")
] = 10

LEAST_MATCHED_SHARE: Annotated[
    float,
    Meaning("share of calls", "From this share on, calls count as matched across ranks.", "doctor: matching"),
] = 0.95

MOST_RESIDUAL_SHARE: Annotated[
    float,
    Meaning("share of the mean iteration", "Clocks this uncertain still compare ranks well.", "doctor: clocks"),
] = 0.01
