"""What is said of a bound: titles, phrases and next steps by name of a part. In: nothing. Out: texts.

`bound` puts them together with what was measured; `profiler_steps` has other steps for other profilers.
"""

from types import MappingProxyType

PHRASES = MappingProxyType(
    {
        "unexplained": ("Unknown", "nothing runs, and no call of the host is recorded"),
        "communication_bound": ("Communication-bound", "nothing but communication runs"),
        "imbalance_bound": ("Imbalance-bound", "it waits in communication for ranks that come later"),
        "pipeline_bubble": ("Pipeline bubble", "other stages of the pipeline are waited for"),
        "copy_bound": ("Copy-bound", "nothing but copies and memory sets runs, or the host waits for a copy"),
        "input_bound": ("Input-bound", "the device is idle while the host loads data"),
        "synchronisation_bound": ("Synchronisation-bound", "the device is idle while the host waits for it"),
        "device_queue": ("Bound by dependencies on the device", "nothing runs although work was launched"),
        "allocator": ("Bound by the allocator", "the device is idle while the host allocates or frees memory"),
        "garbage_collection": ("Bound by garbage collection", "the device is idle while Python collects garbage"),
        "checkpoint": ("Bound by checkpoints", "the device is idle while the host saves the model"),
        "system_call": (
            "Bound by the operating system",
            "the device is idle while the host reads, writes or waits for a lock",
        ),
        "mpi_call": ("Bound by MPI", "the device is idle while the host is inside of a call to MPI"),
        "idle": ("Idle", "nothing runs, and the host does nothing under a name"),
        "memory_sets": ("Bound by setting memory", "nothing but memory sets and copies runs"),
    }
)
KERNELS_BOUND = MappingProxyType(
    {
        "compute_bound": "Compute-bound",
        "memory_bound": "Memory-bound",
        "small_kernels": "Bound by small kernels",
        "unmodelled_kernels": "Bound by its kernels",
        "ideal": "Compute-bound",
        "host_compute": "Bound by work of the host",
    }
)
PARTS_OF_KERNELS = MappingProxyType(
    {
        "compute_bound": "kernels are bound by arithmetic, above what the device could do",
        "memory_bound": "kernels are bound by the device's memory",
        "small_kernels": "kernels run that are too short to fill the device",
    }
)
STATE_PEAKS = (
    "State what the device can do (--peak bf16=… --peak memory=…, TFLOP/s and GB/s): it is none of those known."
)
SEE_ALL = "See attribute.bottleneck for all parts."
NO_MODEL = (
    "Look at the largest kernels first (`traceforge top`): what these have to do does not follow from the shapes."
)
NEXT_STEPS = MappingProxyType(
    {
        "ideal": "Kernels run at the pace of the device: only less work, or a lower precision, makes the step shorter.",
        "compute_bound": "Look at the largest products first: shapes that fill the device's tiles, a lower precision.",
        "memory_bound": "Fuse operations that read the same data (torch.compile), or use a lower precision.",
        "small_kernels": "Fuse small kernels (torch.compile, fused optimisers), or use larger batches.",
        "unmodelled_kernels": "Record the shapes of operations (record_shapes=True in torch.profiler), so that kernels "
        "can be compared with what the device can do; the largest operations come first.",
        "host_compute": "Look at the largest operations first; a trace of a device needs activities CPU and CUDA.",
        "communication_bound": "Overlap communication with compute (larger buckets earlier, prefetch), or send less.",
        "imbalance_bound": "See which rank the others wait for.",
        "pipeline_bubble": "Use more micro-batches or chunks, and even out what stages compute; the table of "
        "bubbles says what the stages wait for.",
        "copy_bound": "Copy from pinned memory with non_blocking=True on a stream of its own, or keep data on "
        "the device.",
        "input_bound": "Give the data loader more workers and a deeper prefetch, or move its work out of the step.",
        "synchronisation_bound": "Remove what makes the host wait: .item(), .cpu(), printing of tensors, nonzero, "
        "copies from pageable memory.",
        "device_queue": "Look at dependencies between streams, and at kernels that leave little room between them.",
        "allocator": "Keep allocations out of the step: expandable_segments, buffers of fixed size, no empty_cache.",
        "garbage_collection": "Collect garbage between steps at a chosen moment (gc.disable, gc.collect).",
        "checkpoint": "Save asynchronously, or less often.",
        "system_call": "See which calls these are (category os_runtime in raw.event): files, locks, other threads.",
        "mpi_call": "See which calls these are (MPI_* in raw.event) and which rank comes to them last; exchange "
        "tensors on the device (NCCL), and less often.",
        "idle": "Record the stacks of the host (with_stack=True in torch.profiler): then the trace says what it does.",
    }
)
NOTHING_RUNS = (
    "Record with activities CPU and CUDA and with_stack=True. Of a CUDA graph the trace of its replay shows the "
    "kernels, that of its capture does not."
)
MEANWHILE = MappingProxyType(
    {
        "operation": "the host calls operations",
        "launch": "the host launches work",
        "annotation": "the host is inside of annotated stretches",
        "synchronisation": "the host waits for the device",
        "stall": "the host is inside of operations that begin nothing",
        "mpi_call": "the host is inside of calls to MPI",
    }
)


def words_of(name: str) -> tuple[str, str]:
    """Title and phrase of a part of the step that is no work of kernels as it should be."""
    if name in PARTS_OF_KERNELS:
        return KERNELS_BOUND[name], PARTS_OF_KERNELS[name]
    # Of gaps that another class of the vocabulary fills nothing more is known here.
    words = name.replace("_", " ")
    return PHRASES.get(name, (f"Bound by {words}", f"the device is idle during {words}"))
