"""How far readers have come is told while they read."""

import os
import time
from pathlib import Path

from traceforge.store.meter import Meter, read_meters, watched

MIB = 1024 * 1024


def _spool(tmp_path: Path, *names: str) -> list[Path]:
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir()
    return folders


def test_counts_of_all_readers_add_up(tmp_path: Path) -> None:
    # given two readers, one of which has consumed 3 MiB in two pieces, the other 5 MiB
    first, second = (Meter(folder) for folder in _spool(tmp_path, "0", "1"))
    first(MIB)
    first(2 * MIB)
    second(5 * MIB)

    consumed, memory_bytes = read_meters(tmp_path)

    # then both count, and the memory of the one process that runs them counts once
    assert consumed == 8 * MIB
    assert MIB < memory_bytes < 2**40


def test_memory_of_processes_adds_up(tmp_path: Path) -> None:
    (folder,) = _spool(tmp_path, "0")
    alone = read_meters(tmp_path)[1]
    (folder / "meter").write_text(f"7 {os.getpid() + 1} {50 * MIB}")

    assert read_meters(tmp_path)[0] == 7
    assert read_meters(tmp_path)[1] >= alone + 50 * MIB


def test_a_file_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    for folder, text in zip(_spool(tmp_path, "0", "1"), ("", "12 34"), strict=True):
        (folder / "meter").write_text(text)

    assert read_meters(tmp_path)[0] == 0


def test_progress_is_told_while_the_block_runs(tmp_path: Path) -> None:
    told: list[int] = []
    with watched(tmp_path, lambda consumed, _memory: told.append(consumed)):
        Meter(*_spool(tmp_path, "0"))(4 * MIB)
        until = time.monotonic() + 10
        while 4 * MIB not in told and time.monotonic() < until:
            time.sleep(0.01)

    assert told[-1] == 4 * MIB
