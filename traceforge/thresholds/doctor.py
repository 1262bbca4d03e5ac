"""When what was recorded is enough."""

from typing import Annotated

from traceforge.thresholds import Meaning

ENOUGH_ITERATIONS: Annotated[int, Meaning("iterations", "With fewer, rare delays go unnoticed.", "doctor")] = 10
LEAST_MATCHED_SHARE: Annotated[float, Meaning("share of calls", "From here on calls count as matched.", "doctor")] = (
    0.95
)
MOST_RESIDUAL_SHARE: Annotated[
    float, Meaning("share of the mean iteration", "Clocks this uncertain still compare ranks well.", "doctor")
] = 0.01
