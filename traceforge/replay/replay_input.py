"""A run ready to be changed. In: graph.*, replay.calibration, hosts. Out: model, recorded arrivals, what is known."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.coupling import Baseline
from traceforge.replay.engine import Replay, measured, record, replay
from traceforge.replay.evidence import Evidence, load_evidence, load_hosts
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.reference import clean_transfers
from traceforge.store.database import Store

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A run, as it was: its model, its arrivals and its couplings."""

    run_id: int
    model: StepModel
    recorded: Baseline
    known: Evidence

    @property
    def elapsed_ns(self) -> int:
        """From the last rank's first start to the last rank's last end."""
        return int(self.model.end_ns[-1].max() - self.model.start_ns[0].max())

    def elapsed_of(self, outcome: Replay) -> int:
        """The same of a replay."""
        return int(outcome.end_ns[-1].max() - self.model.start_ns[0].max())

    def steps_ns(self, end_ns: Times) -> Times:
        """From one completion to the next, shape (N,), for ends of shape (I, R).

        Where an iteration between two is missing, that time is no step.
        """
        completion = end_ns.max(axis=1)
        is_next = np.diff(self.model.iterations, prepend=self.model.iterations[0] - 1) == 1
        steps: Times = np.diff(completion, prepend=self.model.start_ns[0].max())[is_next]
        return steps

    def ceiling(self) -> float:
        """Largest gain any pacing could bring, as a share of throughput.

        Where couplings are measured: that of waits that slow nothing down, at the couplings' upper ends. Where it is
        not known how transfers follow the spread of arrivals: that of transfers never above their reference.
        """
        durations, best = measured(self.model), []
        if self.known.is_measured or self.known.is_positive:
            best.append(
                replay(self.model, durations, couplings=self.known.high, recorded=self.recorded, unhindered=True)
            )
        if not self.known.is_measured:
            clean = clean_transfers(self.model)
            best.append(replay(self.model, replace(durations, transfer_ns=clean)))
        return max(0.0, *(self.elapsed_ns / max(self.elapsed_of(one), 1) - 1 for one in best))


def load_replay_input(store: Store, run_id: int) -> ReplayInput | None:
    """A run of a database; None where it has no iteration with matched collectives."""
    model = store.once(load_model, run_id)
    if model is None or not model.calls.any():
        return None
    hosts = load_hosts(store, run_id, model.ranks.tolist())
    return ReplayInput(run_id, model, record(model, hosts), load_evidence(store, run_id))
