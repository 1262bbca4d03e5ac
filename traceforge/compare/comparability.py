"""May two runs be compared at all? In: what both say of themselves. Out: objections, each by the name of a field.

Refused is what makes every row meaningless: another number of ranks, or no judged iteration. What explains a change or
touches some rows only (other collectives, types, devices, versions) is a warning: it may be the very change that is
looked for. Not seen: the batch size per rank and the model, which traces do not state.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from traceforge.compare.asked import Row, Side
from traceforge.stats import LEAST_COUNT
from traceforge.thresholds import compare as thresholds

_SAME = ("backend", "nccl_version", "device", "dtype", "reference")
_WHY = {
    "backend": "the communication library differs",
    "nccl_version": "NCCL differs, and with it algorithms and their tuning",
    "device": "the devices differ",
    "dtype": "collectives carry other element types",
    "reference": "delays are counted above other durations: compare phases, not causes (--reference)",
}


@dataclass(frozen=True, slots=True)
class Objection:
    """Why the runs are not, or not fully, comparable.

    Attributes:
        field: such as `world_size`.
        before, after: what the runs say of it.
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
    """What a run says of itself; None where it does not. `calls` is collectives an iteration by op, size and ranks."""

    run_name: str
    world_size: int | None
    ranks: int
    hosts: int
    iterations: int
    backend: str | None
    nccl_version: str | None
    device: str | None
    dtype: str | None
    residual_ns: int
    reference: str
    calls: Mapping[str, float]

    @property
    def calls_by_op(self) -> dict[str, float]:
        """Collectives an iteration by operation alone."""
        result: dict[str, float] = {}
        for name, calls in self.calls.items():
            op = name.partition("/")[0]
            result[op] = result.get(op, 0.0) + calls
        return result


def job_facts(side: Side) -> JobFacts:
    """What a run says of itself."""
    row: Row = side.rows("job")[0]
    return JobFacts(**row, calls={call["name"]: call["calls"] for call in side.rows("calls")})


def objections(before: JobFacts, after: JobFacts) -> list[Objection]:
    """Everything that speaks against comparing two runs, refusals first."""
    return [*_refusals(before, after), *_warnings(before, after)]


def _refusals(before: JobFacts, after: JobFacts) -> list[Objection]:
    found = []
    if not before.iterations or not after.iterations:
        why = (
            "a run without judged iterations (no steps marked, all warm-up, or no rank recorded) has no time to compare"
        )
        found.append(Objection("iterations", str(before.iterations), str(after.iterations), why, True))
    sizes = before.world_size or before.ranks, after.world_size or after.ranks
    if sizes[0] != sizes[1]:
        why = "another number of ranks is another job: its collectives and its share of work differ"
        found.append(Objection("world_size", str(sizes[0]), str(sizes[1]), why, True))
    elif before.ranks != after.ranks:
        why = "not the same ranks were recorded: phases are means over those that were"
        found.append(Objection("ranks", str(before.ranks), str(after.ranks), why, False))
    return found


def _warnings(before: JobFacts, after: JobFacts) -> list[Objection]:
    found = []
    if (few := min(before.iterations, after.iterations)) and few < LEAST_COUNT:
        why = f"below {LEAST_COUNT} iterations scatter cannot be told: no change is called significant"
        found.append(Objection("iterations", str(before.iterations), str(after.iterations), why, False))
    ops = before.calls_by_op, after.calls_by_op
    if set(ops[0]) != set(ops[1]):
        why = "other kinds of collectives: the program differs, and so may its work"
        found.append(
            Objection("op_mix", ", ".join(sorted(ops[0])) or "none", ", ".join(sorted(ops[1])) or "none", why, False)
        )
    counts = sum(ops[0].values()), sum(ops[1].values())
    if abs(counts[0] - counts[1]) > thresholds.COMPARABLE_SHARE * max(counts):
        why = "collectives are cut otherwise (buckets, fusion): compare their sums, not single classes"
        found.append(Objection("collectives", f"{counts[0]:.4g}", f"{counts[1]:.4g}", why, False))
    elif set(before.calls) != set(after.calls):
        only = len(set(before.calls) ^ set(after.calls))
        why = f"{only} classes of op, size and ranks exist in one run only: they appear as new or gone"
        found.append(Objection("size_classes", str(len(before.calls)), str(len(after.calls)), why, False))
    for field in _SAME:
        values = getattr(before, field), getattr(after, field)
        if None not in values and values[0] != values[1]:
            found.append(Objection(field, values[0], values[1], _WHY[field], False))
    return found
