"""Fuzzing of the Kineto source: inputs nobody would write, each read and judged.

`python -m tests.fuzz.kineto --executions 100000 --seed 1` runs under atheris, guided by coverage, where it is installed
(`pip install -e '.[fuzz]'`), and else mutates the seeds itself. An input that fails is kept under --keep.

Judged of each input: nothing but the project's own errors is raised; rows and counted losses make up the events; text
that is no JSON never passes without an issue; valid files have the events, names and phases that `json` finds; the
scanner in C, where it is built, and the Python reader say the same; and no input takes longer than a limit.
"""

import argparse
import contextlib
import gc
import gzip
import hashlib
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import polars as pl

from tests.sources.reading import Reading
from traceforge.errors import TraceforgeError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.kineto.reader import read_file

MOST_SECONDS = 5.0
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - each run makes a folder of its own in it
OBJECTS_A_COLLECTION = 50_000
LARGEST_INPUT = 4096
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
BOM = b"\xef\xbb\xbf"
UNIT_BYTES = (1, 64, 300, 256 * 1024)
DICTIONARY = (
    b'{"ph":"X","name":"a","ts":1},', b'"traceEvents":[', b'"traceName":"x"}', b'"ph":', b'"args":{', b'"name":"',
    b'"ts":', b"},{", b"],", b"]}", b"[[", b"{{", b'"', b'\\"', b"\\", b"\\ud800", b"\\u0000", b"\xff", b"\x00", b"\n",
    b"NaN", b"-Infinity", b"null", b"true", b"1e999", b"0.5", b"18446744073709551616", b"-", b",", b":", b"{", b"}",
    b"[", b"]", BOM, b"\xed\xa0\x80",
)  # fmt: skip


def seeds() -> list[bytes]:
    """Small files of every layout, sound and damaged."""
    event: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 5.125, "dur": 1}
    kernel = {**event, "cat": "kernel", "args": {"stream": 7, "correlation": 3, "shapes": [[1, 2], []], "a": [{}, {}]}}
    flow = {"ph": "s", "id": 3, "pid": 1, "tid": 2, "ts": 5, "cat": "ac2g", "name": "ac2g"}
    label = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": '"},{"'}}
    said = {
        "Collective name": "allreduce",
        "In msg nelems": 9,
        "Seq": 3,
        "External id": 4,
        "Process Group Ranks": "[0]",
    }
    call = {**event, "name": "record_param_comms", "args": said}
    events = [event, kernel, flow, label, call, call]
    trace = {"schemaVersion": 1, "traceEvents": events, "traceName": "x", "baseTimeNanoseconds": 7}
    whole = [
        json.dumps(trace).encode(),
        json.dumps(trace, indent=1).encode(),
        json.dumps(trace, separators=(",", ":")).encode(),
        json.dumps(events).encode(),
        BOM + json.dumps(trace).encode(),
        json.dumps({"traceEvents": [1, None, "x", [], [event], event]}).encode(),
        json.dumps({"traceEvents": []}).encode(),
    ]
    compact = whole[2]
    damaged = [
        compact[:-40],
        compact[: len(compact) // 2],
        compact + compact,
        compact.replace(b"aten::mm", b"a\xff\x01\\q\\ud800"),
        compact.replace(b"5.125", b"NaN"),
        compact.replace(b"aten::mm", b'aten "mm"'),
        gzip.compress(compact, mtime=0),
        gzip.compress(compact, mtime=0)[:-12],
        b"",
        b" \n",
        b"[" * 3000,
        b'[{"ph":"X","args":' + b'{"a":' * 1500,
    ]
    return whole + damaged


@dataclass
class Judge:
    """Reads inputs in a folder of its own and raises AssertionError on what must not be."""

    folder: Path
    executions: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    _unit: int = field(default=0, repr=False)

    def judge(self, data: bytes) -> None:
        """Read an input and judge what came of it.

        Raises:
            AssertionError: the reading breaks a promise. Whatever else is raised breaks one too.
        """
        self.executions += 1
        unit_bytes = UNIT_BYTES[hashlib.sha256(data).digest()[0] % len(UNIT_BYTES)]
        began = time.process_time()
        try:
            reading = self._read(data, unit_bytes, native=True)
        except TraceforgeError:
            self.refused += 1
            reading = None
        seconds = time.process_time() - began
        self.slowest_seconds = max(self.slowest_seconds, seconds)
        assert seconds < MOST_SECONDS, f"it took {seconds:.1f} s"
        if reading is not None:
            judge_counts(reading)
            assert reading.all_said == self._read(data, unit_bytes, native=False).all_said, "the readers differ"
        if not data.startswith(COMPRESSED):
            judge_by_json(data, reading)

    def _read(self, data: bytes, unit_bytes: int, *, native: bool) -> Reading:
        path = self.folder / "input.json"
        path.write_bytes(data)
        batches: list[Batch] = []
        options = ReadOptions(keep_all_args=True)
        summary = read_file(path, batches.append, options, unit_bytes=unit_bytes, batch_rows=100, native=native)
        return Reading(summary, batches)


def judge_counts(reading: Reading) -> None:
    """Rows and counted losses are all events, and every row has a place of its own among them."""
    frames = [batch.rows["event_id"] for batch in reading.batches if batch.table == "raw.occurrence"]
    ids = pl.concat(frames).to_list() if frames else []
    lost = sum(issue.lost_events for issue in reading.summary.issues)
    assert reading.summary.stored_count == len(ids)
    assert reading.summary.event_count == len(ids) + lost
    assert ids == sorted(set(ids))
    assert not ids or (ids[0] >= 0 and ids[-1] < reading.summary.event_count)


_NO_JSON = object()
"""Stands for NaN and Infinity, which `json` reads and JSON does not know: between events they are damage."""


class _TopLevel(list[tuple[str, Any]]):
    """The members of an object, repeated keys included."""


def judge_by_json(data: bytes, reading: Reading | None) -> None:
    """Text that `json` refuses has an issue, or was refused; of valid text every event is there."""
    text = data.removeprefix(BOM).decode("utf-8", "replace")
    try:
        trace = json.loads(text, object_pairs_hook=_TopLevel, parse_constant=lambda _: _NO_JSON)
    except RecursionError:
        return
    except ValueError:
        assert reading is None or reading.summary.issues, "no JSON, and nothing is said about it"
        return
    elements = _elements(trace)
    if elements is None or reading is None:
        assert elements is None, "a trace was refused"
        return
    if _NO_JSON in elements:
        assert reading.summary.issues, "no JSON between events, and nothing is said about it"
        elements = [element for element in elements if element is not _NO_JSON]
    assert reading.summary.event_count == len(elements), f"{reading.summary.event_count} of {len(elements)} events"
    expected = {number: dict(element) for number, element in enumerate(elements) if isinstance(element, _TopLevel)}
    rows = {row["event_id"]: row for row in reading.events}
    assert rows.keys() == expected.keys()
    for number, event in expected.items():
        for key, column in (("name", "name"), ("ph", "phase")):
            value = event.get(key)
            if value is None or (isinstance(value, str) and value.isprintable()):
                assert rows[number][column] == value, f"{column} of event {number}"


def _elements(trace: object) -> list[Any] | None:
    if not isinstance(trace, _TopLevel):
        return trace if isinstance(trace, list) else None
    lists = [value for key, value in trace if key == "traceEvents"]
    if not lists or not all(isinstance(value, list) and not isinstance(value, _TopLevel) for value in lists):
        return None
    return [element for value in lists for element in value]


def mutated(source: random.Random, inputs: list[bytes]) -> bytes:
    """One of the inputs, with a few changes."""
    data = source.choice(inputs)
    for _ in range(source.choice([1, 1, 2, 3, 5, 8])):
        start = source.randint(0, len(data))
        end = min(len(data), start + source.choice([0, 1, 1, 2, 8, 40]))
        changes: tuple[Callable[[], bytes], ...] = (
            lambda: b"",
            lambda: bytes([source.randrange(256)]),
            lambda: source.choice(DICTIONARY),
            lambda piece=data[start:end]: piece + piece,  # type: ignore[misc]
            lambda: source.choice(inputs)[source.randrange(200) :][: source.randrange(100)],
        )
        data = data[:start] + source.choice(changes)() + data[end:]
    return data[:LARGEST_INPUT]


def memory_folder() -> Path | None:
    """A folder that lies in memory, where there is one."""
    return IN_MEMORY if IN_MEMORY.is_dir() else None


def run_alone(judge: Callable[[bytes], None], executions: int, seed: int) -> None:
    """Judge the seeds, then mutations of them."""
    source = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    inputs = seeds()
    for number in range(executions):
        judge(inputs[number] if number < len(inputs) else mutated(source, inputs))


def run_guided(judge: Callable[[bytes], None], executions: int, seed: int, folder: Path) -> None:
    """The same, guided by coverage. Ends the process."""
    import atheris  # type: ignore[import-not-found]

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds()):
        (corpus / f"{number:02}").write_bytes(data)
    tokens = folder / "tokens"
    tokens.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n' for token in DICTIONARY))
    options = [
        f"-runs={executions}",
        f"-seed={seed}",
        f"-max_len={LARGEST_INPUT}",
        f"-dict={tokens}",
        "-rss_limit_mb=0",
    ]
    for function in watched_functions():
        atheris.instrument_func(function)
    leave_imports_alone()
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(corpus)], judge)
    atheris.Fuzz()


def watched_functions() -> list[FunctionType]:
    """The functions of the readers whose branches guide. The collector must still know them: see `leave_imports_alone`.

    Raises:
        AssertionError: it finds none, so that inputs would be made blindly and all be refused.
    """
    functions = [found for found in gc.get_objects() if isinstance(found, FunctionType)]
    watched = [found for found in functions if (found.__module__ or "").startswith("traceforge.sources.kineto")]
    assert watched, "nothing to watch"
    return watched


def leave_imports_alone() -> None:
    """What is imported stays: to look through it time and again took 10 % of the reading. `gc` forgets it by this."""
    gc.freeze()
    gc.set_threshold(OBJECTS_A_COLLECTION)


def main() -> None:
    """Fuzz as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="do without atheris even where it is installed")
    parser.add_argument("--keep", type=Path, default=Path("failed-inputs"), help="folder for inputs that fail")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup` and `&` would have it ignored

    with tempfile.TemporaryDirectory(prefix="traceforge-fuzz-", dir=memory_folder()) as name:
        judge = Judge(Path(name))

        def judge_and_keep(data: bytes) -> None:
            try:
                judge.judge(data)
            except KeyboardInterrupt:
                raise
            except BaseException:
                options.keep.mkdir(parents=True, exist_ok=True)
                kept = options.keep / hashlib.sha256(data).hexdigest()[:16]
                kept.write_bytes(data)
                print(f"failed: {kept}", file=sys.stderr)
                raise

        try:
            if options.alone:
                raise ImportError("not asked for")
            run_guided(judge_and_keep, options.executions, options.seed, Path(name))
        except ImportError:
            leave_imports_alone()
            with contextlib.suppress(KeyboardInterrupt):  # what was done until then is said
                run_alone(judge_and_keep, options.executions, options.seed)
    print(f"{judge.executions} executions, {judge.refused} refused, slowest {judge.slowest_seconds:.2f} s")


if __name__ == "__main__":
    main()
