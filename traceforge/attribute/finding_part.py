"""Findings by cause. Reads the findings as they were searched; fills attribute.finding_part."""

import numpy as np

from traceforge.attribute.cause import causes
from traceforge.attribute.finding import load_findings
from traceforge.attribute.ledger.rounding import round_to_sum
from traceforge.store.database import Store


def rows(store: Store) -> list[tuple[object, ...]]:
    """One row a cause that has a part of a finding, the largest first."""
    result: list[tuple[object, ...]] = []
    for run_id in store.run_ids():
        for number, finding in enumerate(store.once(load_findings, run_id)):
            parts = {name: part for name, part in finding.parts.items() if part > 0}
            total = float(str(finding.row["delay_ns_per_iteration"]))
            amounts = np.array(list(parts.values())) * total / sum(parts.values())
            whole = zip(parts, round_to_sum(amounts[None])[0].tolist(), strict=True)
            for name, amount in sorted(whole, key=lambda part: (-part[1], part[0])):
                result.append((run_id, number, causes()[name].mode, name, amount))
    return result
