"""Whether the operation is named that one rank runs more of: `python -m tests.accuracy.added_work [--first SEED]`.

In: the first seed and how many jobs. Out: ADDED_WORK.md, and 1 where the operation is named too seldom. Jobs are made
of stories (`tests.given`): each iteration runs some operations on 4 or 8 ranks, which then reduce together; times of
calls scatter by 2 to 6 %, those of an iteration by as much again. One rank calls an operation more often, gives it more
to do, or runs one that no other has, for 4 to 25 % of the iteration; or all that it computes is slower, where no work
is added and none must be claimed. Not handled: host work, and work that is added to some iterations.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.given import US, Trace, built, store_of
from traceforge.store.database import Store

TABLE = Path(__file__).with_name("ADDED_WORK.md")
FIRST, CASES, ASKED_SHARE = 31_000, 80, 0.95
KINDS = ("more calls", "more in a call", "an operation of its own", "slower alone")
_OPERATIONS = (
    ("aten::mm", "gemm", [[1024, 1024], [1024, 1024]]),
    ("aten::addmm", "addmm_gemm", [[512], [2048, 512], [512, 512]]),
    ("aten::_softmax", "softmax_warp_forward", [[4096, 1024], [], []]),
    ("aten::native_layer_norm", "layer_norm_kernel", [[4096, 1024], [], [1024], [1024], []]),
    ("aten::gelu", "gelu_kernel", [[4096, 4096], []]),
    ("aten::copy_", "direct_copy_kernel", [[4096, 1024], [4096, 1024], []]),
)
_OWN = ("aten::cumsum", "cumsum_kernel", [[4096, 1024], [], []])
_EXPECTED = dict(zip(KINDS, ("more_work", "more_work", "new_operation"), strict=False))
_CALL_NS, _TRANSFER_NS = 400 * US, 200 * US
_TOLD = """
SELECT f.subject_kind = 'rank' AND f.subject = $1 AS is_rank, d.kind, d.name, d.explains
FROM attribute.finding AS f
LEFT JOIN attribute.finding_difference AS d ON d.run_id = f.run_id AND d.finding_id = f.finding_id AND d.place = 1
WHERE f.confidence IN ('high', 'medium')
ORDER BY f.finding_id
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One job: who runs more of what, drawn from a seed."""

    seed: int
    kind: str
    ranks: int
    iterations: int
    culprit: int
    place: int
    share: float
    calls: tuple[int, ...]
    scatter: float

    @property
    def step_ns(self) -> int:
        """What an iteration computes on a healthy rank."""
        return sum(self.calls) * _CALL_NS

    @property
    def operation(self) -> str:
        """Name of the operation that is run more; of a slow rank any may be named."""
        return _OWN[0] if self.kind == KINDS[2] else _OPERATIONS[self.place][0]


def job_of(seed: int) -> Job:
    """The job of a seed; kinds take turns."""
    draw = np.random.default_rng(seed)
    ranks = int(draw.choice([4, 8]))
    calls = tuple(int(count) for count in draw.integers(2, 7, len(_OPERATIONS)))
    return Job(
        seed, KINDS[seed % len(KINDS)], ranks, int(draw.integers(12, 25)), int(draw.integers(ranks)),
        int(draw.integers(len(_OPERATIONS))), float(draw.uniform(0.04, 0.25)), calls, float(draw.uniform(0.02, 0.06)),
    )  # fmt: skip


def traces_of(job: Job) -> list[Trace]:
    """The traces of all ranks."""
    draw = np.random.default_rng([job.seed, 1])
    traces, now = [Trace(rank) for rank in range(job.ranks)], 0
    for iteration in range(job.iterations):
        common = float(draw.lognormal(0, job.scatter))
        lasting = [_work(job, trace, now, common, draw) for trace in traces]
        end = now + max(lasting) + _TRANSFER_NS
        for trace, own in zip(traces, lasting, strict=True):
            trace.step(iteration, now, end).collective(now + own, end)
        now = end
    return traces


def _work(job: Job, trace: Trace, start_ns: int, common: float, draw: np.random.Generator) -> int:
    """The calls of one rank and iteration one after the other; returns how long they last, ns."""
    is_culprit, extra_ns, lasting = trace.rank == job.culprit, job.share * job.step_ns, 0
    issued = start_ns
    for place, (name, kernel, shapes) in enumerate(_OPERATIONS):
        count, each, dims = job.calls[place], 1.0, shapes
        if is_culprit and place == job.place and job.kind == KINDS[0]:
            count += max(1, round(extra_ns / _CALL_NS))
        if is_culprit and place == job.place and job.kind == KINDS[1]:
            each = 1 + extra_ns / (count * _CALL_NS)
            dims = [[round(shapes[0][0] * each), *shapes[0][1:]], *shapes[1:]]
            if name == "aten::addmm":
                dims = [shapes[0], [round(shapes[1][0] * each), shapes[1][1]], shapes[2]]
        if is_culprit and job.kind == KINDS[3]:
            each = 1 + job.share
        for _ in range(count):
            own = round(_CALL_NS * each * common * float(draw.lognormal(0, job.scatter)))
            trace.operation(name, issued, issued + 2 * US, dims, ["c10::Half"] * len(dims))
            trace.kernel(start_ns + lasting, start_ns + lasting + own, kernel, launch_ns=issued + 1)
            lasting, issued = lasting + own, issued + 3 * US
    if is_culprit and job.kind == KINDS[2]:
        name, kernel, shapes = _OWN
        own = round(extra_ns * common)
        trace.operation(name, issued, issued + 2 * US, shapes, ["c10::Half"] * len(shapes))
        trace.kernel(start_ns + lasting, start_ns + lasting + own, kernel, launch_ns=issued + 1)
        lasting += own
    return lasting


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of a job: whether its rank came first, and the largest difference that explains it."""

    job: Job
    is_rank: bool
    kind: str | None
    name: str | None

    @property
    def is_named(self) -> bool:
        """Whether the operation is named, and why it takes longer."""
        if self.job.kind == KINDS[3]:
            return self.is_rank and self.kind in (None, "slower_execution")
        return self.is_rank and (self.name, self.kind) == (self.job.operation, _EXPECTED[self.job.kind])


def answer_of(job: Job) -> Answer:
    """What the run's own finding says."""
    store: Store = built(store_of(*traces_of(job)), "attribute")
    found = store.rows(_TOLD, [str(job.culprit)])
    if not found:
        return Answer(job, False, None, None)
    is_rank, kind, name, explains = found[0]
    return Answer(job, bool(is_rank), kind if explains else None, name if explains else None)


def table(answers: list[Answer], first: int) -> str:
    """The page."""
    lines = [
        "# Whether the operation is named that a rank runs more of",
        "",
        f"Made by `python -m tests.accuracy.added_work --first {first} --cases {len(answers)}`, which tells what the",
        "jobs are; no seed was used before. Named: the first finding is about the rank, and its largest difference is",
        "of the right operation and kind (of a rank that is slower throughout: nothing, or slower execution, but no",
        "more work).",
        "",
        "| what is different | jobs | rank comes first | operation named |",
        "|---|---|---|---|",
    ]
    for kind in KINDS:
        own = [one for one in answers if one.job.kind == kind]
        ranks, named = sum(one.is_rank for one in own), sum(one.is_named for one in own)
        lines.append(f"| {kind} | {len(own)} | {ranks} | {named} |")
    wrong = [one for one in answers if not one.is_named]
    lines += ["", "Not named:" if wrong else "All are named.", ""]
    lines += [
        f"- seed {one.job.seed}, {one.job.kind} of {one.job.operation} ({one.job.share:.1%} of the step, scatter "
        f"{one.job.scatter:.1%}): {'rank first' if one.is_rank else 'rank not first'}, {one.kind} {one.name}"
        for one in wrong
    ]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Judge so many jobs and keep the page; 1 where too few are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=FIRST, help="first seed")
    parser.add_argument("--cases", type=int, default=CASES, help="how many jobs")
    options = parser.parse_args()
    answers = [answer_of(job_of(options.first + number)) for number in range(options.cases)]
    page = table(answers, options.first)
    if (options.first, options.cases) == (FIRST, CASES):
        TABLE.write_text(page, encoding="utf-8")
    print(page)
    added = Counter(one.is_named for one in answers if one.job.kind != KINDS[3])
    return 0 if added[True] >= ASKED_SHARE * sum(added.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
