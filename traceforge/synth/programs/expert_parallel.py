"""Expert parallelism. In: a workload, experts and a cluster. Out: the operations that all ranks run.

    forward of each layer: attention · tokens go to their experts (all-to-all) · experts compute · tokens return
    backward: the same the other way round · all-reduce of what all ranks hold and of what they share with a few

Before tokens go, the host reads from its device how many go where, unless the experts say that it need not. Backward
knows. That ranks first exchange these numbers is left out.
"""

from traceforge.synth.cluster import Cluster
from traceforge.synth.experts import Experts
from traceforge.synth.program import Program, Workload
from traceforge.synth.programs.builder import BACKWARD, FORWARD, Builder, Kernels

_EXPERT_FORWARD: Kernels = (
    ("aten::_grouped_mm", "sm90_grouped_gemm_bf16", 0.8),
    ("aten::silu", "silu_mul_kernel", 0.2),
)
_EXPERT_BACKWARD: Kernels = (
    ("autograd::engine::evaluate_function: GroupedMmBackward0", "sm90_grouped_gemm_bf16_grad", 1.6),
    ("autograd::engine::evaluate_function: SiluBackward0", "silu_mul_backward_kernel", 0.4),
)
# Of the gradients, those of experts.
_EXPERT_SHARE = 2


def expert_program(workload: Workload, experts: Experts, cluster: Cluster) -> Program:
    """Operations of one iteration; `forward_ns` is the time of attention."""
    builder = Builder(workload)
    size = experts.tokens * experts.token_bytes

    def exchange(*, returns: bool) -> None:
        builder.wait([builder.collective("all_to_all", "expert_parallel", size, returns=returns)])

    def mixture(layer: int, kernels: Kernels) -> None:
        builder.marks = {"routed": layer}
        exchange(returns=False)
        builder.compute(kernels, experts.expert_ns)
        exchange(returns=True)
        builder.marks = {}

    builder.begin()
    for layer in range(workload.layers):
        builder.compute(FORWARD, workload.forward_ns)
        if experts.reads_splits:
            builder.read()
        mixture(layer, _EXPERT_FORWARD)
    gradients = []
    for layer in reversed(range(workload.layers)):
        mixture(layer, _EXPERT_BACKWARD)
        builder.compute(BACKWARD, workload.forward_ns)
        part = workload.gradient_bytes // workload.layers // _EXPERT_SHARE
        gradients.append(builder.all_reduce("data_parallel", part))
        if cluster.ranks > cluster.expert_parallel:
            gradients.append(builder.all_reduce("expert_data", part // cluster.expert_parallel))
    return builder.end(gradients)
