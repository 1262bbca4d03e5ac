"""Data- and tensor-parallel training, in which all ranks run the same program. In: a workload. Out: its operations.

input · copy · forward (compute, tensor-parallel all-reduce) x layers · backward, with a data-parallel all-reduce
for each bucket as soon as its gradients are there · wait for the buckets · optimizer · read the loss
"""

from traceforge.synth.program import Program, Workload
from traceforge.synth.programs.builder import BACKWARD, FORWARD, Builder


def replicated_program(workload: Workload, *, is_tensor_parallel: bool, is_data_parallel: bool) -> Program:
    """Operations of one iteration; groups of one rank do not communicate."""
    builder = Builder(workload)
    builder.begin()
    layer = builder.tensor_parallel if is_tensor_parallel else builder.compute
    for _ in range(workload.layers):
        layer(FORWARD, workload.forward_ns)
    buckets = []
    for number in range(workload.layers):
        layer(BACKWARD, workload.forward_ns)
        # A bucket is full as soon as its share of the layers has gone through backward.
        due = (number + 1) * workload.buckets // workload.layers - number * workload.buckets // workload.layers
        if is_data_parallel:
            size = workload.gradient_bytes // workload.buckets
            buckets += [builder.all_reduce("data_parallel", size) for _ in range(due)]
    return builder.end(buckets)
