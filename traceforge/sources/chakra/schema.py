"""What the Chakra schema says: numbers of fields and types, and what attributes mean by convention. No code.

Compatible with MLCommons Chakra schema 0.0.4 and 1.0.0, unchanged on the wire since October 2023.
"""

ID, NAME, TYPE, CONTROL, DATA, START, DURATION, INPUTS, OUTPUTS, ATTRIBUTE = range(1, 11)
"""Field numbers of a node."""
VERSION, METADATA_ATTRIBUTE = 1, 2
"""Field numbers of the metadata."""
ATTRIBUTE_NAME = 1
VALUE_NUMBERS = range(3, 33)
"""Field numbers under which an attribute may hold its value."""

NODE_TYPES = ("INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL")
"""Names of a node's type, by number."""
SEND, RECEIVE, COLLECTIVE = 5, 6, 7
"""Types of nodes that communicate."""
COLLECTIVES = (
    *("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all"),
    *("reduce_scatter", "reduce_scatter_block", "barrier"),
)
"""Names of the attribute `comm_type`, by number."""

NODE_ATTRIBUTES = {
    "rf_id": "rf_id",
    "fw_parent_id": "fw_parent",
    "seq_id": "seq_id",
    "scope": "scope",
    "thread_id": "tid",
    "fw_thread_id": "fw_tid",
    "stream": "stream",
    "operation_count": "num_ops",
    "tensor_bytes": "tensor_size",
}
"""Columns of raw.chakra_node that are attributes of type integer."""
NODE_TEXTS = ("op_schema", "kernel_backend", "kernel_file")
"""Columns of raw.chakra_node that are attributes of type text."""
COMMUNICATION_ATTRIBUTES = {
    "source_rank": "comm_src",
    "destination_rank": "comm_dst",
    "tag": "comm_tag",
    "priority": "comm_priority",
}
"""Columns of raw.chakra_communication that are attributes of type integer."""
COMMUNICATION_MARKS = ("comm_type", "comm_size", "comm_src", "comm_dst")
"""Attributes that only nodes have that communicate."""
INTEGERS = (
    *NODE_ATTRIBUTES.values(),
    *("is_cpu_op", "comm_type", "comm_size", "pg_id"),
    *COMMUNICATION_ATTRIBUTES.values(),
)
"""All attributes of type integer that have a column."""
TEXTS = (*NODE_TEXTS, "pg_name")
"""All attributes of type text that have a column."""


def collective_name(node_type: int | None, comm_type: int | None) -> str | None:
    """What a node does; None where a collective does not say which it is.

    The type of a node counts more than the type of its collective, which some writers fill with numbers of node types.
    """
    if node_type in (SEND, RECEIVE):
        return "send" if node_type == SEND else "recv"
    if comm_type is None:
        return None
    return COLLECTIVES[comm_type] if 0 <= comm_type < len(COLLECTIVES) else str(comm_type)


def is_collective(name: str | None) -> bool:
    """Whether that is a name of a collective or message, and no number without a name."""
    return name in ("send", "recv", *COLLECTIVES)


def type_name(number: int) -> str:
    """The name of a node's type; its number where it has none."""
    return NODE_TYPES[number] if 0 <= number < len(NODE_TYPES) else str(number)
