"""Arguments of communication in Kineto traces. In: a group and an operation. Out: what PyTorch writes of them."""

import json
from collections.abc import Sequence

from traceforge.synth.cluster import CollectiveOp, Group
from traceforge.synth.experts import tokens_sent
from traceforge.synth.program import MessageSide, ProgramOperation
from traceforge.synth.scenario import Scenario, SimulatedJob

# Lists of more ranks are cut off.
_LISTED_RANKS = 30

_SPLIT = ("In msg nelems", "Out msg nelems", "In split size", "Out split size")

COLLECTIVE_NAMES: dict[CollectiveOp, str] = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_allv",
}
"""As `record_param_comms` names collectives."""


def group_arguments(scenario: Scenario, group: Group) -> dict[str, object]:
    """How arguments name a process group; groups are numbered alike on all ranks."""
    known = [(one.kind, one.ranks) for one in scenario.cluster.groups()]
    ranks = group.ranks
    spans: dict[str, object] = {}
    if len(ranks) > _LISTED_RANKS:
        spans = {"Global rank start": ranks[0], "Global rank stride": ranks[1] - ranks[0]}
    return {
        "Process Group Name": str(1 + known.index((group.kind, ranks))),
        "Process Group Description": scenario.cluster.description_of(group.kind),
        "Process Group Ranks": _listed(ranks),
        **spans,
    }


def collective_arguments(scenario: Scenario, group: Group, operation: ProgramOperation) -> dict[str, object]:
    """What a collective's record and its kernel say; of an all-to-all, all but what depends on the routing."""
    whole, part = operation.size_bytes // 2, operation.size_bytes // 2 // len(group.ranks)
    sent, received = {"all_gather": (part, whole), "reduce_scatter": (whole, part)}.get(
        operation.collective, (whole, whole)
    )
    args = _arguments(COLLECTIVE_NAMES[operation.collective], sent, received, len(group.ranks))
    # What depends on the routing differs from call to call; see `routing_arguments`.
    given = {name: value for name, value in args.items() if operation.routed is None or name not in _SPLIT}
    return given | group_arguments(scenario, group)


def message_arguments(
    scenario: Scenario, group: Group, operation: ProgramOperation, part: MessageSide
) -> dict[str, object]:
    """What the record of one side of a message and its kernel say."""
    name = "send" if part.sends else "recv"
    elements = operation.size_bytes // 2
    return _arguments(name, elements, elements, len(group.ranks)) | group_arguments(scenario, group)


def peer_inputs(operation: ProgramOperation, part: MessageSide) -> str:
    """The inputs of `c10d::send` or `c10d::recv_`: tensors, group, peer (its rank in the group) and tag."""
    inputs = {
        "Concrete Inputs": ["", "", str(part.peer), "0"],
        "Input type": ["TensorList", "", "Scalar", "Scalar"],
        "Input Dims": [[[operation.size_bytes // 2]], [], [], []],
    }
    return json.dumps(inputs)[1:-1]


def routing_arguments(
    job: SimulatedJob, group: Group, operation: ProgramOperation, iteration: int, rank: int
) -> dict[str, object]:
    """Sizes of an all-to-all, which differ from call to call: rows by member of the group, and elements in all."""
    if operation.routed is None:
        return {}
    own, elements = group.ranks.index(rank), job.scenario.experts.token_bytes // 2
    every = tokens_sent(job.load, operation)[iteration][list(group.ranks)].astype(int)
    sent, received = every[own].tolist(), every[:, own].tolist()
    return {
        "In msg nelems": sum(sent) * elements, "Out msg nelems": sum(received) * elements,
        "In split size": _listed(sent), "Out split size": _listed(received),
    }  # fmt: skip


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) <= _LISTED_RANKS:
        return str(list(numbers))
    return f"[{', '.join(map(str, numbers[:_LISTED_RANKS]))}, ...]"


def _arguments(name: str, sent: int, received: int, size: int) -> dict[str, object]:
    return {
        "Collective name": name, "In msg nelems": sent, "Out msg nelems": received, "Group size": size,
        "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]",
    }  # fmt: skip
