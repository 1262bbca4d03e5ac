"""Sharded data parallelism (FSDP2). In: a workload. Out: the operations that all ranks run.

    forward and backward of each layer: gather its parameters · compute · in backward, scatter its gradients
    and, where the shards are replicated (HSDP), reduce them over the replicas

Parameters of the next layer are gathered while a layer computes, on a stream of their own, as are gradients.
"""

from traceforge.synth.program import Program, Workload
from traceforge.synth.programs.builder import BACKWARD, FORWARD, Builder, Kernels

_COPY_OUT: Kernels = (("fsdp::split_with_sizes_copy", "split_with_sizes_copy_out_contiguous_no_cast_kernel", 1.0),)
_COPY_IN: Kernels = (("fsdp::chunk_cat", "chunk_cat_cuda_kernel", 1.0),)
_COPY_NS = 40_000
GATHER, SCATTER = "all gather", "reduce scatter"
"""Streams of their own."""


def sharded_program(workload: Workload, shards: int, *, is_replicated: bool) -> Program:
    """Operations of one iteration; the gradients' size is that of the parameters, too."""
    builder = _Sharded(workload, shards, is_replicated=is_replicated)
    builder.begin()
    layers = range(workload.layers)
    builder.go_through(list(layers), FORWARD, scatters=False)
    builder.go_through(list(reversed(layers)), BACKWARD, scatters=True)
    return builder.end(builder.gradients)


class _Sharded(Builder):
    """The program in the making.

    Attributes:
        gradients: numbers of the collectives that end with the gradients.
    """

    def __init__(self, workload: Workload, shards: int, *, is_replicated: bool) -> None:
        super().__init__(workload)
        self.gradients: list[int] = []
        self._scattered: list[int] = []
        self._is_replicated = is_replicated
        self._size = workload.gradient_bytes // workload.layers
        self._part = self._size // shards

    def go_through(self, layers: list[int], kernels: Kernels, *, scatters: bool) -> None:
        """All layers, each while the parameters of the next one are gathered."""
        gathered = self._gather(layers[0])
        for place, layer in enumerate(layers):
            following = self._gather(layers[place + 1]) if place + 1 < len(layers) else -1
            self.marks = {"annotation": f"FSDP::all_gather_copy_out (layers.{layer})"}
            self.wait([gathered])
            self.compute(_COPY_OUT, _COPY_NS)
            self.marks = {}
            self.compute(kernels, self.workload.forward_ns)
            if scatters:
                self._scatter(layer)
            gathered = following

    def _gather(self, layer: int) -> int:
        self.marks = {"annotation": f"FSDP::all_gather (layers.{layer})"}
        number = self.collective("all_gather", "shard", self._size, stream=GATHER)
        self.marks = {}
        return number

    def _scatter(self, layer: int) -> None:
        self.marks = {"annotation": f"FSDP::post_backward_reduce (layers.{layer})"}
        # The buffer of the layer before must be free again.
        self.wait(self._scattered[-1:])
        self.compute(_COPY_IN, _COPY_NS)
        number = self.collective("reduce_scatter", "shard", self._size, stream=SCATTER)
        self._scattered.append(number)
        if self._is_replicated:
            number = self.collective("all_reduce", "replicate", self._part, after=(number,))
        self.gradients.append(number)
        self.marks = {}
