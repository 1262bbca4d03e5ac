"""Jobs whose blame is worked by hand. In: what is late, where and by how much. Out: a model, and blame as a dict."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.replay.models import lockstep_model
from traceforge.attribute.blame import Blame, blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

DISTURBED = 2
"""The iteration, of five, in which something happens; the others tell what is normal."""


def disturbed(
    late_ns: Mapping[tuple[int, int], int],
    *,
    places: int = 1,
    ranks: int,
    transfer_ns: int = 10,
    groups: Sequence[Sequence[int]] | None = None,
) -> StepModel:
    """Five iterations of 100 ns at each place on each rank, and in one of them more or less by (place, rank)."""
    work = np.full((5, places, ranks), 100)
    for (place, rank), amount in late_ns.items():
        work[DISTURBED, place, rank] += amount
    return lockstep_model(work, transfer_ns=transfer_ns, groups=groups)


def blame_of(model: StepModel, iteration: int = DISTURBED) -> Blame:
    """Blame of one iteration against the run's own references."""
    return blame_iteration(model, iteration, references(model)[int(model.calls[iteration])])


def late_by(blame: Blame) -> dict[tuple[int, int], float]:
    """What each (rank, kind of work) owns; those that own nothing are left out."""
    return {(int(r), int(k)): float(blame.work_ns[r, k]) for r, k in np.argwhere(np.abs(blame.work_ns) > 1e-9)}
