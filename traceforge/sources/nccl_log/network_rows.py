"""Rows of lists of NICs and interfaces, and of versions and events. In: matches. Out: raw.nccl_nic, _version, _event.

Idea: a list becomes one row an item. Not handled: NICs that were merged into one, whose parts the list does not name.
"""

import re

from traceforge.sources.nccl_log.grammar import Handler, Record, Rule, row_of
from traceforge.sources.nccl_log.rules.networks import IB_ITEM, INTERFACE_ITEM
from traceforge.sources.nccl_log.tables import Tables


class NetworkRows:
    """Handlers of topics on NICs, versions and events.

    Attributes:
        flavour: nccl or rccl, as the first banner says.
    """

    def __init__(self, tables: Tables) -> None:
        self.flavour: str | None = None
        self._tables = tables

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; made when asked for, as one kept here would keep all that was read alive."""
        return {
            "nics": self._nics,
            "interfaces": self._interfaces,
            "version": self._version,
            "event": self._event,
        }

    def _nics(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        items = list(IB_ITEM.finditer(match["items"]))
        for item in items:
            row = row_of(rule, "nic", {**item.groupdict(), "network": match["network"]})
            self._tables.add("nic", {**row, "record_id": record.record_id})
        if match["oob"]:
            self._add_interfaces(rule, "OOB", match["oob"], record)
        return bool(items) or not match["items"].strip()

    def _interfaces(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        return self._add_interfaces(rule, match["network"], match["items"], record)

    def _add_interfaces(self, rule: Rule, network: str, items: str, record: Record) -> bool:
        found = list(INTERFACE_ITEM.finditer(items))
        for item in found:
            row = row_of(rule, "nic", {**item.groupdict(), "network": network})
            self._tables.add("nic", {**row, "record_id": record.record_id})
        return bool(found)

    def _version(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        flavour = match["flavour"].lower()
        self.flavour = self.flavour or flavour
        stated = {flavour: match["version"], match["platform"]: match["platform_version"]}
        for component, version in stated.items():
            row = {"record_id": record.record_id, "component": component, "version": version}
            self._tables.add("version", row)
        return True

    def _event(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        place = match.groupdict().get("place") or record.place
        row = {**row_of(rule, "event", match.groupdict()), "place": place, "text": record.message}
        return self._tables.add("event", {**row, "record_id": record.record_id})
