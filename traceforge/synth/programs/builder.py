"""Steps that programs share. In: a workload. Out: a list of operations that grows step by step.

input · copy · … · wait for the gradients · optimizer · read the loss
"""

from dataclasses import dataclass, field, replace
from typing import Any

from traceforge.synth.cluster import CollectiveOp, Kind
from traceforge.synth.program import MessageSide, Program, ProgramOperation, Workload

Kernels = tuple[tuple[str, str, float], ...]
"""Host operation, kernel, and its share of the time, for each."""

FORWARD: Kernels = (
    ("aten::layer_norm", "vectorized_layer_norm_kernel", 0.15),
    ("aten::linear", "sm90_gemm_bf16_128x256", 0.85),
)
BACKWARD: Kernels = (
    ("autograd::engine::evaluate_function: AddmmBackward0", "sm90_gemm_bf16_256x128", 0.9),
    ("autograd::engine::evaluate_function: NativeLayerNormBackward0", "layer_norm_grad_input_kernel", 0.6),
    ("autograd::engine::evaluate_function: MulBackward0", "elementwise_kernel", 0.5),
)
_SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
_COLLECTIVES: dict[CollectiveOp, tuple[str, str]] = {
    "all_reduce": ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    "all_gather": ("c10d::_allgather_base_", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    "reduce_scatter": (
        "c10d::_reduce_scatter_base_",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    ),
    "all_to_all": ("c10d::alltoall_base_", _SEND_RECV),
}


@dataclass(slots=True)
class Builder:
    """A program in the making.

    Attributes:
        marks: fields that every operation added from now on gets, such as its micro-batch.
    """

    workload: Workload
    operations: list[ProgramOperation] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)

    def add(self, operation: ProgramOperation) -> int:
        """Add an operation and return its number."""
        self.operations.append(replace(operation, **self.marks) if self.marks else operation)
        return len(self.operations) - 1

    def begin(self) -> None:
        """Fetch a batch and copy it to the device."""
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        self.add(ProgramOperation("input", name, host_ns=self.workload.input_ns))
        copy = "Memcpy HtoD (Pinned -> Device)"
        self.add(ProgramOperation("copy", "aten::to", copy, self.workload.host_ns, self.workload.copy_ns))

    def compute(self, kernels: Kernels, duration_ns: float) -> None:
        """Kernels that share a duration."""
        for name, kernel, share in kernels:
            self.add(ProgramOperation("compute", name, kernel, self.workload.host_ns, share * duration_ns))

    def collective(
        self,
        op: CollectiveOp,
        group: Kind,
        size_bytes: int,
        *,
        stream: str = "",
        after: tuple[int, ...] = (),
        returns: bool = False,
        meeting: str = "",
    ) -> int:
        """Launch a collective, behind all compute so far and behind some operations."""
        name, kernel = _COLLECTIVES[op]
        return self.add(
            ProgramOperation(
                "collective", name, kernel, self.workload.host_ns, group=group, collective=op, size_bytes=size_bytes,
                stream=stream, awaited=after, returns=returns, meeting=meeting,
            )
        )  # fmt: skip

    def all_reduce(self, group: Kind, size_bytes: int) -> int:
        """Launch an all-reduce."""
        return self.collective("all_reduce", group, size_bytes)

    def tensor_parallel(self, kernels: Kernels, duration_ns: float) -> None:
        """A layer of which each tensor-parallel rank has a part, and what they exchange of it."""
        size = self.workload.activation_bytes
        if self.workload.sequence_parallel:
            self.wait([self.collective("all_gather", "tensor_parallel", size)])
            self.compute(kernels, duration_ns)
            self.wait([self.collective("reduce_scatter", "tensor_parallel", size)])
        else:
            self.compute(kernels, duration_ns)
            self.wait([self.all_reduce("tensor_parallel", size)])

    def message(
        self, parts: tuple[MessageSide, ...], size_bytes: int, *, stream: str = "", is_batched: bool = False
    ) -> int:
        """Launch a kernel that sends and receives between the stages of a pipeline."""
        name = "nccl:coalesced" if is_batched else "c10d::send" if parts[0].sends else "c10d::recv_"
        host_ns = self.workload.host_ns
        return self.add(
            ProgramOperation(
                "message", name, _SEND_RECV, host_ns, group="pipeline_parallel", size_bytes=size_bytes,
                parts=parts, stream=stream, is_batched=is_batched,
            )
        )  # fmt: skip

    def read(self) -> None:
        """Have the host wait for a result of its device."""
        copy = "Memcpy DtoH (Device -> Pageable)"
        self.add(ProgramOperation("read", "aten::_local_scalar_dense", copy, self.workload.host_ns, 3_000))

    def wait(self, awaited: list[int]) -> None:
        """Have the device's compute wait for communication."""
        if awaited:
            self.add(ProgramOperation("await", "c10d::wait_tensor", host_ns=5_000, awaited=tuple(awaited)))

    def end(self, gradients: list[int]) -> Program:
        """Wait for the gradients, take the optimizer's step and read the loss."""
        self.wait(gradients)
        self.compute((("Optimizer.step#AdamW.step", "multi_tensor_apply_kernel", 1.0),), self.workload.optimizer_ns)
        if self.workload.frees_memory:
            self.add(ProgramOperation("free", "cudaFree", host_ns=10_000))
        copy = "Memcpy DtoH (Device -> Pageable)"
        self.add(ProgramOperation("synchronise", "aten::item", copy, self.workload.host_ns, 3_000))
        return tuple(self.operations)
