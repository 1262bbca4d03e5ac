"""Who owns how much of a run's iterations. In: its ledger input. Out: ns by iteration and owner, as yet not rounded.

Each iteration is worked out by the cheapest way that its shape allows: all ranks in one group, some groups, or each
rank for itself.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np

from traceforge.attribute.ledger.group_waits import in_groups
from traceforge.attribute.ledger.groups import blame_groups
from traceforge.attribute.ledger.hidden_work import hides_work
from traceforge.attribute.ledger.host_causes import load_judged_input
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.attribute.ledger.one_group import blame_one_group, is_one_group
from traceforge.attribute.ledger.propagation import blame_iteration
from traceforge.replay.reference import Amounts, Reference, references
from traceforge.store.database import Store


def blame_of_run(store: Store, run_id: int) -> Amounts:
    """What each owner of a run owns; of a run without a ledger nothing. Shared (`Store.once`): do not change it."""
    run = store.once(load_judged_input, run_id)
    return np.zeros((0, 0)) if run is None else owned_ns(run, references(run.model))


def owned_ns(run: LedgerInput, of_length: Mapping[int, Reference]) -> Amounts:
    """Who owns how much, ns, shape (I, owners): ranks by cause, then communicators, then what is everyone's."""
    model = run.model
    work = len(model.ranks) * len(model.kinds)
    result = np.zeros((len(model.iterations), work + len(run.communicators) + 1))
    is_hidden = hides_work(model, of_length)
    is_lockstep = is_one_group(model, is_hidden)
    is_grouped = in_groups(model, run.communicator, is_hidden & ~is_lockstep)
    for calls, reference in of_length.items():
        alike = model.calls == calls
        together, apart = np.flatnonzero(is_lockstep & alike), np.flatnonzero(is_grouped & alike)
        for blames in chain(
            blame_one_group(model, together, reference, run.communicator),
            blame_groups(model, apart, reference, run.communicator),
        ):
            result[blames.iterations, :work] = blames.work_ns.reshape(len(blames.iterations), work)
            result[blames.iterations, work : work + blames.transfers_ns.shape[1]] = blames.transfers_ns
            result[blames.iterations, -1] = blames.early_ns
    for i in np.flatnonzero(~is_lockstep & ~is_grouped):
        blame = blame_iteration(model, int(i), of_length[int(model.calls[i])], run.communicator[i])
        result[i, :work] = blame.work_ns.ravel()
        result[i, work : work + len(blame.transfers_ns)] = blame.transfers_ns
        result[i, -1] = blame.early_ns
    return result
