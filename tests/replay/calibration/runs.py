"""Runs whose coupling is known, as arrays. In: a coupling and what else goes on. Out: `Collectives` of that run.

Each iteration ranks work, arrive at one collective and wait; the transfer is 10 ms + kappa x mean wait + noise. In a
troubled run the fabric has episodes that hold up some ranks on their way *and* slow the transfer: what a regression
takes for a coupling. Times are ns.
"""

from dataclasses import dataclass

import numpy as np

from traceforge.replay.calibration.arrival_spread import Collectives

MS = 1e6


@dataclass(frozen=True)
class Run:
    """What a run is like.

    Attributes:
        kappa: the coupling.
        iterations: how many.
        ranks: how many.
        places: collectives an iteration, each with its own work before it.
        episodes: share of iterations in which the fabric holds up some ranks and slows the transfer.
        lasting: correlation of a rank's work from one iteration to the next; also the mean length of episodes, less
            one, over itself.
        tail: whether one transfer in twenty takes an extra from a heavy tail.
        clock_ns: error of each recorded arrival.
    """

    kappa: float = 0.0
    iterations: int = 100
    ranks: int = 64
    places: int = 1
    episodes: float = 0.0
    lasting: float = 0.0
    tail: bool = False
    clock_ns: float = 0.0


def simulate(run: Run, seed: int) -> Collectives:
    """One run."""
    rng = np.random.default_rng(seed)
    shape = (run.iterations, run.places, run.ranks)
    work = 1 * MS * _lasting(rng, shape, run.lasting)
    in_episode = _episodes(rng, run)
    held_up = (rng.random(shape) < 0.1) * rng.exponential(3 * MS, shape) * in_episode[:, None, None]
    arrival = work + held_up
    wait = arrival.max(axis=2) - arrival.mean(axis=2)
    noise = 0.3 * MS * rng.standard_normal(wait.shape)
    if run.tail:
        noise += (rng.random(wait.shape) < 0.05) * 2 * MS * rng.pareto(1.5, wait.shape)
    slowed = rng.exponential(3 * MS, run.iterations) * in_episode
    end = arrival.max(axis=2) + 10 * MS + run.kappa * wait + noise + slowed[:, None]
    recorded = arrival + run.clock_ns * rng.standard_normal(shape)
    last = recorded.max(axis=2)
    iteration, place = (index.ravel() for index in np.indices(wait.shape))
    return Collectives(
        iteration=iteration,
        place=place,
        transfer_ns=(end - last).ravel(),
        wait_ns=(last - recorded.mean(axis=2)).ravel(),
        local_ns=(work.max(axis=2) - work.mean(axis=2)).ravel(),
        error_ns=np.full(wait.size, max(run.clock_ns, 1.0)),
    )


def _lasting(rng: np.random.Generator, shape: tuple[int, int, int], correlation: float) -> np.ndarray:
    steps = rng.standard_normal(shape)
    for i in range(1, shape[0]):
        steps[i] = correlation * steps[i - 1] + np.sqrt(1 - correlation**2) * steps[i]
    return steps


def _episodes(rng: np.random.Generator, run: Run) -> np.ndarray:
    state, states = rng.random() < run.episodes, []
    for draw in rng.random(run.iterations):
        # A two-state chain whose share of time in an episode is `episodes`, whatever its persistence.
        leave = (1 - run.lasting) * ((1 - run.episodes) if state else run.episodes)
        state = not state if draw < leave else state
        states.append(state)
    return np.array(states, dtype=float)


def plain_slope(collectives: Collectives) -> float:
    """Slope of a plain regression of transfers on waits within places."""
    wait, transfer = collectives.wait_ns.copy(), collectives.transfer_ns.copy()
    for place in np.unique(collectives.place):
        own = collectives.place == place
        wait[own] -= wait[own].mean()
        transfer[own] -= transfer[own].mean()
    return float(wait @ transfer / (wait @ wait))
