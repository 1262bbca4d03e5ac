"""What a file recorded, at a glance. Reads raw.event and align.file_batch; fills align.extent."""

from collections.abc import Iterator

import polars as pl

from traceforge.align.rank_batches import file_batches
from traceforge.store.database import Store
from traceforge.thresholds import align as thresholds

_EXTENTS = """
SELECT
  source_id,
  CASE WHEN MAX(raw_start_ns) < $3 THEN MIN(raw_start_ns) FILTER (WHERE phase = 'X' AND raw_start_ns > -$3)
    ELSE MIN(raw_start_ns) FILTER (WHERE phase = 'X' AND raw_start_ns > 0) END AS raw_first_ns,
  MAX(raw_start_ns + COALESCE(duration_ns, 0)) FILTER (WHERE phase = 'X') AS raw_last_ns,
  MIN(device) FILTER (WHERE category IN ('kernel', 'Kernel')) AS first_device,
  MAX(device) FILTER (WHERE category IN ('kernel', 'Kernel')) AS last_device,
  COALESCE(BOOL_OR(category IN ('kernel', 'Kernel', 'gpu_memcpy', 'Memcpy', 'mtia_ccp_events')), false) AS has_device,
  MIN(device) FILTER (WHERE stream IS NOT NULL) AS stream_device
FROM raw.event
WHERE source_id BETWEEN $1 AND $2
GROUP BY source_id
ORDER BY source_id
"""


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a file with events, some files at a time."""
    for files in file_batches(store):
        with store.narrowed(*files):
            found = store.query(_EXTENTS, [*files, thresholds.EARLIEST_EPOCH_NS])
        yield found
