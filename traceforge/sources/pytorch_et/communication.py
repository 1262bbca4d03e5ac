"""Communication of nodes. In: `Unit`s. Out: rows of raw.chakra_communication, one a call, of a whole trace.

Idea: PyTorch's record of a call (`record_param_comms`) says most, since 1.1.0 by name, before by place. Where no such
record stands below an operator of `c10d` (as with gloo), the operator itself is the call, and the functional operator
above it names the group. Rows wait for the end of the trace, because callers may stand before or behind their callees.
Seen: NCCL in PyTorch 2.1 to 2.4, gloo in 2.13. Not handled: communication that bypasses `c10d` (such as custom kernels).
"""

import re
from collections.abc import Mapping

import polars as pl

from traceforge.sources.pytorch_et.arguments import Arguments, inputs_of, outputs_of
from traceforge.sources.pytorch_et.decode import Node, value_of
from traceforge.sources.pytorch_et.issues import IssueLog
from traceforge.sources.pytorch_et.lenient import integer_of
from traceforge.sources.pytorch_et.nodes import is_on_device
from traceforge.sources.pytorch_et.operators import call_of_operator, group_name_of
from traceforge.sources.pytorch_et.positional import Call, call_of, integers_in
from traceforge.sources.pytorch_et.tables import frame_of_rows
from traceforge.sources.pytorch_et.tensors import Tensor
from traceforge.sources.pytorch_et.units import Unit

RECORD = "record_param_comms"
OPERATOR = "c10d::"
FUNCTIONAL = "_c10d_functional"
_WAIT = "wait"
_LAYERS = (OPERATOR, FUNCTIONAL, "nccl:", "rccl:", "ucc:", "mpi:", "gloo:")
_DEVICE_KERNEL = re.compile(r"nccl|rccl|mscclKernel", re.IGNORECASE)
_MOST_LAYERS = 8
_LIMIT = 2**63

Row = dict[str, object]
