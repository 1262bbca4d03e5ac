"""Whether two runs can be compared. In: facts of both jobs. Out: objections, each by the name of a field.

A comparison is refused where every row would be meaningless: different numbers of ranks, or no judged iteration. A
difference that explains a change or affects some rows only (collectives, types, devices, versions) is a warning: it may
be the very change one looks for. Not handled: the batch size per rank, which traces do not state, nor the model: it is
known by what it runs and sends alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traceforge.compare.operation_changes import OperationChange
from traceforge.compare.sides import Row, Side
from traceforge.stats import LEAST_COUNT
from traceforge.thresholds import compare as thresholds
from traceforge.units import format_bytes

_WHY = {
    "hosts": "the ranks are spread over another number of hosts, so that other paths carry the same bytes",
    "backend": "the communication library differs",
    "nccl_version": "NCCL differs, and with it algorithms and their tuning",
    "device": "the devices differ",
    "dtype": "the element types of collectives differ",
    "reference": "delays are measured against different references: compare phases, not causes (--reference)",
}


@dataclass(frozen=True, slots=True)
class Objection:
    """Why the runs are not, or not fully, comparable.

    Attributes:
        field: such as `world_size`.
        before, after: its values.
        why: what it means for the comparison.
        is_refusal: whether no comparison should be made at all.
    """

    field: str
    before: str
    after: str
    why: str
    is_refusal: bool


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts of a job; None where no trace states them.

    Attributes:
        overlapping_ns: mean time from the start of an iteration to that of the next, ns, where they overlap: what one
            takes of the job's time, less than it lasts. None where they do not overlap.
        is_split: whether waiting and transfer are told apart (see timeline.coverage).
        calls: collectives of a rank per iteration, by op, size and ranks.
        size_bytes: bytes of all these; None where the size of some is not known.
    """

    run_name: str
    world_size: int | None
    ranks: int
    hosts: int | None
    iterations: int
    backend: str | None
    nccl_version: str | None
    device: str | None
    dtype: str | None
    residual_ns: int
    is_split: bool | None
    overlapping_ns: int | None
    reference: str
    calls: Mapping[str, float]
    size_bytes: float | None = None

    @property
    def calls_by_op(self) -> dict[str, float]:
        """Collectives of a rank per iteration, by operation."""
        result: dict[str, float] = {}
        for name, calls in self.calls.items():
            op = name.partition("/")[0]
            result[op] = result.get(op, 0.0) + calls
        return result


def job_facts(side: Side) -> JobFacts:
    """The facts of one side."""
    row: Row = side.rows("job")[0]
    calls = side.rows("calls")
    sizes = [call["size_bytes"] for call in calls]
    known = float(sum(sizes)) if sizes and None not in sizes else None
    return JobFacts(**row, calls={call["name"]: call["calls"] for call in calls}, size_bytes=known)


def other_program(work: Sequence[OperationChange]) -> list[Objection]:
    """The reason against comparing runs most of whose work the other one does not do; nothing where they share it."""
    own = [one for one in work if one.level == "operation"]
    only = [[one for one in own if one.kind == kind] for kind in ("gone", "new")]
    apart = sum(one.before_ns + one.after_ns for side in only for one in side)
    if apart <= thresholds.OTHER_PROGRAM_SHARE * sum(one.before_ns + one.after_ns for one in own):
        return []
    why = "most work is in operations that only one run has: another model, compiler or program; compare the totals"
    before, after = (f"{len(side)} of its own" for side in only)
    return [_objection("operations", before, after, why)]


def objections(before: JobFacts, after: JobFacts) -> list[Objection]:
    """All reasons against comparing two runs, refusals first."""
    return [*_refusals(before, after), *_warnings(before, after)]


def _refusals(before: JobFacts, after: JobFacts) -> list[Objection]:
    found = []
    if not before.iterations or not after.iterations:
        why = "a run without judged iterations (no steps marked, only warm-up, or no rank recorded) has no times"
        found.append(_objection("iterations", before.iterations, after.iterations, why, is_refusal=True))
    sizes = before.world_size or before.ranks, after.world_size or after.ranks
    if sizes[0] != sizes[1]:
        why = "a different number of ranks is a different job: its collectives and its share of work differ"
        found.append(_objection("world_size", *sizes, why, is_refusal=True))
    elif before.ranks != after.ranks:
        why = "different ranks were recorded: phases are means over those that were"
        found.append(_objection("ranks", before.ranks, after.ranks, why))
    return found


def _warnings(before: JobFacts, after: JobFacts) -> list[Objection]:
    found = []
    if (few := min(before.iterations, after.iterations)) and few < LEAST_COUNT:
        why = f"below {LEAST_COUNT} iterations the scatter is unknown: no change is called significant"
        found.append(_objection("iterations", before.iterations, after.iterations, why))
    if False in (before.is_split, after.is_split):
        why = "members of collectives have no trace: waiting and transfer are compared together, as communication"
        words = {True: "measured", False: "not measured", None: "unknown"}
        found.append(_objection("waiting", words[before.is_split], words[after.is_split], why))
    ops = before.calls_by_op, after.calls_by_op
    if set(ops[0]) != set(ops[1]):
        why = "the kinds of collectives differ: so does the program, and maybe its work"
        mixes = [", ".join(sorted(calls)) or "none" for calls in ops]
        found.append(_objection("op_mix", mixes[0], mixes[1], why))
    counts = sum(ops[0].values()), sum(ops[1].values())
    if abs(counts[0] - counts[1]) > thresholds.COMPARABLE_SHARE * max(counts):
        why = "collectives are split differently (buckets, fusion): compare their sums, not single classes"
        found.append(_objection("collectives", f"{counts[0]:.4g}", f"{counts[1]:.4g}", why))
    elif set(before.calls) != set(after.calls):
        only = len(set(before.calls) ^ set(after.calls))
        why = f"{only} classes of op, size and ranks exist in one run only: they appear as new or gone"
        found.append(_objection("size_classes", len(before.calls), len(after.calls), why))
    sent, later = before.size_bytes or 0.0, after.size_bytes or 0.0
    if min(sent, later) and abs(sent - later) > thresholds.OTHER_SIZE_SHARE * max(sent, later):
        why = "ranks send another amount: another model, precision or way to shard it, unless that is the change"
        found.append(_objection("bytes", format_bytes(sent), format_bytes(later), why))
    for field, why in _WHY.items():
        values = getattr(before, field), getattr(after, field)
        if None not in values and values[0] != values[1]:
            found.append(_objection(field, *values, why))
    return found


def _objection(field: str, before: object, after: object, why: str, *, is_refusal: bool = False) -> Objection:
    return Objection(field, str(before), str(after), why, is_refusal)
