"""Next steps in the words of the profiler that recorded. In: what bounds a run, or what it lacks. Out: a step.

Idea: usual steps speak of PyTorch and its profiler; users of Nsight Systems, JAX or rocprofv3 have other settings for
the same, or none. What a table does not hold is said in the usual words.
Not handled: a run of several profilers, whose users know which is meant.
"""

from collections.abc import Mapping
from types import MappingProxyType

_FASTER_HOST = "Python between operations, sleeps and locks show no other way."
_FEWER = "so that kernels can be compared with what the device can do; the largest kernels come first."
_DOCTOR = "`traceforge doctor` names the setting for these files."
_MEMBERS = "so that each collective has all its members and each message both its ends."
_ENOUGH = "Record ten or more steps, so that rare delays can be told from noise."

_NSYS = {
    "unmodelled_kernels": "Let PyTorch name the shapes of operations in its ranges "
    f"(torch.autograd.profiler.emit_nvtx(record_shapes=True)), {_FEWER}",
    "idle": "Sample the stacks of the host (nsys profile --sample=process-tree --python-sampling=true, or py-spy).",
    "quiet": "Sample the stacks of the host (nsys profile --sample=process-tree --python-sampling=true, or py-spy): "
    f"{_FASTER_HOST} If it is Python, CUDA graphs or a compiled step help.",
    "nothing_runs": "Record CUDA and NVTX (nsys profile -t cuda,nvtx,osrt --cuda-graph-trace=node).",
    "host_compute": "Look at the largest ranges first; a trace of a device needs nsys profile -t cuda.",
    "communication": "Run all ranks under nsys in the same steps (-t cuda,nvtx --cuda-graph-trace=node), and export "
    f"with --include-blobs true; NCCL's calls are matched between ranks, MPI's are not; {_DOCTOR}",
    "steps": 'Mark the iterations: put each into an NVTX range (torch.cuda.nvtx.range(f"step {n}")).',
    "regular": "Record the same steps on all ranks (--capture-range=cudaProfilerApi), and export with "
    f"--include-blobs true, {_MEMBERS}",
    "more_steps": _ENOUGH,
}
_ROCPROF = {
    "unmodelled_kernels": "The file knows kernels and no operations: record a few steps with torch.profiler "
    f"(record_shapes=True) as well, {_FEWER}",
    "idle": "Record the host's calls and markers (--hip-trace --marker-trace): then the trace says what it does.",
    "quiet": f"Record markers (--marker-trace) and stacks (py-spy): {_FASTER_HOST} If it is Python, HIP graphs or a "
    "compiled step help.",
    "nothing_runs": "Record kernels and the host's calls (--kernel-trace --hip-trace --marker-trace).",
    "host_compute": "Look at the largest calls first; a trace of a device needs --kernel-trace.",
    "communication": "Run all ranks under rocprofv3 in the same steps, with --kernel-trace --hip-trace --rccl-trace; "
    f"{_DOCTOR}",
    "steps": "Mark the iterations: put each into a roctx range, and record markers (--marker-trace).",
    "regular": f"Record the same steps on all ranks, with --hip-trace and --rccl-trace, {_MEMBERS}",
    "more_steps": _ENOUGH,
}
_XPLANE = {
    "unmodelled_kernels": "Look at the largest operations first. The file names no shapes outside of the HLO module, "
    "which is not read: XProf's op profile shows how near each comes to the device's peak.",
    "memory_bound": "Fuse operations that read the same data into one jax.jit, or use a lower precision.",
    "small_kernels": "Put more of the step into one jax.jit, so that XLA fuses small kernels, or use larger batches.",
    "launch_bound": "Put more of the step into one jax.jit, let XLA launch by graphs "
    "(--xla_gpu_enable_command_buffer), or use larger batches.",
    "idle": "Trace Python in a run of its own (jax.profiler.ProfileOptions().python_tracer_level = 1), or use py-spy.",
    "quiet": "Trace Python in a run of its own (jax.profiler.ProfileOptions().python_tracer_level = 1), or use py-spy: "
    f"{_FASTER_HOST} If it is Python, put more of the step into one jax.jit.",
    "copy_bound": "Keep data on the device between steps, and hand over the next step's while this one runs "
    "(jax.device_put ahead of time; donate_argnums for what is overwritten).",
    "synchronisation_bound": "Remove what makes the host wait: block_until_ready, float() or printing of arrays within "
    "the step.",
    "allocator": "Keep allocations out of the step: XLA_PYTHON_CLIENT_PREALLOCATE=true, donate_argnums.",
    "nothing_runs": "Record ten steps after compilation, on a host with devices (jax.profiler.start_trace).",
    "host_compute": "Look at the largest operations first; jax.default_backend() tells whether a device is used.",
    "communication": f"Start the trace on every host in the same steps (jax.profiler.start_trace); {_DOCTOR}",
    "steps": 'Mark the iterations: with jax.profiler.StepTraceAnnotation("step", step_num=n).',
    "regular": f"Start and stop the trace in the same steps on every host, {_MEMBERS}",
    "more_steps": _ENOUGH,
}
_STEPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"nsys": _NSYS, "rocprof": _ROCPROF, "rocpd": _ROCPROF, "xplane": _XPLANE}
)


def step_of(profilers: Mapping[str, object], what: str, usual: str) -> str:
    """The next step where only one profiler recorded and has words of its own for it; else the usual one.

    Args:
        profilers: names of the sources that read the run's timelines, as keys.
        what: a part of attribute.bottleneck, `quiet`, `nothing_runs`, `communication`, `steps`, `regular` or
            `more_steps`.
    """
    if len(profilers) != 1:
        return usual
    return _STEPS.get(next(iter(profilers)), {}).get(what, usual)
