"""Raw traces to the files that are kept: no machine path, bounded size, reproducible gzip.

In:   rank R's `rankR.pt.trace.json` and `rankR.et.json` as PyTorch wrote them.
Out:  the same names with .gz in a scenario's folder.
Idea: the Kineto file keeps every byte but the value of `traceName`; the execution trace keeps whole nodes.
Not:  renumbering, rounding or reordering of anything.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

TRACE_NAME = re.compile(rb'("traceName": )"[^"]*"')


def tidy(raw: Path, kept: Path, rank: int, execution_trace_steps: int) -> None:
    """Write both files of one rank from folder `raw` to folder `kept`."""
    kineto_name, et_name = f"rank{rank}.pt.trace.json", f"rank{rank}.et.json"
    kineto = (raw / kineto_name).read_bytes()
    renamed, count = TRACE_NAME.subn(rb'\1"' + kineto_name.encode() + b'"', kineto)
    if count != 1:
        raise ValueError(f"{kineto_name}: {count} `traceName` keys, expected one; has the format changed?")
    write_gzip(kept / f"{kineto_name}.gz", renamed)
    last_id = last_record_function(json.loads(kineto), execution_trace_steps)
    write_gzip(kept / f"{et_name}.gz", cut((raw / et_name).read_bytes(), last_id))


def last_record_function(trace: dict[str, Any], steps: int) -> int | None:
    """Return the greatest `Record function id` of the first `steps` steps; None if those are all."""
    spans = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
    if steps >= len(spans):
        return None
    step = sorted(spans, key=lambda span: float(span["ts"]))[steps - 1]
    end_us = step["ts"] + step["dur"]
    numbered = [e for e in trace["traceEvents"] if "Record function id" in e.get("args", {})]
    return max(int(e["args"]["Record function id"]) for e in numbered if e["ts"] < end_us)


def cut(execution_trace: bytes, last_id: int | None) -> bytes:
    """Return the execution trace without nodes whose `rf_id` is above `last_id`; unchanged for None."""
    if last_id is None:
        return execution_trace
    trace = json.loads(execution_trace)
    trace["nodes"] = [node for node in trace["nodes"] if record_function(node) <= last_id]
    return json.dumps(trace, separators=(",", ":")).encode()


def record_function(node: dict[str, Any]) -> int:
    """Return the `rf_id` attribute of a node."""
    return next(int(attribute["value"]) for attribute in node["attrs"] if attribute["name"] == "rf_id")


def write_gzip(path: Path, data: bytes) -> None:
    """Write gzip without time stamp, so that equal data gives equal files."""
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))
