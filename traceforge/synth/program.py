"""What ranks run in an iteration. In: nothing. Out: the types that programs are made of, and the workload they do.

A program is a list of operations in the order in which a host issues them. Ranks that run the same program are a role:
all ranks of a data-parallel job, the ranks of one stage of a pipeline. Durations are those of an undisturbed run; noise
and faults come later (`load`).
"""

from dataclasses import dataclass
from typing import Literal

from traceforge.synth.cluster import CollectiveOp, Kind

Action = Literal["input", "copy", "compute", "collective", "message", "await", "synchronise", "read", "free"]
Work = Literal["", "forward", "backward", "backward_input", "backward_weight"]

COMPUTE = "compute"
"""The stream of everything that names no other."""


@dataclass(frozen=True, slots=True)
class MessageSide:
    """One side of a message between two ranks.

    Attributes:
        sends: whether this side sends.
        peer: number of the role of the other side; the ranks at the same place of both roles are the two sides.
        message: its name, which no other message of an iteration has.
    """

    sends: bool
    peer: int
    message: str


@dataclass(frozen=True, slots=True)
class ProgramOperation:
    """One step of the program.

    Attributes:
        action: what it does.
        name: the host operation, as PyTorch names it.
        kernel: the device's part; empty where it has none.
        host_ns: time of the host before it calls the driver.
        device_ns: time on the device (0 for communication, whose time follows from size and path).
        group: kind of communicator of a collective, or of messages.
        collective: which one.
        size_bytes: size of a collective's whole buffer, or of each part of a message.
        routed: the layer whose routing of tokens decides how long it takes, where one does.
        returns: whether an all-to-all sends tokens back to where they came from.
        awaited: numbers of the operations that an `await`, or communication, waits for.
        meeting: name of a collective of which ranks of all roles are members; empty where each role meets for itself.
        parts: messages that one kernel sends and receives.
        stream: where the device's part runs; empty: on that of its group, or of compute.
        is_batched: whether messages were given to NCCL together (`batch_isend_irecv`).
        work: pass of a micro-batch that it is part of.
        microbatch: number of the micro-batch.
        chunk: number of the model chunk, among those of its rank.
        annotation: the annotation around it; neighbours that name the same one share it.
    """

    action: Action
    name: str
    kernel: str = ""
    host_ns: float = 20_000
    device_ns: float = 0
    group: Kind | None = None
    collective: CollectiveOp = "all_reduce"
    size_bytes: int = 0
    routed: int | None = None
    returns: bool = False
    awaited: tuple[int, ...] = ()
    meeting: str = ""
    parts: tuple[MessageSide, ...] = ()
    stream: str = ""
    is_batched: bool = False
    work: Work = ""
    microbatch: int = 0
    chunk: int = 0
    annotation: str = ""

    @property
    def runs_on(self) -> str:
        """The stream of the device's part."""
        return self.stream or (self.group if self.group is not None else COMPUTE)


Program = tuple[ProgramOperation, ...]
"""The operations of an iteration, in order."""


@dataclass(frozen=True, slots=True)
class Role:
    """Ranks that run the same program, in ascending order."""

    program: Program
    ranks: tuple[int, ...]


Roles = tuple[Role, ...]
"""Every rank is in one of them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A transformer-like training step.

    Attributes:
        layers: number of layers, of all pipeline stages together.
        forward_ns: device time of a layer's forward pass; backward takes twice as long.
        buckets: gradient buckets of the data-parallel all-reduce.
        gradient_bytes: size of all gradients together.
        activation_bytes: size of a tensor-parallel all-reduce.
        optimizer_ns: device time of the optimizer.
        input_ns: time the host takes to fetch a batch.
        host_ns: host time of an operation before its launch.
        reads_loss_every: iterations between two reads of the loss, at which the host waits for the device; 0: never.
        frees_memory: whether every iteration ends with a cudaFree, which waits for the device.
        copy_ns: time of the batch's copy to the device.
        sequence_parallel: whether tensor-parallel ranks gather and scatter activations instead of reducing them.
    """

    layers: int = 4
    forward_ns: float = 2_000_000
    buckets: int = 2
    gradient_bytes: int = 200_000_000
    activation_bytes: int = 16_000_000
    optimizer_ns: float = 1_500_000
    input_ns: float = 150_000
    host_ns: float = 60_000
    reads_loss_every: int = 1
    frees_memory: bool = False
    copy_ns: float = 200_000
    sequence_parallel: bool = False
