"""The recorder: what happens is in the file, whatever becomes of the process, and the program never feels it."""

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.live.jobs import MS, HandClock, record_job, recorder
from tests.sources.test_live_log import read
from traceforge import live
from traceforge.live.layout import RowKind
from traceforge.live.names import Names
from traceforge.live.queue import RowQueue
from traceforge.live.tracks import Tracks
from traceforge.live.writer import LogWriter

_BLOCKED = (
    "polars",
    "duckdb",
    "typer",
    "rich",
    "scipy",
    "msgspec",
    "isal",
    "zstandard",
    "altair",
    "jinja2",
    "vl_convert",
)

_ALONE = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {_BLOCKED!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from traceforge import live
with live.record(sys.argv[1], policy="bounded_delay:gain=0.3") as recorder:
    with recorder.phase("forward"):
        pass
    recorder.step()
assert recorder.failures == {{}}
assert "torch" not in sys.modules
"""

_KILLED = """
import sys, time
from traceforge import live
with live.record(sys.argv[1]) as recorder:
    for number in range(3):
        with recorder.collective("all_reduce", size_bytes=8):
            time.sleep(0.001)
        recorder.step()
    recorder.writer.flush()
    print("flushed", flush=True)
    recorder.step()
    time.sleep(60)
"""


def test_it_needs_no_library_of_the_analysis(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _ALONE, str(tmp_path)], check=True, cwd=ROOT)

    assert "ProfilerStep#0" in read(tmp_path / "rank0.live").names


def test_a_killed_process_leaves_what_it_had_flushed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    reading = read(tmp_path / "rank0.live")

    assert [name for name in reading.names if name and "Step" in name] == [f"ProfilerStep#{n}" for n in range(3)]
    assert [row["sequence"] for row in reading.rows("collective")] == [0, 1, 2]
    assert "live_log_truncated" in reading.codes


def test_an_earlier_recording_is_not_written_over(tmp_path: Path) -> None:
    for _ in range(2):
        with recorder(tmp_path, HandClock()) as one:
            one.step()

    assert [path.name for path in sorted(tmp_path.iterdir())] == ["rank0.1.live", "rank0.live"]


def test_without_a_folder_every_call_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEFORGE_LIVE", raising=False)

    with live.record() as one, one.phase("forward"), one.collective("all_reduce"):
        one.step()

    assert one.path is None


def test_the_launcher_names_folder_and_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEFORGE_LIVE", str(tmp_path / "traces"))
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")

    with live.record() as one:
        one.step()

    assert one.path == tmp_path / "traces" / "rank3.live"
    summary = read(tmp_path / "traces" / "rank3.live").summary
    assert (summary.rank, summary.world_size) == (3, 4)


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.warns(RuntimeWarning, match="records nothing"), live.record(tmp_path / "file" / "traces") as one:
        one.step()


def test_a_disk_that_fails_ends_the_recording_and_not_the_job(tmp_path: Path) -> None:
    clock = HandClock()
    one = recorder(tmp_path, clock)
    assert one.writer is not None
    one.step()

    # when the disk refuses the next bytes
    os.close(one.writer._file.fileno())
    with pytest.warns(RuntimeWarning, match="stops recording"):
        one.writer.flush()

    # then the job goes on
    one.step()
    one.close()


def test_a_full_disk_ends_the_recording_and_not_the_job() -> None:
    with Path("/dev/full").open("ab", buffering=0) as full:
        with pytest.warns(RuntimeWarning, match="No space left"):
            writer = LogWriter(full, {})
        writer.queue.put((RowKind.STEP, 0, 1, 2, 0, 0, 0))
        writer.flush()
        writer.close()


def test_names_and_amounts_of_other_libraries_are_told(tmp_path: Path) -> None:
    # given text that UTF-8 cannot say, numbers of numpy, and an object in the place of a rank
    clock = HandClock()
    with recorder(tmp_path, clock, ranks=2) as one:
        with one.phase("batch \ud800.npz"):
            clock.turn(MS)
        with one.phase("x" * 100_000):
            clock.turn(MS)
        one.collective("all_reduce", ranks=np.arange(2), size_bytes=np.int64(8)).end()  # type: ignore[arg-type]
        one.collective("broadcast", ranks=[0, object()]).end()  # type: ignore[list-item]
        one.step()

    # then all of it is read, what is no rank as unknown
    reading = read(tmp_path / "rank0.live")
    assert reading.codes == []
    assert {"batch ?.npz", "x" * 1_000} <= set(reading.names)
    assert [call["in_elements"] for call in reading.rows("collective")] == [8, None]


def test_a_recorder_that_cannot_write_its_rows_leaves_the_job_alone(tmp_path: Path) -> None:
    one = recorder(tmp_path, HandClock())
    assert one.writer is not None
    one.writer.tell({"facts": object()})
    one.step()

    with pytest.warns(RuntimeWarning, match="not JSON serializable"):
        one.close()


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    with recorder(tmp_path, HandClock()) as one:
        one.step()
        if not (child := os.fork()):
            one.step()
            one.close()
            os._exit(0)
        os.waitpid(child, 0)
        one.step()

    reading = read(tmp_path / "rank0.live")
    assert [name for name in reading.names if name] == ["ProfilerStep#0", "ProfilerStep#1"]
    assert reading.codes == []


def test_a_hook_that_fails_is_counted_and_given_up(tmp_path: Path) -> None:
    calls = []

    def fail(_number: int, _start_ns: int, _end_ns: int) -> None:
        calls.append(1)
        raise ValueError("no such device")

    with recorder(tmp_path, HandClock()) as one:
        one.after_step(fail)
        for _ in range(30):
            one.step()

    assert len(calls) == 20
    assert "no such device" in read(tmp_path / "rank0.live").issue("live_log_hook_failed").detail


def test_a_full_queue_drops_rows_and_counts_them() -> None:
    queue = RowQueue(capacity=2)
    tracks = Tracks(queue, Names(), HandClock())

    for _ in range(5):
        tracks.end_step()

    assert (len(queue), queue.dropped) == (2, 3)


def test_collections_of_garbage_are_phases(tmp_path: Path) -> None:
    clock = HandClock()
    with recorder(tmp_path, clock) as one:
        callback = gc.callbacks[-1]
        callback("start", {})
        clock.now_ns += 5 * MS
        callback("stop", {})
        clock.now_ns += MS
        one.step()

    assert callback not in gc.callbacks
    [pause] = [event for event in read(tmp_path / "rank0.live").events if event["name"] == "gc.collect"]
    assert pause["duration_ns"] == 5 * MS


def test_other_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    clock = HandClock()
    with recorder(tmp_path, clock) as one:

        def fetch() -> None:
            with one.phase("fetch_batch"):
                clock.now_ns += MS

        thread = threading.Thread(target=fetch)
        thread.start()
        thread.join()
        one.step()

    reading = read(tmp_path / "rank0.live")
    tracks = {event["name"]: event["track_id"] for event in reading.events}
    assert tracks["fetch_batch"] != tracks["ProfilerStep#0"]


def test_a_long_recording_stays_small(tmp_path: Path) -> None:
    # given 40 steps of 100 collectives: 4,040 rows
    [path, *_] = record_job(tmp_path, steps=40, calls=100)

    # then 10,000 such steps take less than 20 MB, what any file holds besides counted as well
    assert path.stat().st_size * 10_000 / 40 < 20_000_000


def test_a_program_is_recorded_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import sys; print(__name__, sys.argv[1:]); sys.exit(7)")

    done = subprocess.run(
        [sys.executable, "-m", "traceforge.live", program, "--lr", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "TRACEFORGE_LIVE": str(tmp_path / "traces"), "RANK": "2"},
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (7, "__main__ ['--lr', '1']\n")
    assert "live_log_truncated" not in read(tmp_path / "traces" / "rank2.live").codes
