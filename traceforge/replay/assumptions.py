"""What the user has the stages assume. In: a rule of what is on time, rates of the hardware, racks. Out: meta.* rows.

Stages that were built under other assumptions count as not built, so that the next analysis builds them anew.
"""

from collections.abc import Mapping

from traceforge.align.stated_racks import StatedRacks, state_racks, stated_racks
from traceforge.operation.stated_rates import state_rates, stated_rates
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store


def assume(
    store: Store,
    reference: ReferenceRule | None = None,
    rates: Mapping[str, float] | None = None,
    racks: StatedRacks | None = None,
) -> None:
    """Have the stages built by this rule, these rates and these racks; None keeps what the database has."""
    if are_assumed(store, reference, rates, racks):
        return
    with store.transaction():
        if reference is not None:
            store.execute("UPDATE meta.analysis SET reference = ?", [reference.value])
        state_rates(store, rates or {})
        if racks is not None:
            state_racks(store, racks)
        store.execute("DELETE FROM meta.build")


def are_assumed(
    store: Store,
    reference: ReferenceRule | None,
    rates: Mapping[str, float] | None,
    racks: StatedRacks | None = None,
) -> bool:
    """Whether the database has this rule, these rates and these racks already."""
    kept = ReferenceRule(store.value("SELECT reference FROM meta.analysis"))
    is_same = reference in {None, kept} and (rates or {}).items() <= stated_rates(store).items()
    return is_same and (racks is None or racks == stated_racks(store))
