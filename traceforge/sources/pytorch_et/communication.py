"""Communication of nodes. In: `NodeUnit`s. Out: rows of raw.chakra_communication of a whole trace, one a call.

Idea: PyTorch's record of a call (`record_param_comms`) says most, since 1.1.0 by name, before by place. Where no such
record stands below an operator of `c10d` (as with gloo), the operator itself is the call, and the functional operator
above it names the group. Rows wait for the end of the trace, because callers may stand before or behind their callees.
Seen: NCCL in PyTorch 2.1 to 2.4, gloo in 2.13. Not handled: communication that bypasses `c10d`.
"""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.tensors import Tensor
from traceforge.sources.pytorch_et.arguments import inputs_of, outputs_of
from traceforge.sources.pytorch_et.calls import record_columns
from traceforge.sources.pytorch_et.nodes import is_on_device
from traceforge.sources.pytorch_et.operators import Operator
from traceforge.sources.pytorch_et.units import NodeUnit
from traceforge.vocabulary import vocabulary

_RECORD = "record_param_comms"
_OPERATOR = "c10d::"
_FUNCTIONAL = "_c10d_functional"
_LIBRARIES = "|".join(vocabulary().collective_libraries)
_LAYER = re.compile(rf"_?c10d|(?:{_LIBRARIES}|ucc|mpi|gloo):")
_NAME = re.compile(rf"{_RECORD}$|{_LAYER.pattern}|.*(?:{_LIBRARIES})", re.IGNORECASE | re.DOTALL)
_MOST_LAYERS = 8
_LARGEST = 2**63 - 1

Row = dict[str, object]


class TraceCommunication:
    """Gathers the communication of one trace.

    Attributes:
        rank: global rank of the process, where a call in the default group states it.
    """

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues
        self._rows: list[Row] = []
        self._operators: list[Row] = []
        self._callers: dict[int, int] = {}
        self._groups: dict[int, str] = {}
        self._covered: set[int] = set()
        self._matters: dict[str | None, bool] = {}
        self.rank: int | None = None

    def add(self, unit: NodeUnit) -> None:
        """Take the nodes of a unit that have to do with communication."""
        matters = self._matters
        for name in {node.name for node in unit.nodes} - matters.keys():
            matters[name] = name is not None and bool(_NAME.match(name))
        for index in [index for index, node in enumerate(unit.nodes) if matters[node.name]]:
            node = unit.nodes[index]
            if node.name == _RECORD or is_on_device(node):
                self._add_record(unit, index)
            elif node.name is not None and _LAYER.match(node.name):
                self._add_layer(unit, index, node.name)

    def _add_record(self, unit: NodeUnit, index: int) -> None:
        node, attributes = unit.nodes[index], unit.attributes[index]
        if "debug" in attributes:
            self._issues.add("missing_communication_info", at=unit.place(index))
        inputs, outputs = inputs_of(node), outputs_of(node)
        call = record_columns(attributes, inputs.values)
        row = {
            **unit.key(index),
            "origin": "kernel" if is_on_device(node) else _RECORD,
            **call,
            **_moved(inputs.tensors(), outputs.tensors(), call),
        }
        if row["origin"] == _RECORD and _is_contradicted(inputs.tensors(), outputs.tensors(), call):
            self._issues.add("size_contradicted", at=unit.place(index))
        if node.pg_name not in (None, ""):
            row["process_group_name"] = str(node.pg_name)
        self._rows.append(row)
        if row["origin"] == _RECORD:
            self._callers[int(unit.ids[index])] = int(unit.parents[index])
            self._covered.add(int(unit.parents[index]))
            self._learn_rank(row)

    def _learn_rank(self, row: Row) -> None:
        """In the default group, a rank in the group is a global rank."""
        rank = row["group_rank"]
        if row["process_group_description"] == "default_pg" and isinstance(rank, int) and 0 <= rank < 2**31:
            self.rank = rank

    def _add_layer(self, unit: NodeUnit, index: int, name: str) -> None:
        """An operator that may stand above a record; it may be a call itself, or name a group."""
        node_id = int(unit.ids[index])
        self._callers[node_id] = int(unit.parents[index])
        node = unit.nodes[index]
        if node_id in self._covered:  # PyTorch writes callees first, so most calls are known to be recorded by now
            self._covered.add(int(unit.parents[index]))
            return
        if not name.startswith((_OPERATOR, _FUNCTIONAL)):
            return
        schema = unit.attributes[index].get("op_schema", node.op_schema)
        operator = Operator(name, schema if isinstance(schema, str) else None, inputs_of(node))
        if name.startswith(_FUNCTIONAL):
            if isinstance(group := operator.argument("group_name"), str):
                self._groups[node_id] = group
            return
        is_wait = operator.name.endswith("wait_tensor")
        row: Row = {**unit.key(index), "origin": "c10d", "collective_name": operator.name, "is_wait": is_wait}
        self._operators.append({**row, **operator.columns(), **_moved(operator.sent, operator.received, row)})

    def frame(self) -> pl.DataFrame:
        """All rows, in the order of the file."""
        recorded = {row["node_id"] for row in self._rows if row["origin"] == _RECORD}
        covered = {above for node_id in recorded if isinstance(node_id, int) for above in self._above(node_id)}
        for row in self._operators:
            node_id = row["node_id"]
            if isinstance(node_id, int) and node_id not in covered:
                groups = [self._groups[above] for above in self._above(node_id) if above in self._groups]
                self._rows.append({**row, "process_group_name": groups[0] if groups else None})
        return frame_of_rows("raw.chakra_communication", sorted(self._rows, key=_position))

    def _above(self, node_id: int) -> list[int]:
        """The callers of a node, as far up as they have to do with communication."""
        found: list[int] = []
        caller = self._callers.get(node_id)
        while caller in self._callers and caller is not None and len(found) < _MOST_LAYERS:
            found.append(caller)
            caller = self._callers.get(caller)
        return found


def _position(row: Mapping[str, object]) -> int:
    position = row["position"]
    return position if isinstance(position, int) else 0


def _is_contradicted(sent: Sequence[Tensor], received: Sequence[Tensor], call: Row) -> bool:
    """Whether a call states another number of elements than its tensors have, on a side that has both."""
    if call.get("is_wait"):
        return False
    sides = (("in_elements", sent), ("out_elements", received))
    return any(
        tensors and call.get(name) is not None and call[name] != sum(tensor.element_count for tensor in tensors)
        for name, tensors in sides
    )


def _moved(sent: Sequence[Tensor], received: Sequence[Tensor], call: Row) -> Row:
    """Elements and bytes that a call moves, by its tensors where it does not state them; none of a wait."""
    if call.get("is_wait"):
        return {}
    columns: Row = {}
    for side, tensors in (("in", sent), ("out", received)):
        stated = call.get(f"{side}_elements")
        if tensors:
            columns[f"{side}_bytes"] = min(sum(tensor.size_bytes for tensor in tensors), _LARGEST)
            measured = min(sum(tensor.element_count for tensor in tensors), _LARGEST)
            columns[f"{side}_elements"] = measured if stated is None else stated
    first = next(iter([*sent, *received]), None)
    if call.get("dtype") is None and first is not None:
        columns["dtype"] = first.dtype
    return columns
