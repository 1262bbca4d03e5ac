"""What every rank runs in an iteration. In: a workload. Out: a list of operations, the same on all ranks.

    input · copy · forward (compute, tensor-parallel all-reduce) x layers · backward, with a data-parallel all-reduce
    for each bucket as soon as its gradients are there · wait for the buckets · optimizer · read the loss

Durations are those of an undisturbed run; noise and faults come later (`load`).
"""

from dataclasses import dataclass
from typing import Literal

from traceforge.synth.cluster import Kind

Action = Literal["input", "copy", "compute", "collective", "await", "synchronise", "free"]


@dataclass(frozen=True, slots=True)
class ProgramOperation:
    """One step of the program.

    Attributes:
        action: what it does.
        name: the host operation, as PyTorch names it.
        kernel: the device's part; empty where it has none.
        host_ns: time of the host before it calls the driver.
        device_ns: time on the device (0 for collectives, whose time follows from size and path).
        group: kind of communicator of a collective.
        size_bytes: size of a collective's message.
        awaited: numbers of the collectives that an `await` waits for.
    """

    action: Action
    name: str
    kernel: str = ""
    host_ns: float = 20_000
    device_ns: float = 0
    group: Kind | None = None
    size_bytes: int = 0
    awaited: tuple[int, ...] = ()


Program = tuple[ProgramOperation, ...]
"""The operations of an iteration, in order."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A transformer-like training step.

    Attributes:
        layers: number of layers.
        forward_ns: device time of a layer's forward pass; backward takes twice as long.
        buckets: gradient buckets of the data-parallel all-reduce.
        gradient_bytes: size of all gradients together.
        activation_bytes: size of a tensor-parallel all-reduce.
        optimizer_ns: device time of the optimizer.
        input_ns: time the host takes to fetch a batch.
        host_ns: host time of an operation before its launch.
        reads_loss_every: iterations between two reads of the loss, at which the host waits for the device; 0: never.
        frees_memory: whether every iteration ends with a cudaFree, which waits for the device.
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


_FORWARD = (
    ("aten::layer_norm", "vectorized_layer_norm_kernel", 0.15),
    ("aten::linear", "sm90_gemm_bf16_128x256", 0.85),
)
_BACKWARD = (
    ("autograd::engine::evaluate_function: AddmmBackward0", "sm90_gemm_bf16_256x128", 0.9),
    ("autograd::engine::evaluate_function: NativeLayerNormBackward0", "layer_norm_grad_input_kernel", 0.6),
    ("autograd::engine::evaluate_function: MulBackward0", "elementwise_kernel", 0.5),
)


def program_of(workload: Workload, *, is_tensor_parallel: bool, is_data_parallel: bool) -> Program:
    """Operations of one iteration; groups of one rank do not communicate."""
    builder = _Builder(workload)
    builder.add(
        ProgramOperation(
            "input", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", host_ns=workload.input_ns
        )
    )
    builder.add(ProgramOperation("copy", "aten::to", "Memcpy HtoD (Pinned -> Device)", workload.host_ns, 200_000))
    for _ in range(workload.layers):
        builder.compute(_FORWARD, workload.forward_ns)
        if is_tensor_parallel:
            builder.await_collectives([builder.all_reduce("tensor_parallel", workload.activation_bytes)])
    buckets = []
    for layer in range(workload.layers):
        builder.compute(_BACKWARD, workload.forward_ns)
        if is_tensor_parallel:
            builder.await_collectives([builder.all_reduce("tensor_parallel", workload.activation_bytes)])
        # A bucket is full as soon as its share of the layers has gone through backward.
        due = (layer + 1) * workload.buckets // workload.layers - layer * workload.buckets // workload.layers
        if is_data_parallel:
            size = workload.gradient_bytes // workload.buckets
            buckets += [builder.all_reduce("data_parallel", size) for _ in range(due)]
    builder.await_collectives(buckets)
    builder.compute((("Optimizer.step#AdamW.step", "multi_tensor_apply_kernel", 1.0),), workload.optimizer_ns)
    if workload.frees_memory:
        builder.add(ProgramOperation("free", "cudaFree", host_ns=10_000))
    builder.add(
        ProgramOperation("synchronise", "aten::item", "Memcpy DtoH (Device -> Pageable)", workload.host_ns, 3_000)
    )
    return tuple(builder.operations)


class _Builder:
    def __init__(self, workload: Workload) -> None:
        self.operations: list[ProgramOperation] = []
        self._host_ns = workload.host_ns

    def add(self, operation: ProgramOperation) -> int:
        self.operations.append(operation)
        return len(self.operations) - 1

    def compute(self, parts: tuple[tuple[str, str, float], ...], duration_ns: float) -> None:
        for name, kernel, share in parts:
            self.add(ProgramOperation("compute", name, kernel, self._host_ns, share * duration_ns))

    def all_reduce(self, group: Kind, size_bytes: int) -> int:
        kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        return self.add(ProgramOperation("collective", "c10d::allreduce_", kernel, self._host_ns, 0, group, size_bytes))

    def await_collectives(self, collectives: list[int]) -> None:
        if collectives:
            self.add(ProgramOperation("await", "c10d::wait_tensor", host_ns=5_000, awaited=tuple(collectives)))
