"""Real files of other profilers hold exactly what independent counts say: rows, sums, bytes, unions, parts.

Skipped unless TRACEFORGE_CORPUS names a folder with `golden/golden.json` and the traces it speaks of.
"""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions, Source
from traceforge.sources.nsys import NsysSource
from traceforge.sources.rocprof import RocprofSource
from traceforge.sources.xplane import XplaneSource
from traceforge.timeline.layers import union

Event = dict[str, Any]
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
COPIES = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD", "1": "HtoD", "2": "DtoH"}
COPIES |= {"8": "DtoD", "Peer-to-Peer": "PtoP", "10": "PtoP"}


@pytest.fixture(scope="module")
def golden(corpus: Path) -> dict[str, Any]:
    """What was counted without this program."""
    found: dict[str, Any] = json.loads((corpus / "golden/golden.json").read_text())
    return found


def parts_of(source: NsysSource | XplaneSource, path: Path) -> dict[str, Reading]:
    """Each part of a file, read."""
    return {part: read(source, path, part) for part in source.parts(path)}


def read(source: Source, path: Path, part: str | None = None) -> Reading:
    batches: list[Batch] = []
    return Reading(source.read(path, batches.append, ReadOptions(part=part)), batches)


def of(reading: Reading, *categories: str) -> list[Event]:
    return [event for event in reading.events if event["category"] in categories]


def spent(events: list[Event]) -> int:
    return sum(event["duration_ns"] for event in events)


def busy(events: list[Event]) -> int:
    """Length of the union, ns."""
    edges = [(event["raw_start_ns"], event["raw_start_ns"] + event["duration_ns"]) for event in events]
    together = union(*(np.array(one, np.int64) for one in zip(*edges, strict=True)))
    return int((together.ends_ns - together.starts_ns).sum())


def span(events: list[Event]) -> int:
    ends = (event["raw_start_ns"] + event["duration_ns"] for event in events)
    return int(max(ends) - min(event["raw_start_ns"] for event in events))


def test_exports_of_nsight_systems(golden: dict[str, Any], corpus: Path) -> None:
    for name, expected in golden["nsys"].items():
        path = corpus / "traces" / name
        assert NsysSource().recognises(gzip.decompress(path.read_bytes())[: 256 * 1024])
        readings = parts_of(NsysSource(), path)
        for part, reading in readings.items():
            device, kernels, work = part.partition(",")[0], of(reading, "kernel"), of(reading, *ON_DEVICE)
            said, time = expected["kernels"][device], expected["device_time"][device]
            assert (len(kernels), spent(kernels)) == (said["kernels"], said["sum_ns"])
            assert (len(work), span(work), busy(work)) == (time["events"], time["span_ns"], time["busy_ns"])
            nccl = [event for event in kernels if event["name"].lower().startswith("nccl")]
            own = expected["nccl_kernels"].get(device, {"kernels": 0, "sum_ns": 0})
            assert (len(nccl), spent(nccl)) == (own["kernels"], own["sum_ns"])
        assert _copies(readings) == {
            COPIES[kind]: (one["copies"], one["bytes"], one["sum_ns"]) for kind, one in expected["memcpy"].items()
        }
        calls = {part: of(one, "cuda_runtime", "cuda_driver") for part, one in readings.items()}
        # Rows of a call, stored or counted as left out.
        left = [int(rows) for one in readings.values() for rows in re.findall(r"KIND_RUNTIME (\d+)", _left_out(one))]
        assert sum(map(len, calls.values())) + sum(left) == expected["runtime_calls"]
        launched = [
            event["correlation"] in {call["correlation"] for call in calls[part]}
            for part, reading in readings.items()
            for event in of(reading, "kernel")
        ]
        assert sum(launched) == expected["kernels_with_launch_call"]


def _left_out(reading: Reading) -> str:
    return " ".join(issue.detail for issue in reading.summary.issues if issue.code == "nsys_rows_of_no_rank")


def _copies(readings: dict[str, Reading]) -> dict[str, tuple[int, int, int]]:
    """Number, bytes and time of the copies of all parts, by direction."""
    found: dict[str, list[Event]] = {}
    for reading in readings.values():
        for event in of(reading, "gpu_memcpy"):
            found.setdefault(event["name"].split()[1], []).append(event)
    return {kind: (len(own), sum(one["size_bytes"] for one in own), spent(own)) for kind, own in found.items()}


def test_xplane_files(golden: dict[str, Any], corpus: Path) -> None:
    for name, expected in golden["xplane"].items():
        path = corpus / "traces" / name
        if expected.get("damaged"):
            with pytest.raises(InputUnusableError, match="no sound protobuf"):
                XplaneSource().parts(path)
            continue
        planes = {one["name"]: one["device_ops"] for one in expected["planes"] if one.get("device_ops")}
        readings = parts_of(XplaneSource(), path)
        assert set(readings) == {one for one, said in planes.items() if said["events"]}
        for part, reading in readings.items():
            work = [event for event in of(reading, *ON_DEVICE) if event["name"] != "barrier-cores"]
            said = planes[part]
            assert len(work) == said["events"]
            # Whole ns at both ends of each event.
            assert abs(spent(work) - said["sum_ps"] / 1000) <= len(work)
            assert abs(busy(work) - said["busy_union_ps"] / 1000) <= len(work)
            assert abs(span(work) - said["span_ps"] / 1000) <= 1


def test_json_of_rocprofv3(golden: dict[str, Any], corpus: Path) -> None:
    for name, expected in golden["rocprof"].items():
        said = expected["kernel_dispatch"]
        kernels = of(read(RocprofSource(), corpus / "traces" / name), "kernel")
        assert (len(kernels), spent(kernels)) == (said["count"], said["sum_ns"])
        ((_, device),) = said["by_agent"].items()
        assert (busy(kernels), span(kernels)) == (device["busy_union_ns"], device["span_ns"])
        assert sum("nccl" in event["name"] for event in kernels) == said["nccl_or_rccl_kernels"]
        times: Counter[str] = Counter()
        for event in kernels:
            times[event["name"]] += event["duration_ns"]
        longest = [(text[:100], time) for text, time in times.most_common(5)]
        assert longest == [(text, time) for text, _, time in said["top5_by_time"]]
