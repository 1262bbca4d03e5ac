"""When findings of slow compute hold. Reads what attribute.finding reads; fills attribute.finding_time.

Idea: telemetry is asked before the findings are written, since their next steps follow from its answer.
"""

from traceforge.attribute.finding import load_findings
from traceforge.store.database import Store


def rows(store: Store) -> list[tuple[object, ...]]:
    """One row a finding of slow compute of some ranks, but not of the whole job."""
    return [
        (run_id, number, one.row["ranks"], one.row["first_iteration"], one.row["last_iteration"])
        for run_id in store.run_ids()
        for number, one in enumerate(store.once(load_findings, run_id))
        if one.row["cause"] == "slow_compute" and one.row["subject_kind"] in ("rank", "ranks", "host")
    ]
