"""Rows of NCCL's performance model. In: lines of a printed table. Out: raw.nccl_tuning_model.

Idea: heads name an algorithm and a protocol for each cell of the rows below them; each thread prints its own table.
Not handled: the Max NThreads row.
"""

import re

from traceforge.sources.nccl_log.communicators import Communicators
from traceforge.sources.nccl_log.grammar import Handler, Record, Rule
from traceforge.sources.nccl_log.quantities import gigabytes, microseconds
from traceforge.sources.nccl_log.rules.tunings import algorithm, protocol
from traceforge.sources.nccl_log.tables import Tables

_PROTOCOLS_AN_ALGORITHM = 3
Thread = tuple[int | None, int | None]


class TuningRows:
    """Handlers of topics on the model."""

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self._tables = tables
        self._communicators = communicators
        self._algorithms: dict[Thread, list[str]] = {}
        self._columns: dict[Thread, list[tuple[str, str]]] = {}

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; made when asked for, as one kept here would keep all that was read alive."""
        return {"model_head": self._head, "model_row": self._row}

    def _head(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        thread = record.process_id, record.tid
        cells = [cell.strip() for cell in match["cells"].rstrip("| ").split("|")]
        if match["kind"] == "Algorithm":
            self._algorithms[thread] = [algorithm(cell) for cell in cells]
        elif match["kind"] == "Protocol":
            names = [name for name in self._algorithms.get(thread, []) for _ in range(_PROTOCOLS_AN_ALGORITHM)]
            self._columns[thread] = [(name, protocol(cell)) for name, cell in zip(names, cells, strict=False)]
        elif "/" in match["kind"]:
            pairs = [cell.partition("/") for cell in cells]
            self._columns[thread] = [(algorithm(left.strip()), protocol(right.strip())) for left, _, right in pairs]
        return True

    def _row(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        columns = self._columns.get((record.process_id, record.tid), [])
        cells = match["cells"].rstrip("| ").split("|")
        if len(cells) > len(columns):
            return False
        handle = self._communicators.during_init(record.at, opens=False)
        place = {
            "record_id": record.record_id,
            "handle_id": None if handle is None else handle.handle_id,
            "op": match["op"],
        }
        rows = [
            {
                "algorithm": name,
                "protocol": proto,
                "latency_ns": microseconds(cell.partition("/")[0]),
                "bandwidth_bytes_per_s": gigabytes(cell.partition("/")[2]),
            }
            for (name, proto), cell in zip(columns, cells, strict=False)
        ]
        return all(self._tables.add("tuning_model", {**place, **row}) for row in rows)
