"""Where tokens go. In: experts and random numbers. Out: the load of all-to-alls and of the experts behind them.

Each expert-parallel rank holds one expert of every layer. How popular experts are is drawn anew for each layer and
iteration, and each token is drawn from that; what an all-to-all takes and what an expert computes follow from the
tokens that pass and arrive.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Amounts, Load
from traceforge.synth.program import Program, ProgramOperation

Tokens = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts; of no effect where no ranks share experts.

    Attributes:
        tokens: that each rank routes in a layer.
        token_bytes: size of a token's activation.
        expert_ns: forward time of an expert that gets its even share; backward takes twice as long.
        spread: standard deviation of the logarithm of an expert's popularity.
        reads_splits: whether the host waits in every layer for its device to say how many tokens go where.
    """

    tokens: int = 8_192
    token_bytes: int = 8_192
    expert_ns: float = 1_500_000
    spread: float = 0.05
    reads_splits: bool = True


def route(load: Load, cluster: Cluster, program: Program, experts: Experts, rng: np.random.Generator) -> None:
    """Draw where tokens go, and give all-to-alls and experts their share of time."""
    members, iterations = cluster.expert_parallel, len(load.host_ns)
    even = np.full((iterations, cluster.ranks, members), experts.tokens / members)
    for layer in sorted({one.routed for one in program if one.routed is not None}):
        popularity = np.exp(experts.spread * rng.standard_normal((iterations, members)))
        popularity /= popularity.sum(axis=1, keepdims=True)
        sent = np.stack([rng.multinomial(experts.tokens, popularity) for _ in range(cluster.ranks)], axis=1)
        load.tokens[layer] = even
        reroute(load, program, layer, sent)


def reroute(load: Load, program: Program, layer: int, sent: Tokens) -> None:
    """Send other tokens in a layer: what depends on them takes as much longer or shorter."""
    before = load.tokens[layer]
    load.tokens[layer] = sent
    received = _received(sent).sum(axis=2) / _received(before).sum(axis=2)
    moved = _most(sent) / _most(before)
    for number, operation in enumerate(program):
        if operation.routed == layer:
            factor = moved if operation.action == "collective" else received
            load.device_ns[:, number] = np.rint(load.device_ns[:, number] * factor)


def tokens_sent(load: Load, operation: ProgramOperation) -> Tokens:
    """What each rank sends to each member of its group in an all-to-all, shape (I, R, members)."""
    tokens = load.tokens[operation.routed if operation.routed is not None else -1]
    return _received(tokens) if operation.returns else tokens


def tokens_received(load: Load) -> Tokens:
    """Tokens that each rank's experts work on, of all layers together, shape (I, R)."""
    total: Tokens = np.sum([_received(sent).sum(axis=2) for sent in load.tokens.values()], axis=0)
    return total


def _received(sent: Tokens) -> Tokens:
    """What each rank gets from each member of its group."""
    iterations, ranks, members = sent.shape
    by_group = sent.reshape(iterations, ranks // members, members, members)
    return by_group.swapaxes(2, 3).reshape(sent.shape)


def _most(sent: Tokens) -> Amounts:
    """What sets the pace of a rank's all-to-all: what it sends or what it receives."""
    most: Amounts = np.maximum(sent.sum(axis=2), _received(sent).sum(axis=2)).astype(float)
    return most
