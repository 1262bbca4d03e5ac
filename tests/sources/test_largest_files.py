"""Files that a reader would hold whole are refused beyond a size, and nothing of them is read."""

from pathlib import Path

import pytest

from tests.fuzz.samples import sound
from tests.sources.reading import Reading
from traceforge.api import sources
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions

LIMITS = {
    "xplane": "traceforge.sources.xplane.reader._MOST_BYTES",
    "rocprof": "traceforge.sources.rocprof._MOST_BYTES",
    "pftrace": "traceforge.sources.pftrace.reader._MOST_BYTES",
    "flight_recorder": "traceforge.sources.flight_recorder.dump._LARGEST_BYTES",
    "nccl_topology": "traceforge.sources.nccl_topology._LARGEST_BYTES",
    "telemetry": "traceforge.sources.telemetry.prometheus._MOST_BYTES",
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_file_beyond_the_largest_size_is_refused_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sound file, and a limit that is smaller than it by a byte, or as large
    data, path = next(one for one in sound()[name] if name != "telemetry" or b'"status"' in one), tmp_path / "trace"
    path.write_bytes(data)
    batches: list[Batch] = []

    def read() -> Reading:
        return Reading(sources()[name].read(path, batches.append, ReadOptions()), batches)

    # then
    monkeypatch.setattr(LIMITS[name], len(data) - 1)
    with pytest.raises(InputUnusableError):
        read()
    assert batches == []
    monkeypatch.setattr(LIMITS[name], len(data))
    assert read().summary.stored_count > 0
