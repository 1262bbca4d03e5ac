"""Memory of large arrays. In: nothing. Out: a C library that gives them back to the system once nobody needs them.

Idea: after it has freed one large block, glibc keeps the next ones of up to 32 MiB, in pieces that fit nothing later:
a rank of 2 million events took twice the memory of its arrays. A fixed limit leaves each large array its own pages; of
smaller ones it gives back what it is asked for, between two tables, whenever the process has grown. Threads share one
arena, as what is free in one helps no other; there is little to share, as polars and DuckDB bring allocators of their
own, which are told to give back what is free.
Not handled: other C libraries, which are left as they are.
"""

import ctypes
import os
from pathlib import Path

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of malloc.h
# jemalloc, as polars builds it in, else keeps free pages for ten seconds and longer.
_OF_POLARS, _AT_ONCE = "_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0"
# What polars, imported by the process that started this one, has left there of its own.
_BY_POLARS = "dirty_decay_ms:500,muzzy_decay_ms:1000"
_LARGE_BYTES = 4 * 1024 * 1024
_WORTH_TRIMMING_BYTES = 192 * 1024 * 1024
_WORTH_ANOTHER_BYTES = 16 * 1024 * 1024


class _Trimmer:
    """When to trim again: it walks the whole heap, which costs more than a small table, and finds little soon after."""

    def __init__(self) -> None:
        self._floor_bytes = 0

    def trim(self) -> bool:
        """Trim where this process holds much, and more than after the last time; whether it did."""
        held_bytes = _held_bytes()
        self._floor_bytes = min(self._floor_bytes, held_bytes)
        if held_bytes >= max(_WORTH_TRIMMING_BYTES, self._floor_bytes + _WORTH_ANOTHER_BYTES):
            ctypes.CDLL(None).malloc_trim(0)
            self._floor_bytes = _held_bytes()
            return True
        return False


_TRIMMER = _Trimmer()


def give_back_freed() -> bool:
    """Where this process came to hold much, have pages that hold nothing any more go back to the system.

    Returns:
        Whether it came to hold much; others that keep free pages may then let go of theirs, too.
    """
    try:
        return _TRIMMER.trim()
    except (AttributeError, OSError, TypeError):
        return False


def _held_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def give_back_large_arrays() -> None:
    """Have this process do so; for processes that are ours alone, as it holds for all that they do.

    To be called before polars is imported: its own allocator reads once how long to keep what is free.
    """
    asked = os.environ.get(_OF_POLARS, "").removeprefix(_BY_POLARS).strip(",")
    os.environ[_OF_POLARS] = asked or _AT_ONCE
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for setting, value in ((_MMAP_THRESHOLD, _LARGE_BYTES), (_ARENA_MAX, 1)):
        mallopt(ctypes.c_int(setting), ctypes.c_int(value))
