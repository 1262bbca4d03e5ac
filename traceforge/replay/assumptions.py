"""What the user has the stages assume. In: a rule of what is on time, and rates of the hardware. Out: meta.* rows.

Stages that were built under other assumptions count as not built, so that the next analysis builds them anew.
"""

from collections.abc import Mapping

from traceforge.operation.stated_rates import state_rates, stated_rates
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store


def assume(store: Store, reference: ReferenceRule | None = None, rates: Mapping[str, float] | None = None) -> None:
    """Have the stages built by this rule and these rates; None keeps what the database has."""
    if are_assumed(store, reference, rates):
        return
    with store.transaction():
        if reference is not None:
            store.execute("UPDATE meta.analysis SET reference = ?", [reference.value])
        state_rates(store, rates or {})
        store.execute("DELETE FROM meta.build")


def are_assumed(store: Store, reference: ReferenceRule | None, rates: Mapping[str, float] | None) -> bool:
    """Whether the database has this rule and these rates already."""
    kept = ReferenceRule(store.value("SELECT reference FROM meta.analysis"))
    return reference in {None, kept} and (rates or {}).items() <= stated_rates(store).items()
