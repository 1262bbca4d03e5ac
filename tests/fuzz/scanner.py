"""Fuzzing of the scanner in C alone, millions of units of text, under sanitizers of memory and of undefined behaviour.

`python -m tests.fuzz.scanner --executions 5000000 --seed 1` builds the scanner with gcc's AddressSanitizer and UBSan in
a temporary folder and starts itself again with them; any report of theirs ends it. One scanner reads unit after unit,
as that of a file does, and its rows, kinds and calls are taken and forgotten now and then.

Judged of each unit: no sanitizer speaks; what is read is sound JSON; and it has as many rows as it has events.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.conftest import ROOT
from tests.fuzz.kineto import DICTIONARY

NATIVE = ROOT / "traceforge" / "sources" / "kineto" / "native"
_FLAGS = ("-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC")
_BUILT = "TRACEFORGE_FUZZED_SCANNER"
_LARGEST_UNIT = 1024
_UNITS_A_BATCH = 64
_BATCHES_A_FILE = 16
_elements = msgspec.json.Decoder(list[msgspec.Raw])


def units() -> list[bytes]:
    """Text of plain events: all columns, arguments, calls of communication, spellings and blanks."""
    event: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 5.125, "dur": 1}
    numbers = {"External id": 3, "stream": 7, "device": 0, "correlation": 3, "bytes": 64, "Record function id": 9}
    kernel = {**event, "cat": "kernel", "args": {**numbers, "shapes": [[1, 2], []], "a": [{}, {"b": None}]}}
    flow = {"ph": "s", "id": 3, "pid": "x", "tid": -2, "ts": 5, "cat": "ac2g", "name": "ac2g", "bp": "e"}
    label = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "a\\u00e9 \u20ac"}}
    said = {"Collective name": "allreduce", "In msg nelems": 9, "Seq": 3, "Process Group Ranks": "[0]", "dtype": "Int"}
    call = {**event, "name": "record_param_comms", "args": said}
    listed = ([event], [kernel], [flow, label], [call, {**call, "args": {**said, "Seq": 4}}], [event, kernel, flow])
    texts = [json.dumps(one).encode()[1:-1] for one in listed]
    texts += [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode()[1:-1] for one in listed]
    return [*texts, json.dumps([kernel], indent=1).encode()[2:-2]]


def changed_unit(source: random.Random, inputs: list[bytes]) -> bytes:
    """One of the units with one or more small changes."""
    data, draw = inputs[int(source.random() * len(inputs))], source.random
    for _ in range(1 + int(draw() * draw() * draw() * 5)):
        start, kind = int(draw() * (len(data) + 1)), int(draw() * 5)
        end = start + int(draw() * draw() * 24)
        if kind == 0:
            new = b""
        elif kind == 1:
            new = bytes((int(draw() * 256),))
        elif kind == 2:
            new = DICTIONARY[int(draw() * len(DICTIONARY))]
        elif kind == 3:
            new = data[start:end] * 2
        else:
            other = inputs[int(draw() * len(inputs))]
            place = int(draw() * len(other))
            new = other[place : place + int(draw() * 80)]
        data = data[:start] + new + data[end:]
    return data[:_LARGEST_UNIT]


class Judge:
    """Has one scanner read units; raises AssertionError on what must not be.

    Args:
        scanner: the type to make scanners of.

    Attributes:
        executions: units that were read or declined.
        read: those that were read.
    """

    def __init__(self, scanner: Any) -> None:
        self._scanner_type = scanner
        self._scanner = scanner()
        self.executions = self.read = 0

    def judge(self, unit: bytes) -> None:
        """Read a unit, and judge what came of it."""
        self.executions += 1
        scanner = self._scanner
        before = scanner.row_count
        new = scanner.scan(unit, self.executions)
        if new is not None:
            self.read += 1
            asks = bytes((self.executions + place) % 4 for place in range(len(new)))
            scanner.settle(list(range(len(new))), asks, self.executions % 3 == 0)
            found = scanner.row_count - before
            assert found == len(_elements.decode(b"[%b]" % unit)), f"{found} rows"
        if self.executions % _UNITS_A_BATCH == 0:
            self._end_batch()

    def _end_batch(self) -> None:
        self._scanner.take()
        self._scanner.take_texts()
        batch = self.executions // _UNITS_A_BATCH
        if batch % 3 == 0:
            self._scanner.forget_kinds()
        if batch % 4 == 0:
            self._scanner.forget_calls()
        if batch % _BATCHES_A_FILE == 0:
            self._scanner = self._scanner_type()


def built(folder: Path) -> Path:
    """The scanner with sanitizers, compiled."""
    path = folder / "_scanner.abi3.so"
    sources = sorted(map(str, NATIVE.glob("*.c")))
    include = sysconfig.get_paths()["include"]
    subprocess.run(["gcc", *_FLAGS, f"-I{include}", *sources, "-o", str(path)], check=True)
    return path


def run_with_sanitizers() -> int:
    """This command again, in a process that the sanitizers watch."""
    with tempfile.TemporaryDirectory(prefix="traceforge-fuzz-") as folder:
        library = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        watched = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
        environment = {**os.environ, **watched, _BUILT: str(built(Path(folder)))}
        words = [sys.executable, "-m", "tests.fuzz.scanner", *sys.argv[1:]]
        return subprocess.run(words, env=environment, check=False).returncode


def loaded(path: str) -> Any:
    """The type Scanner of an extension on disk."""
    name = "traceforge.sources.kineto.native._scanner"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.Scanner


def main() -> int:
    """Fuzz as the command line asks; not 0 if a unit failed, which is printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if _BUILT not in os.environ:
        return run_with_sanitizers()
    judge, inputs = Judge(loaded(os.environ[_BUILT])), units()
    source = random.Random(options.seed)  # noqa: S311 - to be repeated, not to be secret
    for _ in range(options.executions):
        unit = changed_unit(source, inputs)
        is_sound = False
        try:
            judge.judge(unit)
            is_sound = True
        finally:
            if not is_sound:
                print(f"failed: {unit!r}", file=sys.stderr)
        if judge.executions % 1_000_000 == 0:
            print(f"{judge.executions} units, {judge.read} read, {time.process_time():.0f} CPU s", flush=True)
    print(f"{judge.executions} units, {judge.read} read, 0 failed, {time.process_time():.0f} CPU s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
