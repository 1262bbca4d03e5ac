"""A node of an exported Chakra trace, and nodes for time that none recorded covers. In: what they say. Out: nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

_PAUSE = "traceforge::host_pause"
_SHORTEST_NS = 1_000


@dataclass(slots=True)
class ExportNode:
    """One node of an exported trace.

    Attributes:
        node_id: from 2, in order of start; 1 is the list of groups that a trace lacks.
        kind: as in graph.node.
        is_cpu: whether it runs on the host.
        start_ns: aligned clock; None when unknown.
        duration_ns: what it takes once all it depends on has ended.
        data, control: ids of nodes it depends on.
        facts: further columns of graph.node and of its communication, by name.
    """

    node_id: int
    name: str
    kind: str
    is_cpu: bool
    start_ns: int | None
    duration_ns: int
    data: list[int] = field(default_factory=list)
    control: list[int] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """When it ends, as far as known."""
        return (self.start_ns or 0) + self.duration_ns


class Remainders:
    """Makes nodes for what remains of operations, and for time in which nothing that is recorded runs.

    Attributes:
        made: these nodes so far.
    """

    def __init__(self, next_id: int) -> None:
        self._next_id = next_id
        self.made: list[ExportNode] = []

    def behind(
        self, others: Iterable[int], until_ns: int, end_ns: int, operation: ExportNode | None, name: str = _PAUSE
    ) -> list[int]:
        """Ids of what ends at `end_ns`: the nodes given, which end at `until_ns`, or one that depends on them."""
        return (
            list(others) if end_ns - until_ns < _SHORTEST_NS else [self.add(others, until_ns, end_ns, operation, name)]
        )

    def add(
        self, others: Iterable[int], start_ns: int, end_ns: int, operation: ExportNode | None, name: str = _PAUSE
    ) -> int:
        """Id of a new node that depends on others: a piece of an operation; without one a pause of that name."""
        node = ExportNode(self._next_id, name, "host", True, start_ns, end_ns - start_ns, list(others))
        if operation is not None:
            node.name, node.facts = operation.name, operation.facts
        self.made.append(node)
        self._next_id += 1
        return node.node_id
