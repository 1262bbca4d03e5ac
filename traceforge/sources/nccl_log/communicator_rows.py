"""What communicator rules need beyond their groups. In: matches. Out: handles, rows of raw.nccl_timing and others.

Idea: groups named as columns of raw.nccl_communicator are facts; the registry of handles knows whom they concern.
Not handled: the parent of a split whose own init is not in the log (parent_pointer stays unresolved).
"""

import re

from traceforge.sources.nccl_log import quantities
from traceforge.sources.nccl_log.communicators import Communicators
from traceforge.sources.nccl_log.grammar import Handler, Record, Rule, row_of
from traceforge.sources.nccl_log.tables import Tables

_PHASE = re.compile(r"([\w ]+?) ([\d.]+)(?:,|$)")
_ENDS = ("Destroy", "Abort", "Revoke")


class CommunicatorRows:
    """Handlers of topics on communicators."""

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self._tables = tables
        self._communicators = communicators

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; made when asked for, as one kept here would keep all that was read alive."""
        return {
            "communicator": self._life,
            "communicator_facts": self._facts,
            "timings": self._timings,
            "with_handle": self._with_handle,
        }

    def _life(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        facts = row_of(rule, "communicator", match.groupdict())
        pointer = quantities.address(match["comm_pointer"])
        facts.pop("comm_pointer")
        if match["what"] in _ENDS:
            if match["phase"] == "COMPLETE":
                self._communicators.close(record.at, pointer, match["what"], facts)
        elif match["phase"] == "START":
            self._communicators.start(record.at, pointer, facts)
        else:
            self._communicators.complete(record.at, pointer, facts)
        return True

    def _facts(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        facts = row_of(rule, "communicator", match.groupdict())
        pointer = facts.pop("comm_pointer", None)
        handle = self._communicators.describe(record.at, pointer if isinstance(pointer, int) else None, facts)
        if rule.name == "communicator_torn" and handle is not None and "start_record_id" in handle.facts:
            handle.end_init(record.record_id)
        return True

    def _timings(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        groups = match.groupdict()
        parts = [("total", match["total"]), *_PHASE.findall(groups.get("phases") or "")]
        durations = [(phase.strip(), quantities.seconds(text)) for phase, text in parts]
        if any(duration_ns is None for _, duration_ns in durations):
            return False
        stated: dict[str, object] = {
            name: quantities.integer(groups[name] or "") for name in ("rank", "rank_count") if name in groups
        }
        handle = self._communicators.describe(record.at, None, stated)
        if rule.name == "init_timings" and handle is not None:
            handle.end_init(record.record_id)
        row = {
            "record_id": record.record_id,
            "handle_id": None if handle is None else handle.handle_id,
            "scope": rule.constants.get("scope", groups.get("scope")),
        }
        return all(
            self._tables.add("timing", {**row, "phase": phase, "duration_ns": duration_ns})
            for phase, duration_ns in durations
        )

    def _with_handle(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        """A row of the rule's table, with the handle that the record names or whose init runs."""
        groups = match.groupdict()
        if rule.table is None:
            return False
        pointer = quantities.address(groups.get("comm_pointer") or "")
        if pointer is not None:
            handle = self._communicators.at(record.at, pointer)
        else:
            handle = self._communicators.during_init(record.at, opens=True)
        row = row_of(rule, rule.table, groups)
        row |= {"record_id": record.record_id, "handle_id": None if handle is None else handle.handle_id}
        return self._tables.add(rule.table, row)
