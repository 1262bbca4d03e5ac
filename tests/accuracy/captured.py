"""Judges recordings of `capture.py`: `python -m tests.accuracy.captured FOLDER...` writes CAPTURED.md.

In: folders of recorded jobs, each with its truth.json. Out: what was injected, what it cost by the clock of the
machine, and what was answered.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.accuracy.case import Case
from tests.accuracy.judging import Mark, judge_folder
from tests.accuracy.outcomes import is_right
from traceforge.synth.cluster import Cluster
from traceforge.synth.scenario import Scenario

TABLE = Path(__file__).with_name("CAPTURED.md")
LARGEST_SPREAD = 0.1

_HEAD = """# Jobs recorded anew

Ranks on one machine, four but where eight are said, recorded by `capture.py` and judged by
`python -m tests.accuracy.captured`. Layers of all jobs but `ddp` sleep as long as
a device would compute, or keep one busy that long; all else is PyTorch's own code.
What a fault cost is what recorded steps took longer than others of them, or than the median of clean ones before them,
by the clock of the machine. Where clean steps vary by more than a tenth (interquartile range) the machine was not calm:
that is said, and nothing is judged.
"""
_ON = {
    "cores": "Over gloo, on the cores of one host",
    "network": "Over gloo, each rank a host of its own (network namespaces, cables of 1 Gbit/s)",
    "gpu": "Over NCCL, all ranks on one GPU under the multi-process service, each a host of its own to NCCL",
}
_COLUMNS = """
## {}

| job | clean step | varies by | at fault | it cost | answered | first is right | wrong accusations |
|---|---|---|---|---|---|---|---|
"""


def judged(folder: Path) -> str:
    """One row of the table."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    scenario = Scenario(truth["scenario"], cluster=Cluster(1, truth["world_size"]))
    head = f"| {scenario.name} | {truth['clean_ns'] / 1e6:.1f} ms | {truth['clean_spread']:.0%} |"
    if truth["clean_spread"] > LARGEST_SPREAD:
        return f"{head} not measured | | | | |"
    return f"{head} {answer(judge_folder(Case('captured', scenario, frozenset(truth['lost'])), folder))}"


def _tables(folders: Sequence[Path]) -> Iterator[str]:
    """A table for each kind of machine; recordings that say none are of cores."""
    by_machine: dict[str, list[Path]] = {}
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        by_machine.setdefault(truth.get("machine", "cores"), []).append(folder)
    for machine, own in sorted(by_machine.items()):
        yield _COLUMNS.format(_ON[machine]) + "\n".join(map(judged, own)) + "\n"


def answer(mark: Mark) -> str:
    """What was true and what was said, as the other columns of the table."""
    fault = "; ".join(f"{'/'.join(sorted(one.modes))} of {one.kind} {one.subject}" for one in mark.asked)
    cost = "; ".join(f"{one.delay_ns / 1e6:.1f} ms" for one in mark.asked)
    said = " ".join(mark.first) if mark.first else "nothing"
    if len(mark.asked) > 1:
        said = "; ".join(
            "missed" if error is None else f"rank {one.subject}, {one.delay_ns * (1 + error) / 1e6:.1f} ms"
            for one, error in zip(mark.asked, mark.errors, strict=True)
        )
    elif mark.errors and mark.errors[0] is not None:
        said += f", {mark.asked[0].delay_ns * (1 + mark.errors[0]) / 1e6:.1f} ms"
    right = ("yes" if is_right(mark) else "no") if mark.asked else "nothing to name"
    false = "; ".join(mark.false_findings) or "none"
    return f"{fault or 'nothing'} | {cost or 'none'} | {said} | {right} | {false} |"


if __name__ == "__main__":
    folders = sorted(path.parent for folder in sys.argv[1:] for path in Path(folder).glob("*/truth.json"))
    if not folders:
        sys.exit(f"{sys.argv[1:]} hold no recorded job; `python -m tests.accuracy.capture` records some")
    TABLE.write_text(_HEAD + "".join(_tables(folders)), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
