"""Findings by cause. Reads the findings as they were searched; fills attribute.finding_part."""

import numpy as np
import polars as pl

from traceforge.attribute.cause import causes
from traceforge.attribute.finding import load_findings
from traceforge.attribute.ledger.rounding import round_to_sum
from traceforge.store.database import Store

_SCHEMA = {
    "run_id": pl.Int32,
    "finding_id": pl.Int32,
    "mode": pl.String,
    "cause": pl.String,
    "delay_ns_per_iteration": pl.Int64,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a cause that has a part of a finding, the largest first."""
    result = []
    for run_id in store.run_ids():
        for number, finding in enumerate(store.once(load_findings, run_id)):
            parts = {name: part for name, part in finding.parts.items() if part > 0}
            total = float(str(finding.row["delay_ns_per_iteration"]))
            amounts = np.array(list(parts.values())) * total / sum(parts.values())
            for name, amount in sorted(zip(parts, round_to_sum(amounts[None])[0].tolist(), strict=True)):
                result.append((run_id, number, causes()[name].mode, name, amount))
    frame = pl.DataFrame(result, schema=_SCHEMA, orient="row")
    return frame.sort("run_id", "finding_id", "delay_ns_per_iteration", descending=[False, False, True])
