"""The checks of `traceforge doctor`, most valuable first. In: `Facts`. Out: what is there, what is not, what to set.

A check has the question that the data answer, a function that looks at the facts, and the exact line that records the
data next time. To add one, write its function and put it into `CHECKS` at its place.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from traceforge.doctor.facts import Facts, read_facts
from traceforge.doctor.profilers import NCCL_LOG, NCCL_TUNING, TELEMETRY, advice_for
from traceforge.store.database import Store
from traceforge.thresholds import doctor as thresholds
from traceforge.units import format_ns, format_share, plural

_MAX_LISTED = 8


class Status(StrEnum):
    """How much of what a question needs is there; `blocked` where something above it is missing first."""

    complete = "complete"
    partial = "partial"
    missing = "missing"
    not_needed = "not needed"
    blocked = "blocked"


LACKING = (Status.missing, Status.partial)


class Look(NamedTuple):
    """What the facts say about one question."""

    status: Status
    evidence: str


@dataclass(frozen=True, slots=True)
class Check:
    """One question.

    Attributes:
        code: stable name.
        question: what the data answer when they are there.
        requires: what to say instead where there is nothing to look at, or None.
        look: judges the facts.
        remedy: what to do next time.
        setting: the exact line or variable; empty where there is none.
    """

    code: str
    question: str
    requires: Callable[[Facts], Look | None]
    look: Callable[[Facts], Look]
    remedy: str
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """A check with what it found."""

    check: Check
    status: Status
    evidence: str

    def document(self) -> dict[str, object]:
        """What programs read of it."""
        return {
            "code": self.check.code,
            "question": self.check.question,
            "status": self.status.value,
            "evidence": self.evidence,
            "remedy": self.check.remedy,
            "setting": self.check.setting,
        }


def examine(store: Store, run_id: int) -> list[Examination]:
    """Every check on a run, in order of value."""
    facts = read_facts(store, run_id)
    return [
        Examination(_advised(check, facts.profiler), *(check.requires(facts) or check.look(facts))) for check in CHECKS
    ]


def _advised(check: Check, profiler: str | None) -> Check:
    own = advice_for(check.code, profiler)
    return check if own is None else replace(check, remedy=own[0], setting=own[1])


_complete = partial(Look, Status.complete)
_partial = partial(Look, Status.partial)
_missing = partial(Look, Status.missing)
_not_needed = partial(Look, Status.not_needed)
_blocked = partial(Look, Status.blocked)


def _counted(part: int, whole: int, noun: str, what: str) -> Look:
    """By how many of all have it."""
    said = f"{part or 'none'} of {plural(whole, noun)} {what}"
    return (_complete if part >= whole else _partial if part else _missing)(said)


def _needs_nothing(_facts: Facts) -> None:
    """Every run can be looked at."""


def _needs_ranks(facts: Facts) -> Look | None:
    return None if facts.ranks else _blocked("no profiler trace of a known rank")


def _needs_calls(facts: Facts) -> Look | None:
    return _needs_ranks(facts) or (None if facts.calls else _blocked("no collective in the recorded window"))


def _needs_several_ranks(facts: Facts) -> Look | None:
    return _needs_ranks(facts) or (_not_needed("one rank recorded") if facts.ranks == 1 else None)


def _needs_calls_of_several(facts: Facts) -> Look | None:
    alone = _blocked("one rank recorded: nothing to match with") if facts.ranks == 1 else None
    return _needs_calls(facts) or alone


def _needs_devices(facts: Facts) -> Look | None:
    return _not_needed("the job communicates on the host (gloo)") if facts.on_host else None


def _needs_nccl(facts: Facts) -> Look | None:
    other = _not_needed(f"the job communicates by {facts.backend}, not by NCCL") if facts.without_nccl else None
    return _needs_devices(facts) or other


def _timeline(facts: Facts) -> Look:
    if not facts.timelines:
        return _missing("no trace of the PyTorch profiler among the files")
    return _complete(plural(facts.timelines, "profiler trace"))


def _rank_known(facts: Facts) -> Look:
    if not facts.timelines:
        return _blocked("no profiler trace")
    if facts.nameless:
        files = plural(facts.timelines, "file")
        said = f"{facts.nameless} of {files} {'states' if facts.nameless == 1 else 'state'} no rank"
        return (_missing if not facts.ranks else _partial)(said)
    if facts.set_aside:
        return _partial(f"{plural(facts.set_aside, 'file')} set aside: of a rank another file covers, or another time")
    return _complete("each file belongs to one rank")


def _ranks(facts: Facts) -> Look:
    if facts.world_size is None:
        if facts.ranks == 1:
            return _missing("one rank; no file says how many there are")
        return _partial(f"{facts.ranks} ranks; no file says how many there are")
    if facts.ranks >= facts.world_size:
        return _complete(f"all {facts.ranks} ranks") if facts.ranks > 1 else _not_needed("the job has one rank")
    absent = sorted(set(range(facts.world_size)) - set(facts.present or []))
    listed = ", ".join(map(str, absent[:_MAX_LISTED])) + (", …" if len(absent) > _MAX_LISTED else "")
    return (_missing if facts.ranks == 1 else _partial)(f"{facts.ranks} of {facts.world_size} ranks; missing: {listed}")


def _steps(facts: Facts) -> Look:
    if not facts.marked_steps:
        return _missing("nothing marks training steps: the whole window stands for one")
    if facts.counted_steps:
        return _complete(
            f"{plural(facts.iterations, 'step')} marked by annotations that number them or enclose a batch each"
        )
    if not facts.profiler_steps:
        return _partial("steps are guessed from annotations or from the rhythm of collectives")
    return _complete(f"{plural(facts.iterations, 'step')} marked by the profiler")


def _iterations(facts: Facts) -> Look:
    warmup = f", {facts.warmup} warm-up left out" if facts.warmup else ""
    judged = f"{plural(facts.judged, 'iteration')} {'counts' if facts.judged == 1 else 'count'}"
    if not facts.judged:
        return _missing(f"none of {plural(facts.iterations, 'iteration')} counts{warmup}")
    if facts.judged < thresholds.ENOUGH_ITERATIONS:
        return _partial(f"{judged}{warmup}; rare delays need {thresholds.ENOUGH_ITERATIONS} or more")
    return _complete(f"{judged}{warmup}")


def _common_window(facts: Facts) -> Look:
    if facts.uncommon:
        verdict = _missing if facts.uncommon == facts.iterations else _partial
        was = "was" if facts.uncommon == 1 else "were"
        return verdict(f"{facts.uncommon} of {plural(facts.iterations, 'iteration')} {was} not recorded by all ranks")
    return _complete("all ranks recorded the same iterations")


def _devices(facts: Facts) -> Look:
    if facts.on_host:
        return _not_needed("the job communicates on the host (gloo)")
    return _counted(facts.device_ranks, facts.ranks, "rank", "with device activity")


def _communication(facts: Facts) -> Look:
    if facts.calls:
        return _complete(f"{plural(facts.calls, 'call')} of collectives")
    return _missing("no collective in the recorded window")


def _matching(facts: Facts) -> Look:
    share = facts.matched_share or 0.0
    verdict = _complete if share >= thresholds.LEAST_MATCHED_SHARE else _partial if facts.collectives else _missing
    return verdict(f"{format_share(share)} of the calls matched across ranks")


def _of_recorded(facts: Facts, part: int, what: str) -> Look:
    """By how many have it of the calls that PyTorch can record; the others no setting changes."""
    others = facts.calls - facts.recorded_calls
    of_others = f"{plural(others, 'call')} of libraries, or in CUDA graphs, that PyTorch does not record"
    if not facts.recorded_calls:
        return _not_needed(f"no profiler records more: {of_others}")
    found = _counted(part, facts.recorded_calls, "call", what)
    return Look(found.status, f"{found.evidence}, beside {of_others}") if others else found


def _groups(facts: Facts) -> Look:
    if facts.on_host and not facts.grouped:
        return _not_needed("gloo's host operations name no group; memberships were worked out from the list of groups")
    return _of_recorded(facts, facts.grouped, "with a process group stated")


def _sequence(facts: Facts) -> Look:
    if not facts.sequenced and (facts.matched_share or 0.0) >= thresholds.LEAST_MATCHED_SHARE:
        return _not_needed("no call is numbered, but order and overlap were enough to match them")
    return _of_recorded(facts, facts.sequenced, "with a sequence number")


def _sizes(facts: Facts) -> Look:
    found = _of_recorded(facts, facts.sized, "with a size stated")
    # A few calls without one change no answer; barriers have none.
    is_enough = facts.sized >= thresholds.LEAST_MATCHED_SHARE * facts.recorded_calls
    return _complete(found.evidence) if facts.sized and is_enough else found


def _clocks(facts: Facts) -> Look:
    if facts.unaligned:
        return _partial(f"{facts.unaligned} of {plural(facts.ranks, 'clock')} could not be aligned")
    if facts.residual_ns is not None and facts.iteration_ns:
        text = f"all clocks aligned within {format_ns(facts.residual_ns)}"
        is_fine = facts.residual_ns <= thresholds.MOST_RESIDUAL_SHARE * facts.iteration_ns
        return _complete(text) if is_fine else _partial(f"{text}, of iterations of {format_ns(facts.iteration_ns)}")
    return _complete("all clocks aligned")


def _nccl_log(facts: Facts) -> Look:
    if not facts.nccl_logs:
        return _missing("no NCCL log among the files")
    if not facts.nccl_links:
        return _partial(f"{plural(facts.nccl_logs, 'NCCL log')}, but without connections")
    return _complete(f"{plural(facts.nccl_logs, 'NCCL log')} with {plural(facts.nccl_links, 'connection')}")


def _nccl_choices(facts: Facts) -> Look:
    if not facts.nccl_choices:
        return _missing("no log or trace says which algorithm and protocol NCCL chose")
    return _complete(f"{plural(facts.nccl_choices, 'choice')} of algorithm and protocol")


def _telemetry(facts: Facts) -> Look:
    if not facts.telemetry_files:
        return _missing("no telemetry of devices among the files")
    return _counted(facts.telemetry_ranks, facts.ranks, "rank", "with readings of the device while it was traced")


def _execution_traces(facts: Facts) -> Look:
    if not facts.execution_traces:
        return _missing("no execution trace among the files")
    if facts.ranks and facts.linked_ranks < facts.ranks:
        return _partial(f"{facts.linked_ranks} of {plural(facts.ranks, 'rank')} with one that fits the timeline")
    return _complete(plural(facts.execution_traces, "execution trace"))


def _shapes(facts: Facts) -> Look:
    if facts.shaped < facts.ranks <= facts.linked_ranks:
        return _not_needed("the execution traces that fit the timelines state the shapes")
    return _counted(facts.shaped, facts.ranks, "rank", "recorded with shapes")


def _stacks(facts: Facts) -> Look:
    if facts.stacked:
        return _counted(facts.stacked, facts.ranks, "rank", "recorded with Python stacks")
    return _not_needed("worth recording (with_stack=True, in a run of its own) once the host is to blame")


def _whole_files(facts: Facts) -> Look:
    if facts.damage or facts.lost_events:
        lost = f"{plural(facts.lost_events, 'event')} lost" if facts.lost_events else "cut or repaired"
        return _partial(f"{lost} ({facts.damage}); see meta.issue")
    return _complete("nothing lost or repaired")


_SCHEDULE = "schedule=torch.profiler.schedule(wait=20, warmup=5, active=15, repeat=1)"

CHECKS = (
    Check("timeline", "Where does the time of an iteration go?", _needs_nothing, _timeline,
          "Record a timeline with torch.profiler on every rank.",
          'torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler("traces"))'),
    Check("rank_known", "Which file belongs to which rank?", _needs_nothing, _rank_known,
          "Start the profiler after init_process_group, one file a rank and recording; or name files by rank.",
          'torch.profiler.tensorboard_trace_handler("traces", worker_name=f"rank{torch.distributed.get_rank()}")'),
    Check("all_ranks", "Who waits for whom?", _needs_ranks, _ranks,
          "Profile on every rank in the same steps, not on rank 0 alone: being late is a comparison between ranks.",
          "profiler = torch.profiler.profile(...)  # without `if rank == 0`"),
    Check("steps", "How long is an iteration, and which are alike?", _needs_ranks, _steps,
          "Mark the steps: call step() of the profiler once an iteration; under Nsight Systems, an NVTX range each.",
          'profiler.step()  # or: with torch.cuda.nvtx.range(f"step {n}"):'),
    Check("iterations", "Is it a rule or an accident?", _needs_ranks, _iterations,
          "Record ten or more steps after warm-up.", _SCHEDULE),
    Check("common_window", "Do all ranks show the same iterations?", _needs_several_ranks, _common_window,
          "Start and stop by step number, not by time, with the same schedule on every rank.", _SCHEDULE),
    Check("devices", "What did the devices do?", _needs_ranks, _devices,
          "Record device activity beside the host's.",
          "activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]"),
    Check("communication", "What does communication cost?", _needs_ranks, _communication,
          "Record steps that exchange gradients, not only steps of gradient accumulation.", _SCHEDULE),
    Check("matching", "Which calls of different ranks are one collective?", _needs_calls_of_several, _matching,
          "Record all ranks of each group in the same steps; PyTorch 2.4 names groups, 2.12 numbers calls.",
          "pip install 'torch>=2.12'"),
    Check("clocks", "How far apart are the clocks?", _needs_several_ranks, _clocks,
          "Record ten or more collectives that all ranks share: their common ends align the clocks. Those of gloo end "
          "milliseconds apart, and more of them help little.", _SCHEDULE),
    Check("process_groups", "Which communicator is it: data, tensor or pipeline parallel?", _needs_calls, _groups,
          "PyTorch 2.4 or later names the process group of each call; give groups a description.",
          'torch.distributed.new_group(ranks, group_desc="dp")'),
    Check("sequence_numbers", "Are calls matched beyond doubt?", _needs_calls_of_several, _sequence,
          "PyTorch 2.12 or later numbers each call in its group.", "pip install 'torch>=2.12'"),
    Check("sizes", "How fast is each transfer for its size?", _needs_calls,
          _sizes,
          "PyTorch 2.4 or later writes sizes with the arguments of collectives; earlier, use record_shapes=True.",
          "pip install 'torch>=2.4'"),
    Check("whole_files", "Are the files whole?", _needs_nothing, _whole_files,
          "Let the profiler finish: stop it before the process ends, write to a local disk, and copy afterwards.",
          "profiler.stop()  # before torch.distributed.destroy_process_group()"),
    Check("nccl_log", "Which path do the bytes take (NVLink, NIC, sockets)?", _needs_nccl, _nccl_log,
          "Let NCCL write its log beside the traces; it costs little.",
          NCCL_LOG),
    Check("nccl_choices", "Which algorithm and protocol carried each collective?", _needs_nccl, _nccl_choices,
          "Add TUNING to the subsystems of the log (one line a call and size).",
          NCCL_TUNING),
    Check("telemetry", "Was a device slowed down by heat or power?", _needs_devices, _telemetry,
          "On NVIDIA's GPUs let nvidia-smi run beside the job, ten times a second, a file a host; of others only "
          "what Prometheus kept is read.",
          TELEMETRY),
    Check("hosts", "Is it one rank, or all of its host?", _needs_ranks,
          lambda facts: _counted(facts.ranks - facts.hostless, facts.ranks, "rank", "whose host is known"),
          "Keep the handler's own file names (they begin with the host), or use PyTorch 2.13, which states it.",
          'torch.profiler.tensorboard_trace_handler("traces")'),
    Check("execution_traces", "What depends on what, with which shapes?", _needs_nothing, _execution_traces,
          "Record an execution trace beside the timeline.",
          "torch.profiler.profile(..., execution_trace_observer=torch.profiler.ExecutionTraceObserver()"
          '.register_callback(f"traces/rank{rank}.et.json"))'),
    Check("shapes", "Do ranks compute on equal work?", _needs_ranks,
          _shapes,
          "Record the shapes of operators.", "record_shapes=True"),
    Check("stacks", "Which line of the program is it?", _needs_ranks, _stacks,
          "Record Python stacks, in a run of its own: they slow the host down.", "with_stack=True"),
)  # fmt: skip
"""All checks in order of value."""
