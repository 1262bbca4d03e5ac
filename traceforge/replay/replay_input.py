"""A run ready to be changed. In: graph.*, replay.calibration, hosts. Out: model, recorded arrivals, what is known."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.coupling import Baseline
from traceforge.replay.engine import Replay, measured, record, replay
from traceforge.replay.evidence import Evidence, load_evidence, load_hosts
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.reference import clean_transfers
from traceforge.stats import (
    LEAST_COUNT,
    NORMAL,
    Interval,
    block_draws,
    block_length,
    bootstrap_interval,
    lasting_count,
    percentile_interval,
    slope,
    t_quantile,
)
from traceforge.store.database import Store

Times = NDArray[np.int64]
Amounts = NDArray[np.float64]

_DRAWS = 400

_WARM_UP = "SELECT MAX(iteration) FROM timeline.iteration WHERE run_id = ? AND is_warmup"


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A run, as it was: its model, its arrivals and its couplings.

    Attributes:
        is_split: whether waiting and transfer are told apart (timeline.coverage).
        warm_up: how many of the first iterations only warm up; they are replayed and count in no time.
    """

    run_id: int
    model: StepModel
    recorded: Baseline
    known: Evidence
    is_split: bool = True
    warm_up: int = 0

    @property
    def elapsed_ns(self) -> int:
        """From the last rank's first start, or the end of warm-up, to the last rank's last end."""
        return self._elapsed(self.model.end_ns)

    def elapsed_of(self, outcome: Replay) -> int:
        """The same of a replay."""
        return self._elapsed(outcome.end_ns)

    def _elapsed(self, end_ns: Times) -> int:
        begin = end_ns[self.warm_up - 1] if self.warm_up else self.model.start_ns[0]
        return int(end_ns[-1].max() - begin.max())

    def steps_ns(self, end_ns: Times) -> Times:
        """From one completion to the next, shape (N,), for ends of shape (I, R).

        Where an iteration between two is missing, that time is no step, nor is warm-up.
        """
        completion = end_ns.max(axis=1)
        is_next = np.diff(self.model.iterations, prepend=self.model.iterations[0] - 1) == 1
        is_next[: self.warm_up] = False
        steps: Times = np.diff(completion, prepend=self.model.start_ns[0].max())[is_next]
        return steps

    def ratio_interval(self, low: Replay, point: Replay, high: Replay) -> Interval:
        """Interval of recorded over replayed time, from replays with couplings at their lower end, value, upper end."""
        replayed = np.stack([self.steps_ns(one.end_ns) for one in (low, point, high)])
        return ratio_interval(self.steps_ns(self.model.end_ns).astype(np.float64), replayed.astype(np.float64))

    def ceiling(self) -> float:
        """Largest gain any pacing could bring, as a share of throughput: that of waits that slow nothing down.

        Couplings are at their upper ends; where it is not known how transfers follow the spread of arrivals, they grow
        by as much as is possible. Where waits cannot be separated from transfers, these get their reference duration.
        """
        durations = measured(self.model)
        best = [replay(self.model, durations, couplings=self.known.possible, recorded=self.recorded, unhindered=True)]
        if not self.is_split:
            best.append(replay(self.model, replace(durations, transfer_ns=clean_transfers(self.model))))
        return max(0.0, *(self.elapsed_ns / max(self.elapsed_of(one), 1) - 1 for one in best))

    def next_interval(self, low: Replay, point: Replay, high: Replay) -> Interval | None:
        """The same ratio over as many steps to come; None below three steps."""
        recorded = self.steps_ns(self.model.end_ns).astype(np.float64)
        replayed = np.stack([self.steps_ns(one.end_ns) for one in (low, point, high)]).astype(np.float64)
        return next_interval(recorded, replayed) if len(recorded) >= LEAST_COUNT else None


def load_replay_input(store: Store, run_id: int) -> ReplayInput | None:
    """A run of a database; None where it has no iteration with matched collectives."""
    model = store.once(load_model, run_id)
    if model is None or not model.calls.any():
        return None
    hosts = load_hosts(store, run_id, model.ranks.tolist())
    is_split = store.value("SELECT is_split FROM timeline.coverage WHERE run_id = ?", [run_id])
    known = load_evidence(store, run_id)
    last = store.value(_WARM_UP, [run_id])
    warm_up = 0 if last is None or last >= model.iterations[-1] else int((model.iterations <= last).sum())
    return ReplayInput(run_id, model, record(model, hosts), known, is_split is not False, warm_up)


def ratio_interval(recorded_ns: Amounts, replayed_ns: Amounts) -> Interval:
    """95 % interval of total recorded time over total replayed time.

    Two doubts are put together in each draw: which steps the run happened to record (blocks of them are drawn again),
    and how strong the couplings are (a normal curve with different sides, between whose ends the replays are
    interpolated).

    Args:
        recorded_ns: steps, shape (N,).
        replayed_ns: the same steps with couplings at their lower end, best value and upper end, shape (3, N).
    """
    return percentile_interval(_drawn_ratios(recorded_ns, replayed_ns, None, np.random.default_rng(0)))


def next_interval(recorded_ns: Amounts, replayed_ns: Amounts) -> Interval:
    """95 % interval of the ratio over as many steps to come; shapes as in `ratio_interval`, N at least 3.

    Beside the doubts of the recorded steps it holds that other steps will be drawn, that departures last (blocks as
    long as they do, and Student's t over their number), and that what is saved may go on growing or shrinking as it
    surely did so far.
    """
    rng, count = np.random.default_rng(0), len(recorded_ns)
    saved = recorded_ns - replayed_ns[1]
    length = max(block_length(count), lasting_count(saved[:, None]))
    known = np.log(_drawn_ratios(recorded_ns, replayed_ns, length, rng))
    others = np.log(_drawn_ratios(recorded_ns, np.stack([replayed_ns[1]] * 3), length, rng))
    widening = float(t_quantile(max(count // length - 1, 2))) / NORMAL
    middle = float(np.log(recorded_ns.sum() / max(replayed_ns[1].sum(), 1.0)))
    departures = widening * (known - middle + others - others.mean())
    low, high = percentile_interval(np.exp(middle + departures))
    trend = slope(np.arange(count, dtype=np.float64), saved)
    # The middle of the steps to come lies as many steps after that of the recorded ones.
    moved_ns = count * trend.value if trend.is_clear else 0.0
    moved = recorded_ns.mean() / max(replayed_ns[1].mean() - moved_ns, 1.0)
    return Interval(min(low, moved), max(high, moved))


def _drawn_ratios(recorded_ns: Amounts, replayed_ns: Amounts, length: int | None, rng: np.random.Generator) -> Amounts:
    """Ratios of drawn steps in blocks of a length, with drawn couplings, shape (draws,)."""
    chosen = block_draws(len(recorded_ns), _DRAWS, rng, length)
    recorded, replayed = recorded_ns[chosen].sum(axis=1), replayed_ns[:, chosen].sum(axis=2)
    strength = rng.standard_normal(_DRAWS) / NORMAL
    towards = np.where(strength < 0, replayed[0], replayed[2])
    paced = replayed[1] + np.abs(strength) * (towards - replayed[1])
    ratios: Amounts = recorded / np.maximum(paced, 1.0)
    return ratios


def cv_interval(steps_ns: Times) -> Interval | None:
    """95 % interval of the standard deviation over the mean of steps, shape (N,); None below three."""
    return bootstrap_interval(steps_ns.astype(np.float64), _variation, np.random.default_rng(0), _DRAWS)


def _variation(drawn: Amounts) -> Amounts:
    return np.asarray(drawn.std(axis=1, ddof=1) / drawn.mean(axis=1))
