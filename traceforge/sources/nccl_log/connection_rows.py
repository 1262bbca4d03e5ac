"""Rows of connections, rings and trees. In: matches. Out: raw.nccl_link, raw.nccl_ring_order, raw.nccl_tree.

Idea: a connection names ranks, not its communicator; that is stated (RCCL), or the init that runs in its thread, or the
only communicator of the process in which the printing rank exists. What lies between words must be of the known forms:
a line torn in its middle is refused, not stored half.
Not handled: connections made late in a process whose communicators share a rank number (handle stays NULL).
"""

import re

from traceforge.sources.nccl_log.communicators import Communicators, LoggedCommunicator
from traceforge.sources.nccl_log.grammar import Handler, Record, Rule, fitting, row_of
from traceforge.sources.nccl_log.quantities import address, integer
from traceforge.sources.nccl_log.rules.connections import VIA
from traceforge.sources.nccl_log.tables import Tables

_TREE = re.compile(r"\[(\d+)\] (-?\d+(?:/-?\d+)*)->(-?\d+)->(-?\d+)(?:\|-?\d+->-?\d+->-?\d+(?:/-?\d+)*)?(?: |$)")


class ConnectionRows:
    """Handlers of topics on connections."""

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self._tables = tables
        self._communicators = communicators

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; made when asked for, as one kept here would keep all that was read alive."""
        return {
            "link": self._link,
            "ring_order": self._ring_order,
            "tree_member": self._tree_member,
            "trees": self._trees,
            "init_step": self._init_step,
        }

    def _link(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        found = [(form, via) for form in VIA if (via := form.pattern.match(match["via"]))]
        if not found:
            return False
        form, via = found[0]
        row = {**row_of(rule, "link", match.groupdict()), **row_of(form, "link", via.groupdict())}
        row["options"] = " ".join(via[name] for name in ("o1", "o2") if via.groupdict().get(name)) or None
        ranks = [rank for rank in (row.get("source_rank"), row.get("target_rank")) if isinstance(rank, int)]
        receives = match["direction"] == "receive" and row.get("target_rank") is not None
        own_rank = row["target_rank"] if receives else row.get("source_rank")
        handle, origin = self._whose(record, match, own_rank, max(ranks, default=0))
        row |= {"handle_id": None if handle is None else handle.handle_id, "handle_origin": origin}
        return self._tables.add("link", {**row, "record_id": record.record_id})

    def _whose(
        self, record: Record, match: re.Match[str], own_rank: object, largest_rank: int
    ) -> tuple[LoggedCommunicator | None, str | None]:
        """The handle of a connection, and how it is known."""
        pointer = address(match.groupdict().get("comm_pointer") or "")
        if pointer is not None:
            facts = {"rank": own_rank, "rank_count": fitting(integer(match["rank_count"]), "i32")}
            handle = self._communicators.describe(record.at, pointer, facts)
            return handle, "stated" if handle else None
        handle = self._communicators.during_init(record.at, opens=False)
        if handle is not None:
            return handle, "init"
        if isinstance(own_rank, int):
            handle = self._communicators.only(record.process_id, own_rank, largest_rank)
        return handle, "only" if handle else None

    def _handle_id(self, match: re.Match[str], record: Record) -> int | None:
        pointer = address(match.groupdict().get("comm_pointer") or "")
        if pointer is not None:
            handle = self._communicators.at(record.at, pointer)
        else:
            handle = self._communicators.during_init(record.at, opens=True)
        return None if handle is None else handle.handle_id

    def _init_step(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        """A message that is no fact, but says that an init runs in its thread."""
        self._handle_id(match, record)
        return True

    def _ring_order(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        ranks = [fitting(integer(text), "i32") for text in (match["ranks"] or "").split()]
        if None in ranks:
            return False
        row = row_of(rule, "ring_order", {"channel": match["channel"], "channel_count": match["channel_count"]})
        row |= {"record_id": record.record_id, "handle_id": self._handle_id(match, record), "ranks": ranks}
        return self._tables.add("ring_order", row)

    def _tree_member(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        handle_id = self._handle_id(match, record)
        row = _tree_row(match["channel"], match["rank"], match["parent"], match["children"])
        return self._tables.add("tree", {**row, "record_id": record.record_id, "handle_id": handle_id})

    def _trees(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        trees = [tree.groups() for tree in _TREE.finditer(match["trees"])]
        if record.is_cut:
            # The last number may have lost digits.
            trees = trees[:-1]
        place = {"record_id": record.record_id, "handle_id": self._handle_id(match, record)}
        stored = [
            self._tables.add("tree", {**_tree_row(channel, rank, parent, children), **place})
            for channel, children, rank, parent in trees
        ]
        return any(stored)


def _tree_row(channel: str, rank: str, parent: str, children: str) -> dict[str, object]:
    below = [fitting(integer(text), "i32") for text in children.split("/")]
    return {
        "channel": fitting(integer(channel), "i32"),
        "rank": fitting(integer(rank), "i32"),
        "parent_rank": None if parent.startswith("-") else fitting(integer(parent), "i32"),
        "child_ranks": None if None in below else [child for child in below if child != -1],
    }
