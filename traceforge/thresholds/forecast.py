"""When a forecast is given, how far it reaches, and what is said of a run's stability."""

from typing import Annotated

from traceforge.thresholds import Meaning

COMPUTE_TOLERANCE: Annotated[
    float,
    Meaning("ratio", "Compute time that differs by more comes from another batch size.", "runs on one curve"),
] = 1.3
MESSAGE_TOLERANCE: Annotated[
    float, Meaning("ratio", "Runs whose message sizes differ by more are different jobs.", "runs on one curve")
] = 1.1
BATCH_TOLERANCE: Annotated[
    float, Meaning("ratio", "Stated batch sizes that differ by more are different.", "runs on one curve")
] = 1.001
LEAST_STEPS: Annotated[
    int, Meaning("steps", "Fewer steps give no standard error of their mean.", "forecast.point.step_error_ns")
] = 3

LEAST_SCALES: Annotated[
    int, Meaning("scales", "Fewer measured scales test no model and give no band.", "forecast.scale.low, high")
] = 3
LEAST_MODEL_ERROR: Annotated[
    float,
    Meaning("share of the throughput", "Smaller errors say nothing about a model.", "forecast.fit.weight, the band"),
] = 0.01
MOST_TIMES_BEST_ERROR: Annotated[
    float,
    Meaning("ratio", "A model whose error exceeds this many times the best leaves the band.", "forecast.fit.is_used"),
] = 2
FURTHEST_VALUE: Annotated[
    int, Meaning("times the largest measured scale", "Beyond it only a band is given.", "forecast.scale.value")
] = 4
FURTHEST_BAND: Annotated[
    int,
    Meaning("times the largest measured scale", "Beyond it not even a band is given.", "traceforge forecast --ranks"),
] = 64
KNEE_70: Annotated[
    float, Meaning("marginal efficiency", "Below it lies the first knee of a curve.", "forecast.fit.knee_70")
] = 0.7
KNEE_50: Annotated[
    float, Meaning("marginal efficiency", "Below it lies the second knee of a curve.", "forecast.fit.knee_50")
] = 0.5
MODELS_APART: Annotated[
    float,
    Meaning(
        "standard errors of a point", "Models that differ by more can be told apart by one run.", "the next measurement"
    ),
] = 2 * 2**0.5
ENOUGH_ITERATIONS: Annotated[
    int, Meaning("iterations", "A run with fewer is asked for more.", "forecast.missing_measurement")
] = 10

LEAST_OUTLOOK_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer do not show how late ranks are.", "forecast.outlook")
] = 5
TAIL_QUANTILE: Annotated[
    float, Meaning("quantile of lateness", "Values above it are the tail.", "forecast.outlook, method tail")
] = 0.9
LEAST_TAIL_VALUES: Annotated[
    int, Meaning("values", "Fewer values above the quantile do not show a tail.", "forecast.outlook.refusal")
] = 30
HEAVIEST_TAIL: Annotated[
    float,
    Meaning("shape", "A tail whose shape may reach this may have no variance.", "forecast.outlook.refusal"),
] = 0.5

LEAST_STABILITY_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer show neither trends nor turns.", "forecast.stability")
] = 10
LEAST_FOR_P95: Annotated[
    int, Meaning("iterations", "Fewer have no 95 % quantile.", "forecast.stability, p95_over_median")
] = 20
LEAST_FOR_P99: Annotated[
    int, Meaning("iterations", "Fewer have no 99 % quantile.", "forecast.stability, p99_over_median")
] = 100
LARGE_WAITING: Annotated[
    float,
    Meaning("share of the time", "Ranks that wait less hardly wait for one another.", "forecast.stability, verdict"),
] = 0.05
LASTING_LATENESS: Annotated[
    float,
    Meaning("share of the iteration", "A rank that is always later is itself at fault.", "forecast.stability, verdict"),
] = 0.02
LASTING_PART_OF_WAITING: Annotated[
    float,
    Meaning(
        "share of the waiting", "Lasting lateness below it does not explain the waiting.", "forecast.stability, verdict"
    ),
] = 0.25
CHURN_OF_CHANCE: Annotated[
    float,
    Meaning(
        "share of the changes expected by chance",
        "Above it the last arriver changes at random.",
        "forecast.stability, verdict",
    ),
] = 0.7
