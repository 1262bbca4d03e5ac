"""The page of `live.py`. In: what was measured, a case each. Out: LIVE.md as text."""

import os
from collections.abc import Sequence
from math import hypot, log
from statistics import geometric_mean
from typing import Any

_COUPLED = "busy_wait"
_HEAD = """# Live pacing: foretold from an unpaced recording, and measured by blocks that take turns

Made by `python -m tests.accuracy.live TORCH_PYTHON FOLDER`. Two ranks of gloo on a machine of {cores} cores (load
average {loads}, with the jobs themselves); each job is a session of its own that goes before others (autogroup,
niceness -10). Steps of about 20 ms, four pieces of work and two all-reduces each.

- `even`: nobody is late.
- `straggler`: rank 1 sleeps 10 ms longer, always.
- `rotating`: each rank is late by 10 ms for twelve steps, in turn.
- `random`: both are late, by up to 10 ms.
- `uneven_batches`: both ranks' work varies by 30 % from step to step.
- `checkpoint`: rank 0 writes for 60 ms after every twentieth step.
- `oversubscribed`: each rank computes for 10 ms on a core that it shares with a process that never rests.
- `busy_wait`: rank 1 computes for 20 ms, rank 0 for 10 ms; while a rank waits, a process of it spins on the other's
  core. The one true coupling.

Policy `bounded_delay:window=4,threshold=0.1,gain=0.3,max_delay=0.3`. It is replayed on {plain} steps that were recorded
without pacing; then the job runs with the hook in twenty pairs of blocks of twelve steps (`blocks`), and, for
comparison, as whole runs without and with pacing in turns ({pairs} pairs, `whole runs`). All are changes of throughput,
intervals of 95 %. Fewer than 20 pairs: the hook gave pacing up, as it surely cost throughput.

{counts}

Whole runs have as many paced steps as the blocks, and so about as large an error of their own: of such estimates an
interval of 95 % holds 83 %, where both are right. That is why both errors are counted beside.
Where nothing couples the ranks, pacing cost more than was foretold. Perhaps that is because the replay knows the ranks'
true waits, and a rank in the job only what lies above the shortest transfer that it saw, so that other load looks like
a lead to it; that was not tested.

"""
_COLUMNS = (
    "job", "seed", "foretold", "verdict", "measured by blocks", "pairs", "holds what was foretold", "intervals meet",
    "whole runs", "held by blocks", "mean delay, ms",
)  # fmt: skip
_LONG_HEAD = """
## A long recording beside twenty steps of the profiler

The same jobs, {steps} steps each, recorded throughout; PyTorch's profiler ran for {profiled} of them. Coefficient with
its interval of 95 %, and the verdict of `replay.calibration`.

| job | mechanism | long recording | profile |
|---|---|---|---|
"""
_ENTRIES_HEAD = """
## When a call began and ended, by the recorder and by the profiler

The profiled steps of the same runs: recorded less profiled time of each blocking all-reduce, us, at 5 %, 50 % and 95 %
of the calls, and the share within 50 us (asked: all). The call is `c10d::allreduce_`, its end that of
`gloo:all_reduce`. That range begins when a thread of gloo takes the work up, which is no entry of the program's; it is
shown for comparison. This PyTorch ({torch}) calls no hooks with a collective: the entry is that into Python's function,
which runs some 80 us before it comes to the call, as each step begins with a sleep. With PyTorch 2.14, which does call
them, 99 to 100 % of entries and 66 to 92 % of exits of the same jobs were within 50 us, at a load of 19 to 37.

| job | place | calls | 5 % | 50 % | 95 % | within 50 us |
|---|---|---|---|---|---|---|
"""
_PLACES = {"entry": "entry", "exit": "exit", "entry_of_work": "begin of gloo's own work"}


def render(cases: Sequence[dict[str, Any]], longs: Sequence[dict[str, Any]], settings: dict[str, object]) -> str:
    """The page."""
    loads = sorted(one["load"] for one in cases)
    head = _HEAD.format(cores=os.cpu_count(), loads=f"{loads[0]} to {loads[-1]}", counts=_counts(cases), **settings)
    columns = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"
    page = head + columns + "".join(_line(one) for one in cases)
    if longs:
        page += _LONG_HEAD.format(**settings) + "".join(_long_lines(one) for one in longs)
        page += _ENTRIES_HEAD.format(**settings) + "".join(_entry_lines(one) for one in longs)
    return page


def holds_foretold(one: dict[str, Any]) -> bool:
    """Whether the measured interval holds the ratio that was foretold."""
    return _is_in(one["foretold"]["throughput_ratio"], one["measured"])


def holds_whole(one: dict[str, Any]) -> bool:
    """Whether the measured interval holds what whole runs showed."""
    return _is_in(one["whole"], one["measured"])


def agrees_with_whole(one: dict[str, Any]) -> bool:
    """Whether blocks and whole runs differ by no more than the intervals of both allow."""
    low, middle, high = (log(one["measured"][f"throughput_ratio{end}"]) for end in ("_low", "", "_high"))
    return abs(middle - log(one["whole"])) <= hypot((high - low) / 2, one["whole_error"])


def is_wrongly_supported(one: dict[str, Any]) -> bool:
    """Whether a gain was foretold where the measured interval lies below none."""
    return one["foretold"]["verdict"] == "supported" and one["measured"]["throughput_ratio_high"] < 1


def _is_in(ratio: float, measured: dict[str, Any]) -> bool:
    return bool(measured["throughput_ratio_low"] <= ratio <= measured["throughput_ratio_high"])


def _counts(cases: Sequence[dict[str, Any]]) -> str:
    count = len(cases)
    verdicts = [one["foretold"]["verdict"].replace("_", " ") for one in cases]
    told = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
    foretold, measured, whole = (_mean(cases, what) for what in ("foretold", "measured", "whole"))
    coupled = _mean(cases, "measured", coupled=True), _mean(cases, "foretold", coupled=True)
    wrong = sum(map(is_wrongly_supported, cases))
    lines = (
        f"Interval of the blocks holds what was foretold: {_of(map(holds_foretold, cases), count)} (asked 80 %).",
        f"The two intervals meet: {_of((bool(one['measured']['agrees']) for one in cases), count)}.",
        f"Interval of the blocks holds what whole runs show: {_of(map(holds_whole, cases), count)} (asked 90 %).",
        f"Blocks and whole runs agree within the errors of both: {_of(map(agrees_with_whole, cases), count)}.",
        f"Called supported where the measured interval lies below zero: {wrong} (asked 0). Verdicts: {told}.",
        f"Means, jobs without a coupling: foretold {foretold}, blocks {measured}, whole runs {whole}.",
        f"Means, `{_COUPLED}`: foretold {coupled[1]}, blocks {coupled[0]}.",
    )
    return "\n".join(f"- {one}" for one in lines)


def _mean(cases: Sequence[dict[str, Any]], what: str, *, coupled: bool = False) -> str:
    chosen = [one[what] for one in cases if (one["kind"] == _COUPLED) == coupled]
    ratios = [one if isinstance(one, float) else one["throughput_ratio"] for one in chosen]
    return change(geometric_mean(ratios)) if ratios else "unknown"


def _of(marks: Any, count: int) -> str:
    found = sum(marks)
    return f"{found} of {count} ({100 * found / count:.0f} %)"


def _line(one: dict[str, Any]) -> str:
    foretold, measured = one["foretold"], one["measured"]
    cells = (
        one["kind"], str(one["seed"]), _interval(foretold), foretold["verdict"].replace("_", " "), _interval(measured),
        str(measured["pairs"]), _yes(holds_foretold(one)), _yes(measured["agrees"]),
        f"{change(one['whole'])} ± {100 * one['whole_error']:.1f} %",
        _yes(holds_whole(one)), f"{(measured['delay_ns'] or 0) / 1e6:.2f}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |\n"


def _long_lines(one: dict[str, Any]) -> str:
    by_name = [{row["mechanism"]: row for row in one["couplings"][which]} for which in ("recording", "profile")]
    return "".join(
        f"| {one['kind']} | {name.replace('_', ' ')} | {_coupling(by_name[0].get(name))} "
        f"| {_coupling(by_name[1].get(name))} |\n"
        for name in sorted(by_name[0].keys() | by_name[1].keys())
    )


def _entry_lines(one: dict[str, Any]) -> str:
    return "".join(
        f"| {one['kind']} | {_PLACES[place]} | {told['count']} | {told['low']:+.0f} | {told['middle']:+.0f} "
        f"| {told['high']:+.0f} | {100 * told['near']:.0f} % |\n"
        for place, told in one["entries"].items()
    )


def _coupling(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none"
    verdict = row["verdict"].replace("_", " ")
    if row["coefficient"] is None:
        return verdict
    return f"{row['coefficient']:.2f} [{row['low']:.2f}, {row['high']:.2f}] {verdict}"


def _interval(ratios: dict[str, Any]) -> str:
    middle, low, high = (change(ratios[f"throughput_ratio{end}"]) for end in ("", "_low", "_high"))
    return f"{middle} [{low}, {high}]"


def _yes(mark: bool | None) -> str:
    return "unknown" if mark is None else "yes" if mark else "no"


def change(ratio: float | None) -> str:
    """A ratio as a change."""
    return "unknown" if ratio is None else f"{100 * (ratio - 1):+.1f} %"
