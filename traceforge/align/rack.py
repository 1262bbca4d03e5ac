"""The rack of each host. Reads align.rank and what the user states of racks; fills align.rack.

Hosts of which nothing is stated have no row; where some have one, the others are counted in `meta.issue`.
"""

import polars as pl

from traceforge.align.stated_racks import stated_racks
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_HOSTS = "SELECT DISTINCT run_id, host FROM align.rank WHERE host IS NOT NULL ORDER BY run_id, host"
_SCHEMA = {"run_id": pl.Int32, "host": pl.String, "rack": pl.String}


def rows(store: Store) -> pl.DataFrame:
    """One row a host whose rack is stated; adds an issue where others have none."""
    stated = stated_racks(store)
    if not stated.by_host and stated.pattern is None:
        return pl.DataFrame(schema=_SCHEMA)
    found = [(run_id, host, stated.of(str(host))) for run_id, host in store.rows(_HOSTS)]
    for run_id in dict.fromkeys(run for run, _, _ in found):
        own = [(host, rack) for run, host, rack in found if run == run_id]
        without = [str(host) for host, rack in own if rack is None]
        if without:
            severity = "warning" if len(without) == len(own) else "info"
            detail = "of these hosts neither --racks nor --rack-pattern tells the rack"
            issue = Issue("host_without_rack", severity, len(without), without[0], detail)
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "align", [issue]))
    return pl.DataFrame([row for row in found if row[2] is not None], schema=_SCHEMA, orient="row")
