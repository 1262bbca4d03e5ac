"""Why something cannot be shown, and what to record next time. In: job and trust. Out: `Missing`.

The reasons are tried from the root outwards, so that a reader sees the first thing to fix, not its consequences.
"""

from traceforge.report.blocks import Missing
from traceforge.report.context import Context
from traceforge.report.formatting import named_ranks, plural
from traceforge.report.job import JobOverview

_RECORD_STEPS = (
    "Call `prof.step()` once per training step inside `torch.profiler.profile(schedule=…)`; "
    "each step then carries a ProfilerStep# mark."
)
_RECORD_MORE = "Record more steps: `schedule(wait=1, warmup=1, active=10)` keeps ten after one for warm-up."
_RECORD_ALL_RANKS = (
    "Profile on every rank, each into a file of its own: "
    "`tensorboard_trace_handler(folder, worker_name=f'rank{rank}')`."
)
_RECORD_DEVICES = (
    "Profile with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`, "
    "and make sure that the recorded steps contain the gradient exchange."
)
_RECORD_TOGETHER = (
    "Start and stop the profiler at the same step on every rank. "
    "PyTorch 2.12 and later also record a sequence number with each collective, which settles the matching."
)
_RECORD_A_TIMELINE = (
    "Record a timeline on all ranks (torch.profiler, nsys, rocprofv3 or JAX's profiler) and put the files into "
    "the same folder. `traceforge doctor DIR` says what the files there hold and lack."
)
_DOCTOR = "`traceforge doctor DIR` says for every file what it holds and what is absent."


def missing(what: str, context: Context) -> Missing:
    """A `Missing` that begins with what is not shown and goes on with the first reason that applies."""
    why, how = _reason(context)
    return Missing(f"{what}: {why}.", how)


def _reason(context: Context) -> tuple[str, str]:
    job, trust = context.job, context.trust
    if not job.used:
        return _reason_without_iterations(job)
    if len(job.ranks) == 1:
        lonely = f"only rank {job.ranks[0]} was recorded, and being late is a comparison between ranks"
        return lonely, _RECORD_ALL_RANKS
    if not trust.collectives:
        return "no collective call could be matched across the ranks", f"{_RECORD_DEVICES} {_RECORD_TOGETHER}"
    if trust.unaligned:
        return f"the clock of {named_ranks(trust.unaligned)} could not be aligned", _RECORD_TOGETHER
    return "the analysis left no rows for it", _DOCTOR


def _reason_without_iterations(job: JobOverview) -> tuple[str, str]:
    if not job.ranks:
        return "the files hold no timeline of a known rank", _RECORD_A_TIMELINE
    if not job.iterations:
        return "no training step could be found in the traces", _RECORD_STEPS
    if len(job.iterations) == 1:
        return "the only iteration is warm-up or cut off", _RECORD_MORE
    return f"all {plural(len(job.iterations), 'iteration')} are warm-up or cut off", _RECORD_MORE
