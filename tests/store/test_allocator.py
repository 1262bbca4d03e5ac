"""Freed memory goes back to the system when a process has grown, and not after each of one hundred small tables."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from traceforge.store import allocator, database
from traceforge.store.database import Store

MIB = 1024 * 1024
POLARS, OURS = "dirty_decay_ms:500,muzzy_decay_ms:1000", "dirty_decay_ms:0,muzzy_decay_ms:0"


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Megabytes held when the heap was trimmed, of a process that holds `held[0]` and keeps all of it."""
    made: list[int] = []
    library = type("Library", (), {"malloc_trim": lambda _self, _pad: made.append(allocator._held_bytes() // MIB)})
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _name: library())
    return made


def held(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(allocator, "_held_bytes", lambda: mib * MIB)


def test_a_process_is_trimmed_each_time_it_has_grown_by_16_mib_beyond_192(
    monkeypatch: pytest.MonkeyPatch, trims: list[int]
) -> None:
    # held   100  191  192  200  207  208  220  150  185  192  (MiB)
    # trim              x              x                   x   (grown by 16 since the last, or since it shrank)
    trimmer = allocator._Trimmer()
    trimmed = []
    for mib in (100, 191, 192, 200, 207, 208, 220, 150, 185, 192):
        held(monkeypatch, mib)
        trimmed += [mib] if trimmer.trim() else []

    assert trims == trimmed == [192, 208, 192]


@pytest.mark.parametrize("has_grown", [True, False])
def test_where_the_process_has_grown_the_database_lets_go_of_what_it_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_grown: bool
) -> None:
    released: list[bool] = []
    with Store(f"{tmp_path}/night/") as store:
        monkeypatch.setattr(database, "give_back_freed", lambda: has_grown)
        monkeypatch.setattr(store, "release_memory", lambda: released.append(True))

        store.release_beyond()

    assert released == [True] * has_grown


def test_a_system_without_malloc_trim_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_TRIMMER", allocator._Trimmer())
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _name: object())
    held(monkeypatch, 500)

    allocator.give_back_freed()


def test_large_arrays_have_pages_of_their_own_and_threads_share_one_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    library = SimpleNamespace(mallopt=lambda setting, value: asked.update({setting.value: value.value}))
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _name: library)
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "")

    allocator.give_back_large_arrays()

    # M_MMAP_THRESHOLD and M_ARENA_MAX of malloc.h
    assert asked == {-3: 4 * MIB, -8: 1}


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ("", OURS),
        (POLARS, OURS),  # polars in the process that started this one
        (f"{POLARS},{OURS}", OURS),  # the same in a process of ours
        ("dirty_decay_ms:2000", "dirty_decay_ms:2000"),  # somebody's own
    ],
)
def test_polars_gives_back_what_is_free_unless_somebody_asked_for_something_else(
    monkeypatch: pytest.MonkeyPatch, found: str, left: str
) -> None:
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _name: object())
    monkeypatch.setenv("_RJEM_MALLOC_CONF", found)

    allocator.give_back_large_arrays()

    assert os.environ["_RJEM_MALLOC_CONF"] == left


def test_polars_sets_what_is_known_of_it() -> None:
    code = "import os, polars; print(os.environ['_RJEM_MALLOC_CONF'])"
    environment = {name: value for name, value in os.environ.items() if name != "_RJEM_MALLOC_CONF"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == POLARS
