"""Pacing predicted against pacing measured: `python -m tests.accuracy.paced RUNS...` writes PACED.md.

In: what `sample_traces/record/paced.py RUNS` recorded, once or with several policies. Out: a table. For every pair of
runs, recorded without and with pacing, the unpaced traces alone are analysed and replayed under the same policy; the
paced run only tells what really happened. Steps are timed by the training program itself (.steps.json), not by traces.
"""

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np
from numpy.typing import NDArray

from traceforge import api
from traceforge.replay.engine import measured, replay
from traceforge.replay.outcome import outcomes
from traceforge.replay.policy import parse_policy
from traceforge.replay.replay_input import load_replay_input
from traceforge.store.database import Store

TABLE = Path(__file__).with_name("PACED.md")
TEMPLATE = Path(__file__).with_name("paced.template.md")
# Steps before the recorded ones: the profiler's wait and warm-up.
UNRECORDED = 12
STUDENT_95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided points of Student's t by number of pairs."""

_HOST = "SELECT coefficient, low, high, verdict FROM replay.calibration WHERE mechanism = ?"


@dataclass(frozen=True, slots=True)
class Pair:
    """One repeat; ratios are of throughput, paced over unpaced.

    Attributes:
        measured: from the median step of either run.
        measured_whole: from the time of all recorded steps, pauses of the machine included.
        predicted: from the median step of the replay.
        low: lower end of the replay's 95 % interval (of all steps).
        high: its upper end.
        without_coupling: ratio of all steps if nothing were slower where ranks are early.
        verdict: the replay's.
        host: slow-down by a waiting rank of the same host, with its interval, in words.
        predictable: correlation of waits with those one step before.
        delay_share: mean delay in the paced run over its median step.
        predicted_delay_share: the same of the replay.
        overshoot: share of paced steps in which the rank that waits most without pacing comes last, and how long the
            others then wait, ns.
        predicted_overshoot: the same of the replay.
    """

    measured: float
    measured_whole: float
    predicted: float
    low: float
    high: float
    without_coupling: float
    verdict: str
    host: str
    predictable: str
    delay_share: float
    predicted_delay_share: float
    overshoot: tuple[float, float]
    predicted_overshoot: tuple[float, float]


def pair(folder: Path, policy: str) -> Pair:
    """Predict and measure one repeat."""
    unpaced, paced = completions_ns(folder / "unpaced"), completions_ns(folder / "paced")
    with Store(None, is_kept=False) as store, ThreadPoolExecutor(1) as workers:
        api.ingest([folder / "unpaced"], store, executor=workers)
        run = load_replay_input(store, 0)
        assert run is not None, f"{folder}: nothing to replay"
        chosen, parameters = parse_policy(policy)
        before, after = outcomes(run, [parse_policy("none"), (chosen, parameters)])
        replayed = replay(
            run.model,
            measured(run.model),
            lambda past: chosen.delay(past, parameters),
            couplings=run.known.point,
            recorded=run.recorded,
        )
        early = int(waits_ns(folder / "unpaced").sum(axis=0).argmax())
        return Pair(
            measured=median(steps_ns(unpaced)) / median(steps_ns(paced)),
            measured_whole=(unpaced[-1] - unpaced[0]) / (paced[-1] - paced[0]),
            predicted=before.p50_ns / after.p50_ns,
            low=after.throughput_ratio_low,
            high=after.throughput_ratio_high,
            without_coupling=after.throughput_ratio_without_coupling,
            verdict=after.verdict,
            host=estimate(store, "co_located_waiting"),
            predictable=estimate(store, "predictability"),
            delay_share=mean_delay_ns(folder / "paced") / median(steps_ns(paced)),
            predicted_delay_share=after.delay_ns / after.p50_ns,
            overshoot=overshoot(waits_ns(folder / "paced"), early),
            predicted_overshoot=overshoot(replayed.wait_ns, early),
        )


def estimate(store: Store, mechanism: str) -> str:
    """A row of replay.calibration in a few words."""
    [(coefficient, low, high, verdict)] = store.query(_HOST, [mechanism]).rows()
    return (
        "not measured"
        if coefficient is None
        else f"{coefficient:.2f} [{low:.2f}, {high:.2f}] {verdict.replace('_', ' ')}"
    )


def rows_of(folder: Path) -> list[list[dict[str, int]]]:
    """Recorded steps of each rank."""
    return [json.loads(path.read_text())[UNRECORDED:] for path in sorted(folder.glob("rank*.steps.json"))]


def completions_ns(folder: Path) -> list[int]:
    """When the last rank had done each recorded step, ns."""
    return [max(row["end_ns"] for row in step) for step in zip(*rows_of(folder), strict=True)]


def waits_ns(folder: Path) -> NDArray[np.int64]:
    """Wait of each rank in each recorded step, ns, shape (I, R)."""
    return np.array([[row["wait_ns"] for row in rank] for rank in rows_of(folder)]).T


def overshoot(wait_ns: NDArray[np.int64], early: int) -> tuple[float, float]:
    """Share of steps in which rank `early` comes last, and the longest wait of the others then, mean, ns."""
    last = wait_ns[:, early] == 0
    return float(last.mean()), float(wait_ns[last].max(axis=1).mean()) if last.any() else 0.0


def mean_delay_ns(folder: Path) -> float:
    """Mean delay a rank and step, ns."""
    return fmean(row["delay_ns"] for rank in rows_of(folder) for row in rank)


def steps_ns(completions: Sequence[int]) -> list[int]:
    """From one completion to the next, ns."""
    return [after - before for before, after in pairwise(completions)]


def change(ratio: float) -> str:
    """A ratio as a change."""
    return f"{100 * (ratio - 1):+.1f} %"


def over(found: Sequence[tuple[float, float]]) -> str:
    """Overshoots in a few words."""
    shares, waits = zip(*found, strict=True)
    return f"{100 * fmean(shares):.0f} %, {fmean(waits) / 1e6:.0f} ms"


def summary(name: str, pairs: Sequence[Pair]) -> str:
    """One line of the first table."""
    measured = [one.measured for one in pairs]
    error = STUDENT_95[len(measured)] * stdev(measured) / len(measured) ** 0.5
    centre = fmean(measured)
    predicted = fmean(one.predicted for one in pairs)
    low, high = fmean(one.low for one in pairs), fmean(one.high for one in pairs)
    verdicts = sorted({one.verdict for one in pairs})
    counted = ", ".join(f"{sum(one.verdict == v for one in pairs)} {v.replace('_', ' ')}" for v in verdicts)
    shares = [(one.delay_share, one.predicted_delay_share) for one in pairs]
    cells = (
        name, str(len(pairs)), f"{change(centre)} [{change(centre - error)}, {change(centre + error)}]",
        f"{change(fmean(one.measured_whole for one in pairs))}", f"{change(predicted)} [{change(low)}, {change(high)}]",
        change(fmean(one.without_coupling for one in pairs)), f"{100 * (predicted - centre):+.1f}",
        " / ".join(f"{100 * fmean(share):.1f}" for share in zip(*shares, strict=True)),
        over([one.overshoot for one in pairs]) + " / " + over([one.predicted_overshoot for one in pairs]), counted,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def detail(name: str, repeat: str, one: Pair) -> str:
    """One line of the second table."""
    cells = (
        name, repeat, change(one.measured), f"{change(one.predicted)} [{change(one.low)}, {change(one.high)}]",
        one.host, one.predictable, one.verdict.replace("_", " "),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def table(recordings: Sequence[Path]) -> str:
    """PACED.md, from folders of one policy each."""
    summaries, details = [], []
    for runs in recordings:
        policy = (runs / "policy.txt").read_text().strip()
        gain = policy.partition("gain=")[2].partition(",")[0]
        for scenario in sorted(path for path in runs.iterdir() if path.is_dir()):
            pairs = {folder.name: pair(folder, policy) for folder in sorted(scenario.iterdir())}
            summaries.append(summary(f"{scenario.name}, {gain}", list(pairs.values())))
            details += [detail(f"{scenario.name}, {gain}", number, one) for number, one in pairs.items()]
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.format(
        policy=policy.replace(f"gain={gain}", "gain=G"), summary="\n".join(summaries), detail="\n".join(details)
    )


if __name__ == "__main__":
    TABLE.write_text(table([Path(name) for name in sys.argv[1:]]), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
