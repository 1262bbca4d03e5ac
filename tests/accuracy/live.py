"""Live pacing, foretold and measured: `python -m tests.accuracy.live TORCH_PYTHON FOLDER` writes LIVE.md.

In: an interpreter with PyTorch. Out: three tables. Each job is recorded without pacing; a replay of that foretells what
the policy would bring; the job runs again with the policy, in blocks with and without pacing that take turns, and then
as whole runs with and without it, in turns. A case that was run is kept in FOLDER and not run again. The second table
holds what a long recording says of a job's couplings beside what twenty steps of PyTorch's profiler say of them, the
third how far both agree on when calls began and ended.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from tests.accuracy.live_entries import differences, summary
from tests.accuracy.live_table import render
from traceforge import api
from traceforge.replay.outcome import outcomes
from traceforge.replay.policy_file import PredictedGain, choose, write_policy
from traceforge.replay.replay_input import load_replay_input
from traceforge.store.database import Store

TABLE = Path(__file__).with_name("LIVE.md")
POLICY = "bounded_delay:window=4,threshold=0.1,gain=0.3,max_delay=0.3"
KINDS = (
    "even", "straggler", "rotating", "random", "uneven_batches", "checkpoint", "oversubscribed", "busy_wait",
)  # fmt: skip
SEEDS = (11, 12, 13)
LONG_KINDS = ("straggler", "rotating", "busy_wait")
PLAIN_STEPS, TURN_STEPS = 150, 12 + 24 * 20
PAIRS, PAIR_STEPS = 4, 72
LONG_STEPS, PROFILED_FROM, PROFILED_STEPS = 2_000, 600, 20
_SETTINGS: dict[str, object] = {"plain": PLAIN_STEPS, "pairs": PAIRS, "steps": LONG_STEPS, "profiled": PROFILED_STEPS}
_MECHANISMS = """
SELECT mechanism, coefficient, low, high, verdict, n FROM replay.calibration
WHERE mechanism IN ('arrival_spread', 'co_located_waiting', 'predictability') ORDER BY mechanism
"""


def run_job(python: str, kind: str, seed: int, folder: Path, *parts: str) -> None:
    """Run a job to its end."""
    program = Path(__file__).with_name("live_job.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [python, str(program), kind, str(seed), str(folder), *parts]
    subprocess.run(words, check=True, env=environment, timeout=600)


def predict(folder: Path) -> PredictedGain:
    """What a replay of an unpaced recording says of the policy."""
    chosen = choose(POLICY)
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        run = load_replay_input(store, 0)
        assert run is not None, f"{folder}: nothing to replay"
        [found] = outcomes(run, [(chosen.policy, chosen.parameters)])
    return PredictedGain(found.throughput_ratio, found.throughput_ratio_low, found.throughput_ratio_high, found.verdict)


def case(python: str, folder: Path, kind: str, seed: int) -> dict[str, Any]:
    """One job: what was foretold and what was measured, ratios of throughput."""
    run_job(python, kind, seed, folder, f"plain:{PLAIN_STEPS}")
    foretold = predict(folder / "plain")
    write_policy(folder / "policy.json", POLICY, foretold)
    policy = folder / "policy.json"
    run_job(python, kind, seed, folder, f"turns:{TURN_STEPS}:{policy}", f"pairs:{PAIRS}:{PAIR_STEPS}:{policy}")
    with Store(None, is_kept=False) as store:
        api.ingest([folder / "turns"], store, jobs=1)
        api.analyze(store)
        [row] = store.query("FROM replay.paced").to_dicts()
    pairs = json.loads((folder / "pairs" / "pairs.json").read_text(encoding="utf-8"))
    load = round(os.getloadavg()[0], 1)
    return {"kind": kind, "seed": seed, "foretold": asdict(foretold), "measured": row, "load": load, **of_pairs(pairs)}


def of_pairs(pairs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Ratio of throughput by whole runs in turns, and half the width of its interval of 95 %, of logarithms."""
    logs = np.array([np.log(one["plain"] / one["paced"]) for one in pairs])
    half = student_t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return {"whole": float(np.exp(logs.mean())), "whole_error": float(half)}


def couplings(folder: Path) -> list[dict[str, Any]]:
    """What a recording says of couplings and predictability."""
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        api.analyze(store)
        return store.query(_MECHANISMS).to_dicts()


def long_case(python: str, folder: Path, kind: str) -> dict[str, Any]:
    """One long job: couplings and calls by the recording, and by the profiler of some of its steps."""
    if not (folder / "profile").exists():
        run_job(python, kind, 1, folder, f"profiled:{LONG_STEPS}:{PROFILED_FROM}:{PROFILED_STEPS}")
    recording, profile = folder / "profiled", folder / "profile"
    found = {"recording": couplings(recording), "profile": couplings(profile)}
    return {"kind": kind, "couplings": found, "entries": summary(differences(recording, profile))}


def kept(folder: Path, make: Any, *arguments: object) -> dict[str, Any]:
    """What was measured in a folder, now or before."""
    file = folder / "case.json"
    if not file.exists():
        found = make(*arguments)
        file.write_text(json.dumps(found), encoding="utf-8")
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def main(python: str, folder: Path) -> None:
    """All jobs; the tables are written after each, as a run may be cut short."""
    asked = [python, "-c", "import torch; print(torch.__version__)"]
    settings = _SETTINGS | {"torch": subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()}
    cases: list[dict[str, Any]] = []
    longs: list[dict[str, Any]] = []
    for seed in SEEDS:
        for kind in KINDS:
            place = folder / f"{kind}{seed}"
            cases.append(kept(place, case, python, place, kind, seed))
            TABLE.write_text(render(cases, longs, settings), encoding="utf-8")
    for kind in LONG_KINDS:
        place = folder / f"{kind}-long"
        longs.append(kept(place, long_case, python, place, kind))
        TABLE.write_text(render(cases, longs, settings), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
