"""When a forecast is given, how far it reaches, and what the verdict on a run's stability rests on."""

from typing import Annotated

from traceforge.thresholds import Meaning

COMPUTE_TOLERANCE: Annotated[
    float, Meaning("ratio", "Compute times that differ by more come from different batch sizes.", "runs on one curve")
] = 1.3
MESSAGE_TOLERANCE: Annotated[
    float, Meaning("ratio", "Message sizes that differ by more come from different jobs.", "runs on one curve")
] = 1.1
BATCH_TOLERANCE: Annotated[float, Meaning("ratio", "Batch sizes that differ by more do.", "runs on one curve")] = 1.001
LEAST_STEPS: Annotated[int, Meaning("steps", "Fewer give no standard error.", "forecast.point.step_error_ns")] = 3

LEAST_SCALES: Annotated[int, Meaning("scales", "Fewer test no model and give no band.", "forecast.scale.low")] = 3
LEAST_MODEL_ERROR: Annotated[
    float, Meaning("share of the throughput", "Smaller errors do not rank models.", "forecast.fit.weight")
] = 0.01
MOST_TIMES_BEST_ERROR: Annotated[
    float, Meaning("ratio", "A model with a larger multiple of the best error is left out.", "forecast.fit.is_used")
] = 2
WEIGHT_OF_UNTESTED: Annotated[
    float, Meaning("share of the least weight", "What nothing has tested counts less.", "forecast.fit.weight")
] = 0.25
LEAST_POINT_ERROR: Annotated[
    float, Meaning("share of the time", "Runs of the same job on other machines differ as much.", "forecast.scale.low")
] = 0.003
LEAST_UNSTATED_ERROR: Annotated[
    float, Meaning("share of the time", "Of points that state no error, what they may be off by.", "forecast.scale.low")
] = 0.01
LARGE_BACKTEST: Annotated[
    float, Meaning("share of the throughput", "A forecast that missed more is warned of.", "traceforge forecast")
] = 0.1
LEAST_DOUBLINGS: Annotated[
    float, Meaning("doublings", "A scale nearer than this says nothing of a doubling.", "forecast.scale.low")
] = 0.25
LEAST_DOUBLING_ERROR: Annotated[
    float, Meaning("share of the throughput", "No model is surer of a doubling of the ranks.", "forecast.scale.low")
] = 0.004
DOUBLING_ERROR_FACTOR: Annotated[
    float, Meaning("ratio", "Few tests show less than the error that is to be expected.", "forecast.scale.low")
] = 1.0
UNTESTED_DOUBLING_ERROR: Annotated[
    float, Meaning("share of the throughput", "What a model that nothing tested may miss by.", "forecast.scale.low")
] = 0.1
WAITING_DOUBLING_ERROR: Annotated[
    float, Meaning("share of the waiting", "What order statistics miss in a doubling.", "forecast.scale.low")
] = 0.25
BAND_DEVIATIONS: Annotated[
    float, Meaning("standard deviations", "Half of the band: 90 % of a normal distribution.", "forecast.scale.low")
] = 1.645
CROSSING_SHARE: Annotated[
    float, Meaning("share of the transfer time", "With more, a run shows the links between hosts.", "forecast, regimes")
] = 0.5
JUMP_OF_TRANSFERS: Annotated[
    float, Meaning("ratio", "A larger jump shows where runs begin to cross hosts.", "forecast, regimes")
] = 1.4
FURTHEST_VALUE: Annotated[
    int, Meaning("times the largest measured scale", "Beyond it only a band is given.", "forecast.scale.value")
] = 4
FURTHEST_BAND: Annotated[
    int, Meaning("times the largest measured scale", "Beyond it nothing is given.", "traceforge forecast --ranks")
] = 64
FURTHEST_BLOCKS: Annotated[
    int, Meaning("times the measured ranks", "Beyond it the tail is fitted, not drawn in blocks.", "forecast.outlook")
] = 4
KNEE_70: Annotated[float, Meaning("marginal efficiency", "Below it lies the first knee.", "forecast.fit.knee_70")] = 0.7
KNEE_50: Annotated[float, Meaning("marginal efficiency", "Below it lies the second.", "forecast.fit.knee_50")] = 0.5
MODELS_APART: Annotated[
    float, Meaning("standard errors of a point", "One run separates models that differ by more.", "next measurement")
] = 2 * 2**0.5
ENOUGH_ITERATIONS: Annotated[
    int, Meaning("iterations", "A run with fewer needs more.", "forecast.missing_measurement")
] = 10

LEAST_OUTLOOK_ITERATIONS: Annotated[
    int, Meaning("iterations", "Fewer do not show how late ranks are.", "forecast.outlook")
] = 5
TAIL_QUANTILE: Annotated[float, Meaning("quantile", "Lateness above it is the tail.", "forecast.outlook, tail")] = 0.9
LEAST_TAIL_VALUES: Annotated[int, Meaning("values", "Fewer do not show a tail.", "forecast.outlook.refusal")] = 30
HEAVIEST_TAIL: Annotated[
    float, Meaning("shape", "A tail that may be heavier may have no variance.", "forecast.outlook.refusal")
] = 0.5

LEAST_STABILITY_ITERATIONS: Annotated[int, Meaning("iterations", "Fewer show no trend.", "forecast.stability")] = 10
LEAST_FOR_P95: Annotated[int, Meaning("iterations", "Fewer have no 95 % quantile.", "forecast.stability")] = 20
LEAST_FOR_P99: Annotated[int, Meaning("iterations", "Fewer have no 99 % quantile.", "forecast.stability")] = 100
LARGE_WAITING: Annotated[
    float, Meaning("share of the time", "Ranks that wait less wait little.", "forecast.stability, verdict")
] = 0.05
LASTING_LATENESS: Annotated[
    float, Meaning("share of the iteration", "A rank that is always later is at fault.", "forecast.stability, verdict")
] = 0.02
LASTING_PART_OF_WAITING: Annotated[
    float, Meaning("share of the waiting", "Less lasting lateness does not explain it.", "forecast.stability, verdict")
] = 0.25
CHURN_OF_CHANCE: Annotated[
    float, Meaning("share of chance", "Above it the last arriver changes at random.", "forecast.stability, verdict")
] = 0.7
