"""How nodes stand in a PyTorch execution trace. In: nothing. Out: the `NodeLayout` that `json_elements` reads by.

Idea: nodes are the elements of a list `nodes`; an attribute, an object in a list as well, is distinguished from a node
by its first two keys. Seen: PyTorch's own layout, and those of Python's json with and without indentation.
"""

import re

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_elements import MEMBER, NodeLayout
from traceforge.sources.pytorch_et.decode import Node, decode_nodes, is_node
from traceforge.sources.pytorch_et.lenient import read_node
from traceforge.sources.pytorch_et.text_repair import repair_text

_OPENING = re.compile(rb'\{\s*+(?:%b\s*+,\s*+)*"nodes"\s*+:\s*+\[' % MEMBER)
_BOUNDARY = re.compile(
    rb'\}\s*,\s*(?=\{)(?!\{\s*"(?:name|type)"\s*:\s*"(?:[^"\\]|\\.)*+"\s*,\s*"(?:name|type|value)"\s*:)'
)
_ID_KEY = re.compile(rb'"id"\s*:')


def layout_of(issues: IssueLog) -> NodeLayout[Node]:
    """The layout; `issues` counts values of unexpected types."""
    return NodeLayout(
        _OPENING, _BOUNDARY, _ID_KEY, decode_nodes, lambda text: read_node(text, issues), is_node, repair_text
    )
