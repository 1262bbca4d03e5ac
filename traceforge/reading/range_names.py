"""What the text of a range says. In: texts of NVTX or roctx ranges. Out: category, name, number and shapes.

Idea: `torch.autograd.profiler.emit_nvtx` appends to the name of an operation what differs from call to call.
"""

import re

from traceforge.reading.operation_inputs import OperationInputs
from traceforge.reading.timeline_rows import COMPLETE

_PYTORCH_RANGE = re.compile(r"^(?P<name>.+?)(?:, (?:seq|op_id|sizes|input_op_ids) = .*)$", re.DOTALL)
_OPERATION_ID = re.compile(r", op_id = (\d{1,18})")
_SHAPES = re.compile(r", sizes = (\[[\[\], 0-9]*\])")
_NCCL_CALL = re.compile(r"^nccl[A-Z]\w*$")


def range_said(text: str) -> tuple[str, str, int | None, str | None]:
    """Category, name and number of operation of a range, and the shapes of its inputs."""
    if operation := _PYTORCH_RANGE.match(text):
        number, shapes = _OPERATION_ID.search(text), _SHAPES.search(text)
        is_shaped = shapes is not None and OperationInputs.is_wanted(COMPLETE, "cpu_op", operation["name"])
        own = shapes[1] if shapes is not None and is_shaped else None
        return "cpu_op", operation["name"], int(number[1]) if number else None, own
    return ("cpu_op" if _NCCL_CALL.match(text) else "user_annotation"), text, None, None
