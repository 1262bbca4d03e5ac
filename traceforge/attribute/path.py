"""Whose path is slow. In: a run as booked. Out: for each communicator, the cause that owns its slow transfers.

Communicators that meet at the same place of the program move the same bytes. One that is slower than most of its
peers in nearly all iterations has a worse path; what comes and goes, or befalls most of them, is the fabric's. A
communicator without peers tells nothing of its path.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.booking import Booked
from traceforge.attribute.cause import cause_of_transfer
from traceforge.replay.reference import Reference

# Slow in all but a tenth of the iterations, by at least half of what it is slow by on average.
_SELDOM = 0.1
_STEADY = 0.5
# Below this share of the transfers themselves, peers do not differ.
_LEAST_EXCESS = 0.1


def transfer_causes(run: Booked, of_length: Mapping[int, Reference]) -> list[str]:
    """Cause of each communicator's slow transfers, length C."""
    excess, reference = _excess(run, of_length)
    steady = np.quantile(excess, _SELDOM, axis=0) >= np.maximum(
        _STEADY * excess.mean(axis=0), _LEAST_EXCESS * reference.mean(axis=0)
    )
    steady &= excess.mean(axis=0) > 0
    fabric, path = cause_of_transfer("fabric"), cause_of_transfer("path")
    return [
        path if steady[c] and _is_exception(steady, _peers(run, c)) else fabric for c in range(len(run.communicators))
    ]


def _excess(run: Booked, of_length: Mapping[int, Reference]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Transfer time above the reference, and the reference, by iteration and communicator, shape (I, C)."""
    model = run.model
    excess = np.zeros((len(model.iterations), len(run.communicators)))
    expected = np.zeros_like(excess)
    for i, calls in enumerate(model.calls.tolist()):
        reference = of_length[calls].transfer_ns
        for p in range(calls):
            of = run.communicator[i, p]
            np.add.at(excess[i], of, model.transfer_ns[i, p] - reference[p])
            np.add.at(expected[i], of, reference[p])
    sizes = np.maximum(1, [np.unique(np.nonzero(run.communicator == c)[2]).size for c in range(excess.shape[1])])
    return excess / sizes, expected / sizes


def _peers(run: Booked, c: int) -> NDArray[np.int64]:
    """Communicators that meet where `c` does, itself included."""
    places = (run.communicator[0] == c).any(axis=1)
    return np.unique(run.communicator[0][places])


def _is_exception(steady: NDArray[np.bool_], peers: NDArray[np.int64]) -> bool:
    """Whether at most half of several peers are slow."""
    return len(peers) > 1 and int(steady[peers].sum()) <= len(peers) / 2
