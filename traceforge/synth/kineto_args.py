"""Arguments of communication in Kineto traces. In: a group and an operation. Out: what PyTorch writes of them."""

import json

from traceforge.synth.cluster import Group
from traceforge.synth.program import MessageSide, ProgramOperation
from traceforge.synth.scenario import Scenario

# Lists of more ranks are cut off.
_LISTED_RANKS = 30


def group_arguments(scenario: Scenario, group: Group) -> dict[str, object]:
    """How arguments name a process group; groups are numbered alike on all ranks."""
    known = [(one.kind, one.ranks) for one in scenario.cluster.groups()]
    ranks = group.ranks
    listed = str(list(ranks))
    spans: dict[str, object] = {}
    if len(ranks) > _LISTED_RANKS:
        listed = f"[{', '.join(map(str, ranks[:_LISTED_RANKS]))}, ...]"
        spans = {"Global rank start": ranks[0], "Global rank stride": ranks[1] - ranks[0]}
    return {
        "Process Group Name": str(1 + known.index((group.kind, ranks))),
        "Process Group Description": scenario.cluster.description_of(group.kind),
        "Process Group Ranks": listed,
        **spans,
    }


def collective_arguments(scenario: Scenario, group: Group, operation: ProgramOperation) -> dict[str, object]:
    """What an all-reduce's record and its kernel say."""
    elements = operation.size_bytes // 2
    return _arguments("allreduce", elements, len(group.ranks)) | group_arguments(scenario, group)


def message_arguments(
    scenario: Scenario, group: Group, operation: ProgramOperation, part: MessageSide
) -> dict[str, object]:
    """What the record of one side of a message and its kernel say."""
    name = "send" if part.sends else "recv"
    return _arguments(name, operation.size_bytes // 2, len(group.ranks)) | group_arguments(scenario, group)


def peer_inputs(operation: ProgramOperation, part: MessageSide) -> str:
    """The inputs of `c10d::send` or `c10d::recv_`: tensors, group, peer (its rank in the group) and tag."""
    inputs = {
        "Concrete Inputs": ["", "", str(part.peer), "0"],
        "Input type": ["TensorList", "", "Scalar", "Scalar"],
        "Input Dims": [[[operation.size_bytes // 2]], [], [], []],
    }
    return json.dumps(inputs)[1:-1]


def _arguments(name: str, elements: int, size: int) -> dict[str, object]:
    return {
        "Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "Group size": size,
        "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]",
    }  # fmt: skip
