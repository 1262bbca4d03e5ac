"""What events are. Reads raw.event_kind, the distinct names; fills align.name_class.

Each (category, name) is classified once, by the rules of `vocabulary.toml`, so that a new vendor or era is a line of
data. Only complete events (phase X) take part.
"""

import polars as pl

from traceforge.align.collective_names import operation_of
from traceforge.store.database import Store
from traceforge.vocabulary import vocabulary

_NAMES = """
SELECT DISTINCT category, name FROM raw.event_kind WHERE phase = 'X' AND name IS NOT NULL ORDER BY category, name
"""
_WITH_OPERATION = ("communication", "host_communication", "communication_call")


def rows(store: Store) -> pl.DataFrame:
    """One row a distinct (category, name)."""
    result = []
    for category, name in store.query(_NAMES).iter_rows():
        canonical, event_class = vocabulary().classify(category, name)
        op = operation_of(name) if event_class in _WITH_OPERATION else None
        is_recorded = event_class == "communication" and vocabulary().is_recorded(name)
        result.append((category, name, canonical, event_class, op, is_recorded))
    texts = ("category", "name", "canonical_category", "class", "op")
    schema = {**dict.fromkeys(texts, pl.String), "is_recorded": pl.Boolean}
    return pl.DataFrame(result, schema=schema, orient="row")
