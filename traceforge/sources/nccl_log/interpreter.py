"""Records into rows. In: a record. Out: the name of the rule that reads it, and the rows it makes.

Idea: the grammar finds the rule; the rule's table gets the row its groups make, or the handler of its topic does more.
A message that no rule reads is counted by template; a warning, and what stands beside it, is always kept with its text.
Not handled: messages that span lines.
"""

import re

from traceforge.sources.nccl_log.calls import LoggedCalls, call_row
from traceforge.sources.nccl_log.communicator_rows import CommunicatorRows
from traceforge.sources.nccl_log.communicators import Communicators
from traceforge.sources.nccl_log.connection_rows import ConnectionRows
from traceforge.sources.nccl_log.grammar import Handler, Record, Rule, row_of
from traceforge.sources.nccl_log.network_rows import NetworkRows
from traceforge.sources.nccl_log.quantities import address
from traceforge.sources.nccl_log.rules import GRAMMAR
from traceforge.sources.nccl_log.tables import Tables
from traceforge.sources.nccl_log.topology_rows import TopologyRows
from traceforge.sources.nccl_log.tuning_rows import TuningRows

UNPARSED = "unparsed"
# Levels whose messages are kept with their text, and as what. ATTN, since 2.32, is below WARN; DIAG is of RAS.
_KINDS = {"WARN": "warning", "ATTN": "attention", "DIAG": "diagnosis"}


class Interpreter:
    """Reads the messages of one file."""

    def __init__(self, tables: Tables, communicators: Communicators, calls: LoggedCalls) -> None:
        self._tables = tables
        self._network = NetworkRows(tables)
        self._handlers: dict[str, Handler] = {
            **CommunicatorRows(tables, communicators).topics,
            **ConnectionRows(tables, communicators).topics,
            **TopologyRows(tables, communicators).topics,
            **TuningRows(tables, communicators).topics,
            **self._network.topics,
            **_CallRecords(tables, communicators, calls).topics,
        }

    @property
    def flavour(self) -> str | None:
        """Name of nccl or rccl, as the first banner says."""
        return self._network.flavour

    def read(self, record: Record) -> tuple[str, re.Match[str] | None]:
        """Store what a record says; returns its rule's name, and the match."""
        found = GRAMMAR.find(record.message)
        kind = _KINDS.get(record.level or "")
        if found is not None and not (kind and _is_known_as_text(found[0])) and self._store(*found, record):
            return found[0].name, found[1]
        if kind is not None:
            row = {"record_id": record.record_id, "kind": kind, "place": record.place, "text": record.message}
            self._tables.add("event", row)
            return kind, None
        return UNPARSED, None

    def _store(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        if rule.topic is not None:
            return self._handlers[rule.topic](rule, match, record)
        if rule.table is not None:
            row = row_of(rule, rule.table, match.groupdict())
            row["record_id"] = record.record_id
            return self._tables.add(rule.table, row)
        return True


def _is_known_as_text(rule: Rule) -> bool:
    """Whether a rule only recognises a message, or what a plug-in says: a warning of such words is kept as one."""
    return (rule.table is None and rule.topic is None) or rule.constants.get("event") == "message"


class _CallRecords:
    """Handlers of topics on calls."""

    def __init__(self, tables: Tables, communicators: Communicators, calls: LoggedCalls) -> None:
        self._tables = tables
        self._communicators = communicators
        self._calls = calls

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; see `CommunicatorRows`."""
        return {"call": self._call, "api_call": self._api_call, "kernel_event": self._kernel_event}

    def _call(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        return self._calls.add(record, call_row(match.groupdict()), "coll")

    def _api_call(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        return self._calls.add(record, call_row(match.groupdict()), "call")

    def _kernel_event(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        pointer = address(match["comm"] or "")
        handle = None if pointer is None else self._communicators.at(record.at, pointer)
        row = row_of(rule, "kernel_event", match.groupdict())
        row |= {"record_id": record.record_id, "handle_id": None if handle is None else handle.handle_id}
        return self._tables.add("kernel_event", row)
