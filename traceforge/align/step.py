"""Training steps of each rank. Reads raw events by class and align.call; fills align.step.

Where the trace does not mark steps, something else repeats once a step: an annotation, the optimizer, the sequence of
collectives or that of the kernels. Each is tried on all ranks of a run together and used only if they agree on the
number of steps, or meet in some, because the steps of one rank alone compare to nothing. Where only some ranks mark
steps, the others take theirs. Calls before the first and after the last step make a partial one.
Not handled: windows of the ranks that begin in different steps, where their clocks differ by half a step.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import polars as pl

from traceforge.align.common_steps import by_period, in_common, take_turns
from traceforge.align.kernel_turns import are_parts, calls_a_turn, with_turns
from traceforge.align.marked_peer import steps_of_peers
from traceforge.align.period import period_of
from traceforge.align.rank_trace import MOST_DIGITS, NUMBER, Annotation, RankTrace, Step, Steps, between
from traceforge.align.step_numbers import with_common_numbers
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds
from traceforge.units import format_share, plural
from traceforge.vocabulary import vocabulary

_RANKS = "SELECT run_id, rank, raw_first_ns, raw_last_ns, raw_intact_ns FROM align.rank ORDER BY run_id, rank"

# The profiler's own steps, and where they do not decide, annotations of the host that occur more than twice, or that
# stand around an inference engine's batches.
_ANNOTATIONS = """
WITH annotation AS (
  SELECT r.rank, e.name, c.class, e.raw_start_ns, e.raw_start_ns + e.duration_ns AS raw_end_ns
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE r.run_id = $1 AND e.phase = 'X' AND e.duration_ns > 0 AND e.raw_start_ns IS NOT NULL
    AND (
      c.class = 'iteration' OR ($2 AND c.class = 'annotation' AND c.canonical_category = 'user_annotation')
      OR ($2 AND STARTS_WITH(e.name, 'Optimizer.step') AND c.canonical_category IN ('user_annotation', 'cpu_op'))
    )
)
SELECT rank, name, class, raw_start_ns, raw_end_ns
FROM annotation
QUALIFY class = 'iteration' OR COUNT(*) OVER (PARTITION BY rank, REGEXP_REPLACE(name, '[0-9]+', '#')) > 2
  OR REGEXP_MATCHES(name, $3)
ORDER BY rank, raw_start_ns, raw_end_ns DESC, name
"""

_CALLS = """
SELECT rank, COALESCE(op, '') || ':' || COALESCE(CAST(size_bytes AS VARCHAR), '') AS token, raw_issue_ns,
  raw_arrival_ns, COALESCE(process_group_name, '') || ':' || CAST(stated_sequence AS VARCHAR) AS name
FROM align.call WHERE run_id = ? AND is_linked AND is_intact ORDER BY rank, call_id
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "iteration": pl.Int32,
    "raw_start_ns": pl.Int64,
    "raw_end_ns": pl.Int64,
    "origin": pl.String,
    "is_marked": pl.Boolean,
    "is_whole": pl.Boolean,
    "annotation": pl.String,
}

_OPTIMIZER = "Optimizer.step"
_LOOK_AT_KERNELS = frozenset({"collective_period", "window"})
_INFERRED_FROM = {
    "annotation": "an annotation that repeats",
    "optimizer": "Optimizer.step",
    "collective_period": "the period of the collectives",
    "kernel_period": "the period of the device's kernels",
}


def rows(store: Store) -> pl.DataFrame:
    """One row a step of each rank; adds an issue where steps had to be inferred."""
    result: list[tuple[object, ...]] = []
    for (run_key,), ranks in store.query(_RANKS).group_by("run_id", maintain_order=True):
        run_id = int(str(run_key))
        traces = _read(store, run_id, ranks, marked_only=True)
        if not all(map(_profiler_steps, traces.values())):
            traces = _read(store, run_id, ranks, marked_only=False)
        origin, steps = steps_of_run(traces)
        if origin in _LOOK_AT_KERNELS:
            traces = {rank: with_turns(store, run_id, rank, trace) for rank, trace in traces.items()}
            origin, steps = steps_of_run(traces)
        if origin == "profiler_step":
            steps = with_common_numbers(store, run_id, steps)
        for rank, found in steps.items():
            is_marked = origin != "window"
            result += [
                (
                    run_id, rank, s.iteration, s.start_ns, s.end_ns, "peer" if s.is_from_peer else origin, is_marked,
                    s.is_whole, s.annotation,
                )
                for s in found
            ]  # fmt: skip
        peers = sum(any(step.is_from_peer for step in found) for found in steps.values())
        if peers:
            store.append("meta.issue", issue_rows(run_id, None, "align", [_from_peers(peers)]))
        if origin in _INFERRED_FROM:
            batches = Counter(step.annotation for of_rank in steps.values() for step in of_rank if step.annotation)
            store.append("meta.issue", issue_rows(run_id, None, "align", [_unmarked(origin, batches)]))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _read(store: Store, run_id: int, ranks: pl.DataFrame, *, marked_only: bool) -> dict[int, RankTrace]:
    """What is known of each rank.

    Args:
        ranks: rows of align.rank.
        marked_only: leave out all that only matters where nothing marks steps.
    """
    annotations: dict[int, list[Annotation]] = defaultdict(list)
    calls: dict[int, list[tuple[str, int]]] = defaultdict(list)
    intact = {rank: intact_ns for _, rank, *_, intact_ns in ranks.iter_rows()}
    batches = "|".join(vocabulary().inference_steps.values())
    found = store.query(_ANNOTATIONS, [run_id, not marked_only, batches])
    for rank, name, event_class, start_ns, end_ns in found.iter_rows():
        if (until_ns := intact[rank]) is None or end_ns <= until_ns:
            annotations[rank].append(Annotation(name, event_class == "iteration", start_ns, end_ns))
    arrivals: dict[int, list[int]] = defaultdict(list)
    names: dict[int, list[str | None]] = defaultdict(list)
    for rank, token, issue_ns, arrival_ns, name in [] if marked_only else store.query(_CALLS, [run_id]).iter_rows():
        calls[rank].append((token, issue_ns))
        arrivals[rank].append(arrival_ns)
        names[rank].append(name)
    return {
        rank: RankTrace(
            first_ns or 0,
            (last_ns or 0) if intact_ns is None else intact_ns,
            annotations[rank],
            calls[rank],
            is_truncated=intact_ns is not None,
            arrivals_ns=sorted(arrivals[rank]),
            names=names[rank],
        )
        for _, rank, first_ns, last_ns, intact_ns in ranks.iter_rows()
    }


def steps_of_run(traces: Mapping[int, RankTrace]) -> tuple[str, dict[int, Steps]]:
    """How the steps of a run are known, and the steps of each rank."""
    numbered = {rank: _profiler_steps(trace) for rank, trace in traces.items()}
    marked = {rank: numbered[rank] or steps for rank, steps in (numbered | steps_of_peers(traces, numbered)).items()}
    is_marked = any(numbered.values())
    if not (is_marked and all(marked[rank] for rank in _decisive(traces))):
        inferred = _inferred(traces)
        if inferred is not None:
            return inferred
    windows = {rank: _window(trace) for rank, trace in traces.items() if not (is_marked and trace.is_truncated)}
    if is_marked:
        return "profiler_step", {rank: steps or windows.get(rank, []) for rank, steps in marked.items()}
    return "window", windows


def _inferred(traces: Mapping[int, RankTrace]) -> tuple[str, dict[int, Steps]] | None:
    """Steps of all ranks from what repeats; None where nothing does."""
    for name in _common_names(traces):
        found = {rank: _annotated(trace, name) for rank, trace in traces.items()}
        if _agree(traces, found) or _share_numbers(traces, found, name):
            return "annotation", _whole(traces, found)
    for origin, way in _WAYS.items():
        steps = _common(traces, way(traces))
        if steps is not None and not _are_parts(origin, traces, steps):
            return origin, _whole(traces, steps)
    return None


def _are_parts(origin: str, traces: Mapping[int, RankTrace], steps: Mapping[int, Steps]) -> bool:
    """Whether what was found are parts of steps: micro-batches, layers, or the optimizers of several models."""
    if origin == "optimizer":
        return all(take_turns(trace, steps[rank]) for rank, trace in _decisive(traces).items())
    return are_parts(traces, steps)


def _common(traces: Mapping[int, RankTrace], found: Mapping[int, Steps]) -> Mapping[int, Steps] | None:
    """The steps where all ranks agree on them, or meet in some; None where they do not."""
    return found if _agree(traces, found) else in_common(found, list(_decisive(traces)))


def _whole(traces: Mapping[int, RankTrace], found: Mapping[int, Steps]) -> dict[int, Steps]:
    return {rank: _with_ends(traces[rank], steps) for rank, steps in found.items() if steps}


def _agree(traces: Mapping[int, RankTrace], found: Mapping[int, Steps]) -> bool:
    """Whether all ranks have equally many steps; a truncated file may hold fewer, counted from the same first one."""
    most = max((len(steps) for steps in found.values()), default=0)
    return most >= thresholds.LEAST_STEPS and all(len(found[rank]) == most for rank in _decisive(traces))


def _share_numbers(traces: Mapping[int, RankTrace], found: Mapping[int, Steps], name: str) -> bool:
    """Whether steps that count themselves (`step 7`) have numbers in common: windows may be cut elsewhere."""
    decisive = _decisive(traces)
    if not all(any(a.pattern == name and not a.batch for a in traces[rank].annotations) for rank in decisive):
        return False
    numbers = [{step.iteration for step in found[rank]} for rank in decisive]
    return bool(numbers) and len(set.intersection(*numbers)) >= thresholds.LEAST_STEPS


def _decisive(traces: Mapping[int, RankTrace]) -> Mapping[int, RankTrace]:
    """Those of which nothing is missing; the longest where all are truncated."""
    whole = {rank: trace for rank, trace in traces.items() if not trace.is_truncated}
    return whole or dict(sorted(traces.items(), key=lambda one: len(one[1].calls))[-1:])


def _with_ends(trace: RankTrace, steps: Steps) -> Steps:
    """The steps with those that the window cuts, where calls lie before the first step or after the last.

    A first or last step is whole if it holds as many collective calls as the median step does.
    """
    issued = sorted(issue_ns for _, issue_ns in trace.calls)
    if not issued:
        return steps
    found = list(steps)
    if issued[0] < steps[0].start_ns:
        found.insert(0, Step(steps[0].iteration - 1, min(trace.first_ns, issued[0]), steps[0].start_ns))
    if issued[-1] >= steps[-1].end_ns and not trace.is_truncated:
        found.append(Step(steps[-1].iteration + 1, steps[-1].end_ns, max(trace.last_ns, issued[-1] + 1)))
    counts = [bisect_left(issued, step.end_ns) - bisect_left(issued, step.start_ns) for step in found]
    typical = sorted(counts)[len(counts) // 2]
    ends = (found[0].iteration, found[-1].iteration)
    return [
        replace(step, is_whole=step.is_whole and (step.iteration not in ends or count >= typical))
        for step, count in zip(found, counts, strict=True)
    ]


def _profiler_steps(trace: RankTrace) -> Steps:
    """Each number once, at its first occurrence."""
    found: dict[int, Step] = {}
    for annotation in trace.annotations:
        if annotation.is_profiler_step:
            digits = "".join(filter(str.isdigit, annotation.name))
            if len(digits) <= MOST_DIGITS:
                found.setdefault(int(digits), Step(int(digits), annotation.start_ns, annotation.end_ns))
    return sorted(found.values(), key=lambda step: step.start_ns)


def _common_names(traces: Mapping[int, RankTrace]) -> list[str]:
    """Names that every rank has, with and without their number: batches first, then what covers most time."""
    covered: dict[str, int] = defaultdict(int)
    for annotation in (one for trace in traces.values() for one in trace.annotations):
        for name in annotation.names:
            covered[name] += annotation.end_ns - annotation.start_ns
    names = [{name for one in trace.annotations for name in one.names} for trace in _decisive(traces).values()]
    shared = set.intersection(*names) if names else set()
    return sorted(shared, key=lambda name: (name not in vocabulary().inference_steps, -covered[name], name))


def _annotated(trace: RankTrace, name: str) -> Steps:
    """Occurrences of an annotation, if they follow one another and fill most of the time, or issue nearly all calls.

    A host that replays graphs is done long before its device. Those that count (`step 7`, `step 8`) do so without a
    gap: what counts anew in each step is a layer or a bucket. Batches of an inference engine need only follow one
    another: requests come when they come, and calls within a graph are not recorded.
    """
    found = [a for a in trace.annotations if name in a.names]
    is_batch = name in vocabulary().inference_steps
    numbers = [a.number for a in found] if found and found[0].pattern == name and not is_batch else []
    if not found or any(later != earlier + 1 for earlier, later in pairwise(numbers)):
        return []
    inside = sum(a.end_ns - a.start_ns for a in found)
    apart = all(later.start_ns >= earlier.end_ns for earlier, later in pairwise(found))
    fills = inside >= thresholds.LEAST_FILLED_SHARE * (found[-1].end_ns - found[0].start_ns)
    if not apart or not (is_batch or fills or _issue_calls(trace, found)):
        return []
    steps = between([a.start_ns for a in found], found[-1].end_ns, numbers[0] if numbers else 0)
    kinds = [_kind_of_batch(a.name) if is_batch else name for a in found]
    return [replace(step, annotation=kind) for step, kind in zip(steps, kinds, strict=True)]


def _kind_of_batch(name: str) -> str:
    """The name with `#` for its sizes; a zero is kept, as it tells a decode from a prefill."""
    return NUMBER.sub(lambda size: "#" if size[0].strip("0") else "0", name)


def _issue_calls(trace: RankTrace, found: Sequence[Annotation]) -> bool:
    """Whether stretches that follow one another issue nearly all calls between the first and the last, several each."""
    issued = sorted(issue_ns for _, issue_ns in trace.calls)
    edges = [(bisect_left(issued, a.start_ns), bisect_left(issued, a.end_ns)) for a in found]
    inside = sum(last - first for first, last in edges)
    several = inside >= thresholds.LEAST_STEP_CALLS * len(found)
    return several and inside >= thresholds.LEAST_ISSUED_SHARE * (edges[-1][1] - edges[0][0])


def _optimized(traces: Mapping[int, RankTrace]) -> dict[int, Steps]:
    """From the end of one optimizer step to the end of the next."""
    return {rank: _from_optimizers(trace) for rank, trace in traces.items()}


def _from_optimizers(trace: RankTrace) -> Steps:
    ends = [a.end_ns for a in _last_of_each(trace, [a for a in trace.annotations if a.name.startswith(_OPTIMIZER)])]
    return between([trace.first_ns, *ends[:-1]], ends[-1]) if ends else []


def _last_of_each(trace: RankTrace, found: Sequence[Annotation]) -> list[Annotation]:
    """Of optimizers that follow one another in a step the last one, of those within another the outer one.

    They follow one another if nothing communicates between them and the pause is shorter than they are.
    """
    issued = sorted(issue_ns for _, issue_ns in trace.calls)
    last: list[Annotation] = []
    for one in found:
        if last and one.end_ns <= last[-1].end_ns:
            continue
        if last and _is_at_once(last[-1], one, issued):
            last.pop()
        last.append(one)
    return last


def _is_at_once(earlier: Annotation, later: Annotation, issued: Sequence[int]) -> bool:
    own_ns = earlier.end_ns - earlier.start_ns + later.end_ns - later.start_ns
    return later.start_ns - earlier.end_ns < own_ns and bisect_left(issued, earlier.end_ns) == bisect_left(
        issued, later.start_ns
    )


def _periodic(traces: Mapping[int, RankTrace]) -> dict[int, Steps]:
    """From one turn of the sequence of collectives to the next; all-to-alls of experts may differ in size."""
    tokens = {rank: [token for token, _ in trace.calls] for rank, trace in traces.items()}
    return by_period(traces, {rank: period_of(own) or period_of(_without_sizes(own)) for rank, own in tokens.items()})


def _without_sizes(tokens: Sequence[str]) -> list[str]:
    return ["all_to_all" if one.startswith("all_to_all:") else one for one in tokens]


def _turning(traces: Mapping[int, RankTrace]) -> dict[int, Steps]:
    """From one turn of the device's kernels to the next; of what calls, after as many calls as a turn issues."""
    found = by_period(traces, {rank: calls_a_turn(trace) for rank, trace in traces.items()})
    silent = {rank: trace for rank, trace in traces.items() if trace.turns_ns and not trace.calls}
    return found | {rank: between(trace.turns_ns, trace.last_ns) for rank, trace in silent.items()}


def _window(trace: RankTrace) -> Steps:
    return [Step(0, trace.first_ns, trace.last_ns)] if trace.first_ns < trace.last_ns else []


def _from_peers(ranks: int) -> Issue:
    detail = f"{plural(ranks, 'rank')} without ProfilerStep: the steps are those of a rank that issues the same calls"
    return Issue("steps_from_peers", "info", ranks, None, detail)


def _unmarked(origin: str, batches: "Counter[str]") -> Issue:
    """What steps are inferred from; of batches of several kinds, that only those of one are compared."""
    if len(batches) > 1:
        other = 1 - batches.most_common(1)[0][1] / batches.total()
        detail = f"iterations are batches; {format_share(other)} of them are of another kind than most, and not judged"
        return Issue("iterations_from_batches", "info", 1, None, detail)
    detail = f"iterations are inferred from {_INFERRED_FROM[origin]}: there is no ProfilerStep"
    return Issue(f"iterations_from_{origin}", "info", 1, None, detail)


# Ways to find steps of all ranks that no annotation marks, in the order in which they are tried.
_WAYS: Mapping[str, Callable[[Mapping[int, RankTrace]], dict[int, Steps]]] = MappingProxyType(
    {"optimizer": _optimized, "collective_period": _periodic, "kernel_period": _turning}
)
