"""Live pacing, foretold and measured: `python -m tests.accuracy.live TORCH_PYTHON FOLDER` writes LIVE.md.

In: an interpreter with PyTorch. Out: a table. Each job is recorded without pacing; a replay of that foretells what the
policy would bring; the job runs again with the policy, in blocks with and without pacing that take turns.
"""

import os
import subprocess
import sys
from pathlib import Path

from traceforge import api
from traceforge.replay.outcome import outcomes
from traceforge.replay.policy_file import Foretold, choose, write_policy
from traceforge.replay.replay_input import load_replay_input
from traceforge.store.database import Store

TABLE = Path(__file__).with_name("LIVE.md")
POLICY = "bounded_delay:window=4,threshold=0.1,gain=0.3,max_delay=0.3"
KINDS = ("even", "straggler", "rotating", "random")
SEEDS = (1, 2)
_MEET = {True: "yes", False: "no", None: "unknown"}
PLAIN_STEPS, PACED_STEPS = 60, 12 + 24 * 8

HEAD = f"""# Live pacing: foretold from an unpaced recording, and measured by blocks that take turns

Made by `python -m tests.accuracy.live TORCH_PYTHON FOLDER`. Two ranks of gloo on a machine of
{os.cpu_count()} cores, which other programs load heavily: steps sleep for 20 ms and are late by 10 ms
(`straggler`: rank 1 always; `rotating`:
each for twelve steps in turn; `random`: both, by a random part; `even`: nobody). Nothing couples the ranks, so that no
policy can gain; what is checked is that none is called supported, and that the interval of the blocks holds what was
foretold. Policy `{POLICY}`; {PLAIN_STEPS} steps unpaced, then {PACED_STEPS} with the hook.

| job | seed | foretold | verdict | measured by blocks | pairs | intervals meet | mean delay, ms |
|---|---|---|---|---|---|---|---|
"""


def run_job(python: str, *arguments: object) -> None:
    """Run a job to its end."""
    program = Path(__file__).with_name("live_job.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([python, str(program), *map(str, arguments)], check=True, env=environment, timeout=300)


def foretell(folder: Path) -> Foretold:
    """What a replay of an unpaced recording says of the policy."""
    chosen = choose(POLICY)
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        run = load_replay_input(store, 0)
        assert run is not None, f"{folder}: nothing to replay"
        [found] = outcomes(run, [(chosen.policy, chosen.parameters)])
    return Foretold(found.throughput_ratio, found.throughput_ratio_low, found.throughput_ratio_high, found.verdict)


def line(python: str, folder: Path, kind: str, seed: int) -> str:
    """One job: its line of the table."""
    run_job(python, kind, seed, folder / "plain", PLAIN_STEPS, "")
    foretold = foretell(folder / "plain")
    write_policy(folder / "policy.json", POLICY, foretold)
    run_job(python, kind, seed, folder / "paced", PACED_STEPS, folder / "policy.json")
    with Store(None, is_kept=False) as store:
        api.ingest([folder / "paced"], store, jobs=1)
        api.analyze(store)
        [row] = store.query("FROM replay.paced").to_dicts()
    ends = [change(row[f"throughput_ratio{end}"]) for end in ("", "_low", "_high")]
    said = [
        change(one)
        for one in (foretold.throughput_ratio, foretold.throughput_ratio_low, foretold.throughput_ratio_high)
    ]
    cells = (
        kind, str(seed), f"{said[0]} [{said[1]}, {said[2]}]", foretold.verdict.replace("_", " "),
        f"{ends[0]} [{ends[1]}, {ends[2]}]", str(row["pairs"]), _MEET[row["agrees"]],
        f"{(row['delay_ns'] or 0) / 1e6:.2f}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def change(ratio: float | None) -> str:
    """A ratio as a change."""
    return "unknown" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def main(python: str, folder: Path) -> None:
    """All jobs; the table is written after each, as a run may be cut short."""
    lines: list[str] = []
    for seed in SEEDS:
        for kind in KINDS:
            lines.append(line(python, folder / f"{kind}{seed}", kind, seed))
            TABLE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
