"""Remove a kind of excess: work of one phase or host activity never takes longer than the reference of its place.

`kind` is a phase (compute, copy, input, runtime, idle) or a host activity as in graph.work; all ranks, or one.
"""

from collections.abc import Sequence
from types import MappingProxyType

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, place_of_rank
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    kind = str(settings["kind"])
    kinds = [k for k, names in enumerate(job.model.kinds) if kind in names]
    if not kinds:
        known = sorted({name for names in job.model.kinds for name in names if name})
        raise UsageError(f"no work of kind `{kind}` in this run", hint=f"kinds are: {', '.join(known)}")
    rank = float(settings["rank"])
    return job.without_excess(kinds=kinds, ranks=None if rank < 0 else [place_of_rank(job, rank)])


def _usual(job: EditedJob) -> Sequence[Settings]:
    phases = sorted({phase for phase, _ in job.model.kinds} & {"compute", "input", "runtime"})
    return [{"kind": phase, "rank": -1.0} for phase in phases]


EDIT = Edit(
    "remove_excess",
    "Work of one phase or host activity never exceeds the median over ranks of the same place; rank -1 means all.",
    MappingProxyType({"kind": "runtime", "rank": -1.0}),
    _apply,
    _usual,
)
