"""A whole file in the place of a cut one. In: a database, and a file to be added. Out: the cut one's rows are gone.

Idea: a file that was read while it was still being copied is larger the next time. The former one gives way if it has
the same name and kind in the same run, its reader found it cut off, and it was smaller; nothing else is ever replaced.
Not handled: a file that was cut off and has another name now.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from traceforge.records import SourceSummary
from traceforge.store.database import Store
from traceforge.store.facts import RowStorage

_CUT_OFF = """
SELECT s.source_id, s.path, s.kind, s.size_bytes FROM meta.source AS s
WHERE s.run_id = ?
  AND EXISTS (
    SELECT 1 FROM meta.issue AS i
    WHERE i.source_id = s.source_id AND i.stage = 'ingest'
      AND REGEXP_MATCHES(i.code, '_(truncated|unfinished|damaged_compression|last_line_open)$')
  )
"""


@dataclass(frozen=True, slots=True)
class CutOff:
    """A file of the database that was cut off: number, kind and size on disk."""

    source_id: int
    kind: str
    size_bytes: int


def cut_off_files(store: Store, run_id: int) -> dict[str, list[CutOff]]:
    """Files of a run that were cut off when they were read, by their names in the database."""
    found: dict[str, list[CutOff]] = defaultdict(list)
    for source_id, path, kind, size in store.rows(_CUT_OFF, [run_id]):
        found[path].append(CutOff(source_id, kind, size))
    return found


def remove_cut_off(
    store: Store, facts: RowStorage, former: Sequence[CutOff], summary: SourceSummary, size: int
) -> None:
    """Remove, in the transaction that is open, the cut-off files that a new one takes the place of.

    Args:
        facts: how the database keeps rows.
        former: cut-off files of its name.
        summary: of the new one.
        size: of the new one on disk, bytes.
    """
    for cut_off in former:
        if cut_off.kind == summary.kind and cut_off.size_bytes < size:
            facts.remove(cut_off.source_id)
            store.execute("DELETE FROM meta.issue WHERE source_id = ?", [cut_off.source_id])
            store.execute("DELETE FROM meta.source WHERE source_id = ?", [cut_off.source_id])
