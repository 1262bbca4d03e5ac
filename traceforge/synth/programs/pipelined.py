"""Pipelines: every stage runs a program of its own. In: a cluster, a workload, a pipeline. Out: one role a stage.

    input · copy · for each turn: receive, compute, send · data-parallel all-reduce · optimizer · read the loss

Where a stage's ranks hold shards, they gather each layer once, before its first pass, and scatter its gradients.

Messages that two ranks exchange must stand in the same order on both, because they share a stream. That order is the
one in which an ideal run would have them ready, so that no two can wait for one another: what is received early enough
is asked for before what is sent later. Messages between the same two turns share a kernel where they are batched.
"""

from dataclasses import dataclass

from traceforge.synth.cluster import Cluster
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import MessageSide, Program, Role, Roles, Work, Workload
from traceforge.synth.programs.builder import BACKWARD, FORWARD, Builder, Kernels
from traceforge.synth.programs.sharded import GATHER, SCATTER
from traceforge.synth.schedule import Order, Turn, ideal_ends, needed_turn, turns_of

_BACKWARD_INPUT: Kernels = (
    ("autograd::engine::evaluate_function: AddmmBackward0", "sm90_gemm_bf16_256x128", 0.6),
    ("autograd::engine::evaluate_function: NativeLayerNormBackward0", "layer_norm_grad_input_kernel", 0.4),
)
_BACKWARD_WEIGHT: Kernels = (("aten::mm", "sm90_gemm_bf16_256x128_wgrad", 1.0),)
_KERNELS: dict[Work, Kernels] = {
    "forward": FORWARD,
    "backward": BACKWARD,
    "backward_input": _BACKWARD_INPUT,
    "backward_weight": _BACKWARD_WEIGHT,
}
_NORM_NS = 200_000
_LETTERS: dict[Work, str] = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A message as one rank sees it: before which of its turns it must be launched."""

    part: MessageSide
    turn: int


def pipelined_roles(cluster: Cluster, workload: Workload, pipeline: Pipeline) -> Roles:
    """Programs of all stages.

    Raises:
        UsageError: layers, micro-batches and stages do not go together.
    """
    stages = cluster.pipeline_parallel
    layers = pipeline.layers_of(stages, workload)
    orders = turns_of(pipeline.schedule, stages, pipeline.microbatches, pipeline.chunks)
    exchanges = _exchanges(orders, len(layers))
    # With no more micro-batches than stages there is no steady part, in which each forward pass has a backward pass.
    if pipeline.batched and pipeline.chunks > 1 and pipeline.microbatches > stages:
        exchanges = [_by_pairs(own, order) for own, order in zip(exchanges, orders, strict=True)]
    else:
        exchanges = [_in_time(own, is_one_stream=pipeline.batched) for own in exchanges]
    return tuple(
        Role(_Stage(cluster, workload, pipeline, layers, rank).program(orders[rank], exchanges[rank]),
             cluster.ranks_of_stage(rank))
        for rank in range(stages)
    )  # fmt: skip


def _exchanges(orders: list[Order], virtual: int) -> list[list[_Exchange]]:
    """Messages of each rank as late as they may be, in the order in which an ideal run has them ready."""
    ends = ideal_ends(orders, virtual - 1)
    place = {turn: (rank, number) for rank, order in enumerate(orders) for number, turn in enumerate(order)}
    found: list[list[_Exchange]] = [[] for _ in orders]
    ready: list[tuple[float, bool, Turn, Turn]] = []
    for turn in place:
        needed = needed_turn(turn, virtual - 1)
        if needed is not None and place[needed][0] != place[turn][0]:
            ready.append((ends[needed], turn.work != "forward", needed, turn))
    for _, _, source, target in sorted(ready, key=lambda one: (one[0], one[1], one[2].microbatch, one[2].stage)):
        (sender, after), (receiver, before) = place[source], place[target]
        name = f"{_LETTERS[source.work]}{source.stage}.{source.microbatch}"
        found[sender].append(_Exchange(MessageSide(sends=True, peer=receiver, message=name), after + 1))
        found[receiver].append(_Exchange(MessageSide(sends=False, peer=sender, message=name), before))
    return found


def _in_time(own: list[_Exchange], *, is_one_stream: bool) -> list[_Exchange]:
    """Launch what is received before whatever follows it on its stream."""
    latest: dict[int, int] = {}
    moved: list[_Exchange] = []
    for exchange in reversed(own):
        stream = -1 if is_one_stream else exchange.part.peer
        turn = min(exchange.turn, latest.get(stream, exchange.turn))
        # What is sent cannot be launched before it is there; an ideal run never asks for that.
        assert turn == exchange.turn or not exchange.part.sends  # noqa: S101
        latest[stream] = turn
        moved.append(_Exchange(exchange.part, turn))
    moved.reverse()
    return sorted(moved, key=lambda exchange: exchange.turn)


def _by_pairs(own: list[_Exchange], order: Order) -> list[_Exchange]:
    """Interleaved stages exchange once for each forward pass and the backward pass behind it, as Megatron does."""
    works = [turn.work for turn in order]
    within = {n for n in range(1, len(works)) if (works[n - 1], works[n]) == ("forward", "backward")}
    moved = [
        _Exchange(one.part, one.turn + (1 if one.part.sends else -1)) if one.turn in within else one for one in own
    ]
    return sorted(moved, key=lambda exchange: exchange.turn)


class _Stage:
    """The program of one stage in the making."""

    def __init__(
        self, cluster: Cluster, workload: Workload, pipeline: Pipeline, layers: tuple[int, ...], rank: int
    ) -> None:
        self._cluster, self._workload, self._pipeline = cluster, workload, pipeline
        self._layers, self._rank = layers, rank
        self._builder = Builder(workload)
        self._received: dict[str, int] = {}

    def program(self, order: Order, exchanges: list[_Exchange]) -> Program:
        """All operations of an iteration."""
        self._builder.begin()
        gradients: list[int] = []
        last = {turn.stage: number for number, turn in enumerate(order) if turn.work != "forward"}
        for number, turn in enumerate(order):
            self._exchange([one.part for one in exchanges if one.turn == number])
            self._turn(turn)
            if last.get(turn.stage) == number:
                gradients += self._reduce(turn.stage)
        self._exchange([one.part for one in exchanges if one.turn == len(order)])
        return self._builder.end(self._clip(gradients) if self._pipeline.clips_gradients else gradients)

    def _clip(self, gradients: list[int]) -> list[int]:
        """Sum the norms of all stages."""
        self._builder.wait(gradients)
        self._builder.compute((("aten::_foreach_norm", "multi_tensor_apply_kernel_norm", 1.0),), _NORM_NS)
        return [self._builder.collective("all_reduce", "pipeline_parallel", 4, meeting="norm")]

    def _exchange(self, parts: list[MessageSide]) -> None:
        size = self._pipeline.message_bytes
        one_by_one = [(part,) for part in parts]
        together = [tuple(parts)] if parts else []
        for group in together if self._pipeline.batched else one_by_one:
            stream = "" if self._pipeline.batched else _pair(self._rank, group[0].peer)
            number = self._builder.message(group, size, stream=stream, is_batched=self._pipeline.batched)
            self._received |= {part.message: number for part in group if not part.sends}

    def _turn(self, turn: Turn) -> None:
        builder, stages = self._builder, self._cluster.pipeline_parallel
        needed = needed_turn(turn, len(self._layers) - 1)
        builder.marks = {
            "work": turn.work,
            "microbatch": turn.microbatch,
            "chunk": turn.stage // stages,
            "annotation": self._annotation(turn),
        }
        gathered = self._gather(turn)
        if needed is not None:
            name = f"{_LETTERS[needed.work]}{needed.stage}.{needed.microbatch}"
            builder.wait([self._received[name]] if name in self._received else [])
        extra = self._pipeline.embedding_ns if turn.stage == 0 else 0
        extra += self._pipeline.head_ns if turn.stage == len(self._layers) - 1 else 0
        times = 2 if turn.work == "backward" else 1
        kernels = _KERNELS[turn.work]
        # BACKWARD's shares are those of a forward pass, and sum to two.
        scale = 1 if turn.work == "backward" else times
        if turn.work == "forward" and extra and turn.stage == 0:
            builder.compute((("aten::embedding", "vectorized_gather_kernel", 1.0),), self._pipeline.embedding_ns)
            extra -= self._pipeline.embedding_ns
        for number in range(self._layers[turn.stage]):
            builder.wait(gathered[number : number + 1])
            meets = self._cluster.tensor_parallel > 1 and turn.work != "backward_weight"
            layer = builder.tensor_parallel if meets else builder.compute
            layer(kernels, scale * self._workload.forward_ns)
        if extra:
            name, kernel = _EXTRA[turn.work]
            builder.compute(((name, kernel, 1.0),), times * extra)
        builder.marks = {}

    def _gather(self, turn: Turn) -> list[int]:
        """Gather the parameters of a chunk's layers before its first pass, if they are shards; they stay to the end."""
        if self._cluster.shard == 1 or turn.work != "forward" or turn.microbatch:
            return []
        layers = range(self._layers[turn.stage])
        return [self._builder.collective("all_gather", "shard", self._layer_bytes, stream=GATHER) for _ in layers]

    @property
    def _layer_bytes(self) -> int:
        return self._workload.gradient_bytes // max(1, sum(self._layers))

    def _annotation(self, turn: Turn) -> str:
        """What `torch.distributed.pipelining` calls a turn; Megatron says nothing."""
        if self._cluster.naming != "mesh" or self._pipeline.schedule == "1f1b":
            return ""
        if self._pipeline.schedule == "gpipe":
            return f"{'Forward' if turn.work == 'forward' else 'Backward'} {turn.microbatch}"
        return f"PP:{turn.stage}{_LETTERS[turn.work]}{turn.microbatch}"

    def _scatter(self, stage: int) -> list[int]:
        """Launch the reduce-scatters of a chunk's gradients, and reduce them over replicas of the shards."""
        ends, size = [], self._layer_bytes
        for _ in range(self._layers[stage]):
            number = self._builder.collective("reduce_scatter", "shard", size, stream=SCATTER)
            if self._cluster.ranks_per_stage > self._cluster.shard:
                part = size // self._cluster.shard
                number = self._builder.collective("all_reduce", "replicate", part, after=(number,))
            ends.append(number)
        return ends

    def _reduce(self, stage: int) -> list[int]:
        """Launch the all-reduces of a chunk's gradients."""
        if self._cluster.shard > 1:
            return self._scatter(stage)
        if self._cluster.ranks_per_stage == self._cluster.tensor_parallel:
            return []
        chunks = self._pipeline.chunks
        buckets = max(1, self._workload.buckets // chunks)
        size = self._workload.gradient_bytes // (self._cluster.pipeline_parallel * chunks * buckets)
        return [self._builder.all_reduce("data_parallel", size) for _ in range(buckets)]


_EXTRA: dict[Work, tuple[str, str]] = {
    "forward": ("aten::linear", "sm90_gemm_bf16_128x256_head"),
    "backward": ("autograd::engine::evaluate_function: MmBackward0", "sm90_gemm_bf16_256x128_head"),
    "backward_input": ("autograd::engine::evaluate_function: MmBackward0", "sm90_gemm_bf16_256x128_head"),
    "backward_weight": ("aten::mm", "sm90_gemm_bf16_256x128_head_wgrad"),
}


def _pair(rank: int, peer: int) -> str:
    """The stream of what two ranks send one another one by one."""
    return f"pair {min(rank, peer)}-{max(rank, peer)}"
