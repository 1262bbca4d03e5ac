"""Process groups of exported Chakra traces. In: groups that files of a run state, or that follow. Out: numbered groups.

Simulators take names of groups for numbers, as PyTorch's are (ASTRA-sim stops at others). So groups of other names get
numbers that are free, the same on all ranks, and keep their name as description.
Not handled: groups whose members nobody states (calls name them, no list does).
"""

from collections.abc import Iterable

import polars as pl

from traceforge.store.database import Store

_NAMES = """
WITH known AS (
  SELECT 0 AS place, g.process_group_name AS name
  FROM raw.chakra_process_group AS g
  JOIN graph.trace AS t USING (source_id, part)
  WHERE t.run_id = $1
  UNION ALL
  SELECT 0, process_group FROM graph.communication WHERE run_id = $1
  UNION ALL
  SELECT 0, process_group_name FROM align.call WHERE run_id = $1
  UNION ALL
  SELECT 1, COALESCE(NULLIF(name, ''), 'communicator ' || communicator_id) FROM align.communicator WHERE run_id = $1
)
SELECT name FROM known WHERE name IS NOT NULL GROUP BY name ORDER BY MIN(place), name
"""
# What the file lists counts first; of what it does not list, what is known of its rank.
_LISTED = """
WITH known AS (
  SELECT 0 AS place, process_group_name AS pg_name, description AS pg_desc, backend AS backend_config, ranks,
    size AS group_size
  FROM raw.chakra_process_group
  WHERE source_id = $1 AND part = $2
  UNION ALL
  SELECT 1, process_group, NULL, NULL, members, LEN(members) FROM graph.communication WHERE source_id = $1
  UNION ALL
  SELECT 2, COALESCE(NULLIF(c.name, ''), 'communicator ' || c.communicator_id), NULLIF(c.description, ''), NULL,
    c.ranks, c.size
  FROM align.communicator AS c
  JOIN graph.trace AS t ON t.run_id = c.run_id AND LIST_CONTAINS(c.ranks, t.rank)
  WHERE t.source_id = $1 AND t.part = $2
)
SELECT pg_name, pg_desc, backend_config, ranks, group_size
FROM known
WHERE pg_name IS NOT NULL AND ranks IS NOT NULL AND (place = 0 OR pg_name IN (SELECT UNNEST($3)))
QUALIFY ROW_NUMBER() OVER (PARTITION BY pg_name ORDER BY place, LEN(ranks)) = 1
ORDER BY pg_name
"""


class NumberedGroups:
    """The process groups of a run by number."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._store = store
        names = [name for (name,) in store.rows(_NAMES, [run_id])]
        numbers = {name: int(name) for name in names if _is_number(name)}
        free = max(numbers.values(), default=0) + 1
        named = [name for name in names if name not in numbers]
        self._numbers = {name: name for name in numbers} | {name: str(free + at) for at, name in enumerate(named)}

    def numbered(self, nodes: pl.DataFrame) -> pl.DataFrame:
        """The nodes of a trace with numbers of groups in place of names."""
        return nodes.with_columns(pl.col("process_group").cast(pl.String).replace(self._numbers))

    def listed(self, source_id: int, part: int, used: Iterable[object]) -> pl.DataFrame:
        """The groups that a trace lists, or uses by number, one row a group, as PyTorch lists them.

        Those whose members are not known are left out.
        """
        names = [name for name, number in self._numbers.items() if number in set(used)]
        groups = self._store.query(_LISTED, [source_id, part, names])
        numbers = pl.col("pg_name").replace(self._numbers)
        described = pl.coalesce("pg_desc", pl.when(numbers != pl.col("pg_name")).then("pg_name"))
        return groups.with_columns(pg_name=numbers, pg_desc=described)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()
