"""Record runs without and with pacing: `python sample_traces/record/paced.py OUT [--repeats N] [SCENARIO…]`.

In:   names of `PACED` scenarios; none means all.
Out:  OUT/SCENARIO/REPEAT/{unpaced,paced}/ with each rank's traces and .steps.json, and OUT/policy.txt.
Idea: the two runs of a repeat follow one another, first the one and then the other in turn, so that what else the
      machine does falls on both alike.
Not:  samples that are kept; `tests/accuracy/paced.py` turns OUT into a table.
Needs: as record.py.
"""

import argparse
import signal
import sys
from pathlib import Path

from lab import LabError
from record import why_not
from run import RecordingError, run
from scenarios import PACED

POLICY = "window=4,threshold=0.1,gain=0.4,max_delay=0.5"


def main() -> int:
    """Record what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="Record runs without and with pacing, in turn.")
    parser.add_argument("out", type=Path)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=f"{', '.join(PACED)}; default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--policy", default=POLICY, help="parameters of bounded delay; default: %(default)s")
    args = parser.parse_args()
    names = args.scenario or list(PACED)
    for name in names:
        if name not in PACED:
            parser.error(f"no scenario `{name}`; there are {', '.join(PACED)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    obstacle = why_not()
    if obstacle:
        print(f"error: {obstacle}", file=sys.stderr)
        return 3
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "policy.txt").write_text(f"bounded_delay:{args.policy}\n", encoding="utf-8")
    for repeat in range(args.repeats):
        for name in names:
            for arm in ("unpaced", "paced") if repeat % 2 == 0 else ("paced", "unpaced"):
                try:
                    record_arm(name, args.out / name / str(repeat) / arm, args.policy if arm == "paced" else "")
                except (LabError, RecordingError) as failure:
                    print(f"error: {name}, repeat {repeat}, {arm}: {failure}", file=sys.stderr)
                    return 1
        print(f"repeat {repeat}: recorded", file=sys.stderr)
    return 0


def record_arm(name: str, out: Path, pace: str) -> None:
    """Record one run; what nobody reads afterwards is not kept."""
    out.mkdir(parents=True, exist_ok=True)
    run(PACED[name], out, pace)
    for path in (*out.glob("*.et.json"), *out.glob("*.flag"), out / "arrivals"):
        path.unlink()


if __name__ == "__main__":
    sys.exit(main())
