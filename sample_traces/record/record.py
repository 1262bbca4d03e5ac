"""Record the sample traces: `python sample_traces/record/record.py [SCENARIO…]`.

In:   scenario names; none means all.
Out:  sample_traces/SCENARIO/ with each rank's traces, truth.json and PROVENANCE.md, replaced as a whole.
Idea: run, tidy, measure, describe; a scenario that fails leaves its old folder as it was.
Needs: Linux, root, iproute2, util-linux, `pip install traceforge[capture]`.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lab import LabError
from provenance import provenance
from run import RecordingError, run
from scenarios import SCENARIOS, WORLD_SIZE, Scenario
from tidy import tidy
from truth import NotCalmError, truth

SAMPLES = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"
ATTEMPTS = 5
"""Runs of one scenario at most, until one is undisturbed."""
TOOLS = ("ip", "tc", "sysctl", "unshare")


def main() -> int:
    """Record what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="Record sample traces of a small training job.")
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=f"{', '.join(SCENARIOS)}; default: all")
    names = parser.parse_args().scenario or list(SCENARIOS)
    for name in names:
        if name not in SCENARIOS:
            parser.error(f"no scenario `{name}`; there are {', '.join(SCENARIOS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    obstacle = why_not()
    if obstacle:
        print(f"error: {obstacle}", file=sys.stderr)
        return 3
    for name in names:
        try:
            record_calm(SCENARIOS[name])
        except (LabError, RecordingError) as failure:
            print(f"error: {name}: {failure}", file=sys.stderr)
            return 1
        print(f"{name}: recorded", file=sys.stderr)
    return 0


def record_calm(scenario: Scenario) -> None:
    """Record, again if the machine disturbed the run; raise `NotCalmError` after the last attempt."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return record(scenario)
        except NotCalmError as disturbance:
            print(f"{scenario.name}: attempt {attempt}: {disturbance}", file=sys.stderr)
            if attempt == ATTEMPTS:
                raise
    return None


def why_not() -> str | None:
    """Return why nothing can be recorded here, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not found: {', '.join(missing)}\n\nhint: install iproute2, procps and util-linux"
    if torch_version().split("+")[0] != TORCH:
        return f"PyTorch {TORCH} needed, found {torch_version()}\n\nhint: pip install 'traceforge[capture]'"
    return None


def torch_version() -> str:
    """Return the installed PyTorch's version, `none` if there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


def record(scenario: Scenario) -> None:
    """Record one scenario and replace its folder."""
    with tempfile.TemporaryDirectory(prefix="traceforge-record-") as folder:
        raw, kept = Path(folder, "raw"), Path(folder, "kept")
        raw.mkdir()
        kept.mkdir()
        switched = run(scenario, raw)
        for rank in range(WORLD_SIZE):
            tidy(raw, kept, rank, scenario.execution_trace_steps)
        measured = truth(scenario, raw, switched)
        (kept / "truth.json").write_text(as_text(measured), encoding="utf-8")
        page = provenance(scenario, measured, torch_version())
        (kept / "PROVENANCE.md").write_text(page, encoding="utf-8")
        target = SAMPLES / scenario.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(kept, target)


def as_text(measured: dict[str, object]) -> str:
    """Return truth as JSON with one key a line, lists of numbers on one line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in measured.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
