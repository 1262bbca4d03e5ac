"""What other profilers can record. In: a check and the profiler of a run. Out: the check with its advice.

Idea: the checks advise users of PyTorch's profiler; where another one recorded, the same gap is closed in another way,
or not at all, which is said. Not handled: runs of several profilers, whose users know which is meant.
"""

from collections.abc import Mapping
from types import MappingProxyType

_NSYS_EXPORT = "nsys export --type sqlite --include-blobs true report.nsys-rep"
_NSYS = 'nsys profile -t cuda,nvtx,osrt --cuda-graph-trace=node -o "report_%h_rank%q{RANK}" python train.py'
_ROCPROF = (
    "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --rccl-trace --marker-trace --output-format json --"
)
_ROCPD = _ROCPROF.replace("json", "rocpd")
_XLA = 'jax.profiler.start_trace("traces")  # … ten steps … jax.profiler.stop_trace()'
NCCL_LOG = "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV NCCL_DEBUG_FILE=traces/nccl.%h.%p.log"
NCCL_TUNING = "export NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV,TUNING"
TELEMETRY = (
    "nvidia-smi --query-gpu=timestamp,index,uuid,pci.bus_id,clocks.sm,power.draw,enforced.power.limit,"
    "temperature.gpu,utilization.gpu,clocks_event_reasons.active --format=csv -lms 100 "
    '-f "traces/nvidia-smi.$(hostname).csv"'
)
"""Settings of checks that some profilers' users are advised of in other words."""
_AS_WELL = "record a few steps with torch.profiler as well."
_TORCH = "torch.profiler.profile(record_shapes=True, with_stack=False)"

_GUESSED = "numbers in names, devices of hosts, or processes"
_NO_HOST = ("The file can state none; logs of NCCL or RCCL beside it do.", NCCL_LOG)
_SHARED = "Record ten or more collectives that all ranks share: their common ends align the clocks."
_NO_NUMBERS = ("It does not number calls; order is all there is.", "")
_Advice = Mapping[str, tuple[str, str]]

_NSYS_ADVICE: _Advice = {
    "rank_known": (f"Record a file a rank, named by it; else {_GUESSED} stand for ranks.", _NSYS),
    "all_ranks": ("Run every rank under nsys, in the same steps.", _NSYS),
    "steps": ("Put each step into an NVTX range.", 'with torch.cuda.nvtx.range(f"step {n}"):'),
    "iterations": (
        "Record ten or more steps after warm-up.",
        "nsys profile --capture-range=cudaProfilerApi  # torch.cuda.profiler.start() after warm-up",
    ),
    "common_window": (
        "Start and stop by step number on every rank.",
        "nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop",
    ),
    "devices": ("Record CUDA.", _NSYS),
    "communication": ("Record steps that exchange gradients, with CUDA and NVTX on every rank.", _NSYS),
    "matching": ("Export the payloads of NCCL's ranges, which state the communicator of each call.", _NSYS_EXPORT),
    "clocks": (_SHARED, _NSYS),
    "process_groups": (
        "Export the payloads of NCCL's ranges, which state the communicator of each call.",
        _NSYS_EXPORT,
    ),
    "sequence_numbers": _NO_NUMBERS,
    "sizes": ("Export the payloads of NCCL's ranges, which state the size of each call.", _NSYS_EXPORT),
    "hosts": ("Export with the information on the system.", _NSYS_EXPORT),
    "whole_files": ("Let nsys end by itself, then export the report again.", _NSYS_EXPORT),
    "shapes": (
        "Let PyTorch name shapes in its ranges.",
        "with torch.autograd.profiler.emit_nvtx(record_shapes=True):",
    ),
    "stacks": (f"No stacks are read from exports: {_AS_WELL}", "with_stack=True"),
}
_ROCPROF_ADVICE: _Advice = {
    "rank_known": (
        f"Name files by rank; else {_GUESSED} stand for ranks.",
        "--output-file rank%env{RANK}%",
    ),
    "all_ranks": ("Run every rank under rocprofv3, in the same steps.", _ROCPROF),
    "steps": ("Put each step into a roctx range, and record markers.", _ROCPROF),
    "iterations": (
        "Record ten or more steps after warm-up (seconds to wait, seconds to record, times).",
        "rocprofv3 --collection-period 120:30:1",
    ),
    "common_window": (
        "Record the same steps on every rank, between calls of roctx.",
        "rocprofv3 --selected-regions  # roctxProfilerResume(0) … roctxProfilerPause(0)",
    ),
    "devices": ("Record kernels and copies.", _ROCPROF),
    "hosts": _NO_HOST,
    "whole_files": ("Let the program end by itself: the tool writes its files then.", _ROCPROF),
    "communication": ("Record steps that exchange gradients, with RCCL's calls.", _ROCPROF),
    "matching": ("Record HIP's and RCCL's calls on all ranks: they say what each kernel of RCCL is.", _ROCPROF),
    "clocks": (_SHARED, _ROCPROF),
    "process_groups": (f"The file does not name process groups: {_AS_WELL}", _TORCH),
    "sequence_numbers": _NO_NUMBERS,
    "sizes": (f"The file does not state the sizes of collectives: {_AS_WELL}", _TORCH),
    "telemetry": ("What amd-smi and rocm-smi print is not read.", ""),
    "shapes": (f"The file does not know operators: {_AS_WELL}", _TORCH),
    "stacks": (f"The file does not know the program: {_AS_WELL}", "with_stack=True"),
}
_ROCPD_ADVICE: _Advice = {
    **_ROCPROF_ADVICE,
    "all_ranks": ("Run every rank under rocprofv3, in the same steps.", _ROCPD),
    "steps": ("Put each step into a roctx range, and record markers.", _ROCPD),
    "devices": ("Record kernels and copies.", _ROCPD),
    "whole_files": ("Let the program end by itself: the tool writes its files then.", _ROCPD),
    "communication": ("Record steps that exchange gradients, with RCCL's calls.", _ROCPD),
    "matching": ("Record HIP's and RCCL's calls on all ranks: they say what each kernel of RCCL is.", _ROCPD),
    "clocks": (_SHARED, _ROCPD),
}
_XLA_ADVICE: _Advice = {
    "rank_known": (
        "A file holds the devices of one host, each a rank. Give each process of a host a folder of its own.",
        'jax.profiler.start_trace(f"traces/rank{jax.process_index()}")',
    ),
    "all_ranks": ("Start the trace on every host, in the same steps.", _XLA),
    "steps": ("Annotate each step.", 'with jax.profiler.StepTraceAnnotation("step", step_num=n):'),
    "iterations": ("Record ten or more steps after compilation.", _XLA),
    "common_window": ("Start and stop by step number on every host.", _XLA),
    "devices": ("Trace steps whose work runs on a device: JAX records it by itself.", _XLA),
    "hosts": _NO_HOST,
    "whole_files": ("Stop the trace before the process ends, and copy files as binary.", "jax.profiler.stop_trace()"),
    "communication": ("Record steps in which devices exchange data, on every host.", _XLA),
    "matching": ("Start and stop the trace in the same steps on every host.", _XLA),
    "clocks": (_SHARED, _XLA),
    "process_groups": ("The file does not name groups of devices; the program's mesh does.", ""),
    "sequence_numbers": _NO_NUMBERS,
    "sizes": ("Sizes stand in the HLO module, which nothing here reads.", ""),
    "nccl_log": ("On GPUs let NCCL write its log beside the traces; on a TPU XLA writes none.", NCCL_LOG),
    "nccl_choices": ("On GPUs add TUNING to the subsystems of NCCL's log.", NCCL_TUNING),
    "telemetry": (
        "On NVIDIA's GPUs let nvidia-smi run beside the job on every host; what other devices report is not read.",
        TELEMETRY,
    ),
    "execution_traces": ("The graph of operations stands in the HLO module, which nothing here reads.", ""),
    "shapes": ("Shapes stand in the HLO module, which nothing here reads.", ""),
    "stacks": ("Trace Python, in a run of its own.", "jax.profiler.ProfileOptions().python_tracer_level = 1"),
}
_PFTRACE_ADVICE: _Advice = {
    "timeline": ("Name the file by the rank when it is exported.", 'prof.export_chrome_trace("rank0.pftrace")'),
    "rank_known": ("A file does not state its rank: name it by it.", 'prof.export_chrome_trace(f"rank{rank}.pftrace")'),
    "hosts": ("A file does not state its host: export JSON once, or keep NCCL's logs beside it.", _TORCH),
}
_TABLE = "one row an operation: dp_rank, stage, rank, step, optype, seq_id, start_ts, duration"
_OPERATION_TABLE_ADVICE: _Advice = {
    "all_ranks": ("Keep the timers of every rank in one table, of tensor-parallel groups of one rank each.", _TABLE),
    "steps": ("Give every row the number of its step.", _TABLE),
    "iterations": ("Keep ten or more steps, such as the last ones before the table is written.", _TABLE),
    "common_window": ("Keep the same steps of every rank.", _TABLE),
    "devices": ("Timers tell no kernels: record a few steps with torch.profiler beside them.", _TORCH),
    "hosts": ("A table names no hosts: keep NCCL's logs beside it, which state host and rank.", NCCL_LOG),
    "communication": ("Time messages and collectives as well as computation.", _TABLE),
    "matching": ("Keep every message and collective of each step on all of its ranks.", _TABLE),
    "clocks": ("Bring the times of all ranks to one clock before the table is written.", _TABLE),
    "process_groups": ("Groups follow from dp_rank and stage; use Megatron's names of operations.", _TABLE),
    "sequence_numbers": ("Number the operations of a kind in seq_id, from 0 in each step.", _TABLE),
    "sizes": ("A table has no column for sizes: record a few steps with torch.profiler.", _TORCH),
    "shapes": ("A table has no column for shapes: record a few steps with torch.profiler.", _TORCH),
    "stacks": ("A table has no stacks: record a few steps with torch.profiler.", _TORCH),
}
_LIVE = 'with live.record("traces/") as recorder:  # from before the first step to after the last one'
_LIVE_ADVICE: _Advice = {
    "all_ranks": ("Record every rank into one folder.", _LIVE),
    "steps": ("Mark the end of each step.", "recorder.step()"),
    "iterations": ("Record ten or more steps.", _LIVE),
    "common_window": ("Record the same steps on every rank.", _LIVE),
    "devices": (f"The recorder sees no kernels: {_AS_WELL}", _TORCH),
    "communication": (
        "Collectives that PyTorch does not issue are named by the program.",
        'with recorder.collective("all_reduce", size_bytes=n):',
    ),
    "clocks": (_SHARED, _LIVE),
    "whole_files": ("Let the recorder end before the process does; a killed one loses its last second at most.", _LIVE),
    "shapes": (f"The recorder sees no operators: {_AS_WELL}", _TORCH),
    "stacks": (f"The recorder keeps no stacks: {_AS_WELL}", "with_stack=True"),
}
_ADVICE: Mapping[str, _Advice] = MappingProxyType(
    {
        "nsys": _NSYS_ADVICE,
        "pftrace": _PFTRACE_ADVICE,
        "rocprof": _ROCPROF_ADVICE,
        "rocpd": _ROCPD_ADVICE,
        "xplane": _XLA_ADVICE,
        "operation_table": _OPERATION_TABLE_ADVICE,
        "live_log": _LIVE_ADVICE,
    }
)


def advice_for(code: str, profiler: str | None) -> tuple[str, str] | None:
    """What to do next time, and the exact setting, for users of a profiler; None where the check's own advice stands.

    Args:
        code: of the check.
        profiler: name of the source that read all timelines of the run; None for several, or none.
    """
    return _ADVICE.get(profiler or "", {}).get(code)
