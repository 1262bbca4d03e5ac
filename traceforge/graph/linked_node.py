"""The pairs of accepted links. Reads graph.link, raw.chakra_node and raw.event; fills graph.linked_node.

The accepted method is run once more, as a table is filled by one function. Not handled: refused links (no rows).
"""

from collections.abc import Iterator

import polars as pl

from traceforge.graph.link import sides
from traceforge.graph.operation_matching import pair
from traceforge.store.database import Store

_ACCEPTED = """
SELECT run_id, source_id, part, timeline_source_id, method FROM graph.link WHERE is_accepted
ORDER BY run_id, source_id, part
"""


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a pair."""
    for run_id, source_id, part, timeline, method in store.rows(_ACCEPTED):
        both = sides(store, source_id, part, timeline)
        pairs = pair(method, both.operations, both.events)
        columns = {
            "position": pl.Series(both.positions[pairs.operation]),
            "event_id": pl.Series(both.event_ids[pairs.event]),
            "is_same_name": pl.Series(both.operations.name[pairs.operation] == both.events.name[pairs.event]),
        }
        keys = (pl.lit(value).alias(name) for name, value in (("run_id", run_id), ("source_id", source_id)))
        yield pl.DataFrame(columns).with_columns(*keys, part=pl.lit(part), timeline_source_id=pl.lit(timeline))
