"""Time lost to failures, and what a job costs. In: throughput, work, assumptions. Out: goodput, hours and money.

Failures come at random, at a rate of one over M: the mean time of one GPU over the number of GPUs, as if failures of
parts were independent. After a failure the job restarts, in `restart_s`, from its last checkpoint, and may fail again
while it does. To get through an interval of work and its checkpoint then takes, by renewal (Daly, FGCS 2006),

    M exp(restart / M) (exp((interval + checkpoint) / M) - 1)

and the interval that loses least is M (1 + W(-exp(-1 - checkpoint / M))), W the function of Lambert. Where failures are
rare this is sqrt(2 checkpoint M) (Young, CACM 1974). Not handled: failures that come in bursts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import lambertw

# 466 interruptions in 54 days on 16,384 GPUs (Llama 3 herd of models, 2024, section 3.3.4).
_FIELD_MTBF_HOURS = 16_384 * 54 * 24 / 466
# Exponents beyond it overflow; no work gets done long before.
_MOST = 700.0
# A smaller share of work is none within any job's life.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What no trace contains; all of it can be given on the command line.

    Attributes:
        price: of one GPU for an hour.
        mtbf_hours: mean time between failures that stop the job, of one GPU.
        checkpoint_s: time the job stands still to write a checkpoint.
        restart_s: time from a failure to the first repeated iteration.
        gpus_per_rank: GPUs behind each counted rank (or node).
        batch: samples per rank and iteration; None where it is not known.
        watts: power of one GPU with its share of the host; None where it is not known.
        samples: work of the whole job; None where it is not stated.
        currency: of the price, any short name; None where it is not named.
    """

    price: float = 2.5
    mtbf_hours: float = round(_FIELD_MTBF_HOURS, -2)
    checkpoint_s: float = 60.0
    restart_s: float = 600.0
    gpus_per_rank: int = 1
    batch: float | None = None
    watts: float | None = None
    samples: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Reliability:
    """How failures affect a job of some size.

    Attributes:
        mtbf_s: mean time between failures of the whole job.
        interval_s: checkpoint interval that loses least.
        share: share of the time that is work, 0..1.
    """

    mtbf_s: float
    interval_s: float
    share: float


@dataclass(frozen=True, slots=True)
class JobTime:
    """Time and money for a stated amount of work, with their band.

    Attributes:
        hours: expected, failures and checkpoints included; None where no throughput is given.
        failures: expected number.
    """

    hours: float | None
    low_hours: float | None
    high_hours: float | None
    failures: float | None
    cost: float | None


def reliability(ranks: float, assumed: Assumptions) -> Reliability:
    """Failures at a number of ranks, at the best checkpoint interval."""
    mtbf_s = assumed.mtbf_hours * 3600 / (ranks * assumed.gpus_per_rank)
    interval = mtbf_s * (1 + float(lambertw(-np.exp(-1 - assumed.checkpoint_s / mtbf_s)).real))
    return Reliability(mtbf_s, interval, work_share(interval, mtbf_s, assumed))


def work_share(interval_s: float, mtbf_s: float, assumed: Assumptions) -> float:
    """Share of the time that is work when a checkpoint follows every `interval_s` of it."""
    restarts = np.exp(-assumed.restart_s / mtbf_s)
    if interval_s <= 0:
        return float(restarts)
    share = float(restarts * interval_s / mtbf_s / np.expm1(min((interval_s + assumed.checkpoint_s) / mtbf_s, _MOST)))
    return share if share > _LEAST_SHARE else 0.0


def cost_per_sample(throughput: float, ranks: float, assumed: Assumptions) -> float:
    """Money for one unit of what the throughput counts, failures included; infinite where nothing gets done."""
    goodput = throughput * reliability(ranks, assumed).share
    hourly = assumed.price * ranks * assumed.gpus_per_rank
    return hourly / 3600 / goodput if goodput > 0 else float("inf")


def energy_per_sample_j(throughput: float, ranks: float, assumed: Assumptions) -> float | None:
    """Energy for one unit, J; None where the power is not known."""
    if assumed.watts is None:
        return None
    goodput = throughput * reliability(ranks, assumed).share
    return assumed.watts * ranks * assumed.gpus_per_rank / goodput if goodput > 0 else None


def job_time(samples: float, ranks: float, band: Sequence[float | None], assumed: Assumptions) -> JobTime:
    """Hours for a job of so many samples.

    Args:
        band: throughput, its lower and its upper end; None where it is not given.

    The band joins that of the throughput with two standard deviations of the number of failures (Poisson).
    """
    rel = reliability(ranks, assumed)
    per_failure_s = rel.interval_s / 2 + assumed.restart_s
    checkpoints = 1 + assumed.checkpoint_s / rel.interval_s

    def hours(throughput: float | None, deviations: float) -> float | None:
        if not throughput or not rel.share:
            return None
        expected = samples / throughput / rel.share
        failures = expected / rel.mtbf_s
        work = samples / throughput * checkpoints
        return float(max(work, expected + deviations * failures**0.5 * per_failure_s) / 3600)

    value, low, high = band
    middle = hours(value, 0)
    hourly = assumed.price * ranks * assumed.gpus_per_rank
    return JobTime(
        hours=middle,
        low_hours=hours(high, -2),
        high_hours=hours(low, 2),
        failures=None if middle is None else middle * 3600 / rel.mtbf_s,
        cost=None if middle is None else middle * hourly,
    )


def sensitivity(throughput: float, ranks: float, assumed: Assumptions) -> dict[str, tuple[float, float]]:
    """Cost per unit if an assumption is half and twice of what was assumed, by its name."""
    names = ("price", "mtbf_hours", "checkpoint_s", "restart_s")
    return {
        name: tuple(  # type: ignore[misc]  # two factors make two values
            cost_per_sample(throughput, ranks, replace(assumed, **{name: factor * getattr(assumed, name)}))
            for factor in (0.5, 2.0)
        )
        for name in names
    }
