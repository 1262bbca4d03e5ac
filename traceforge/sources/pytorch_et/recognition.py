"""Whether some bytes are a PyTorch execution trace. In: the first bytes of a file. Out: yes or no.

Idea: an object with a list `nodes` whose header states an execution trace schema, or whose first nodes have the keys
that only such nodes have. Needs no library, because every file that a person gives is asked.
Not handled: a file cut off before its first node, unless its header states the schema.
"""

import re

_BOM = b"\xef\xbb\xbf"
_NODES = re.compile(rb'"nodes"\s*:\s*\[')
_SCHEMA = re.compile(rb'"schema"\s*:\s*"\d+\.\d+\.\d+[^"]*"')
_CHAKRA_SCHEMA = re.compile(rb'"schema"\s*:\s*"\d+\.\d+\.\d+-chakra')
_NODE_KEY = re.compile(rb'"(?:rf_id|fw_parent|ctrl_deps|input_shapes|op_schema)"')
_OTHER = re.compile(rb'"(?:traceEvents|workload_graph)"\s*:\s*\[')


def is_execution_trace(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a PyTorch execution trace."""
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] != b"{":
        return False
    nodes = _NODES.search(text)
    other = _OTHER.search(text)
    if other and not (nodes and nodes.start() < other.start()):
        return False
    if not nodes:
        return bool(_CHAKRA_SCHEMA.search(text))
    return bool(_SCHEMA.search(text[: nodes.start()]) or _NODE_KEY.search(text, nodes.end()))
