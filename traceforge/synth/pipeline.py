"""What a pipeline does with its micro-batches. In: nothing. Out: the part of a scenario that says so."""

from dataclasses import dataclass

from traceforge.errors import UsageError
from traceforge.synth.program import Workload


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How stages work together; of no effect where there is one stage only.

    Attributes:
        schedule: `gpipe`, `1f1b`, `interleaved` or `zero_bubble`.
        microbatches: of an iteration.
        chunks: virtual stages of a rank.
        batched: whether messages are given to NCCL together (`batch_isend_irecv`) or one by one.
        message_bytes: size of the activations of a micro-batch between two stages, and of their gradients.
        layers_by_stage: layers of each virtual stage; empty: as many for each.
        embedding_ns: forward time of the embedding, before the first layer; backward takes twice as long.
        head_ns: the same of the head and the loss, behind the last layer.
        clips_gradients: whether all stages learn the norm of all gradients before the optimizer, and so meet.
    """

    schedule: str = "1f1b"
    microbatches: int = 8
    chunks: int = 1
    batched: bool = True
    message_bytes: int = 32_000_000
    layers_by_stage: tuple[int, ...] = ()
    embedding_ns: float = 0
    head_ns: float = 0
    clips_gradients: bool = False

    def layers_of(self, stages: int, workload: Workload) -> tuple[int, ...]:
        """Layers of each virtual stage of a pipeline.

        Raises:
            UsageError: the layers cannot be divided so.
        """
        virtual = stages * self.chunks
        if self.layers_by_stage:
            if len(self.layers_by_stage) != virtual or min(self.layers_by_stage) < 0:
                raise UsageError(f"layers_by_stage must name {virtual} numbers of layers")
            return self.layers_by_stage
        if workload.layers % virtual:
            hint = "choose another number of layers, or say layers_by_stage"
            raise UsageError(f"{workload.layers} layers cannot be divided into {virtual} stages", hint=hint)
        return (workload.layers // virtual,) * virtual
