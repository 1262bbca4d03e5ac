"""Progress processes that spin on another core while a rank waits, as polling drivers do: `busy_wait.py FLAG CORE`.

In:   a file of one byte in shared memory: 1 spin, 0 rest, 2 end.
Out:  load on the core. They are processes because a thread would hold the interpreter while it is preempted, and so
      hold up its own rank, too.
Not:  anything useful.
"""

import contextlib
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

REST, SPIN, END = 0, 1, 2
POLL_S = 1e-4


class BusyWait:
    """Processes that spin, told by a flag when to."""

    def __init__(self, flag: Path, core: int, count: int) -> None:
        """Start them; they rest until told to spin."""
        flag.write_bytes(bytes([REST]))
        self.flag = open_flag(flag)
        words = [sys.executable, __file__, str(flag), str(core)]
        # In sessions of their own each has as great a share of the core as the rank whose core it is.
        self.processes = [subprocess.Popen(words, start_new_session=True) for _ in range(count)]

    def spin(self, *, is_on: bool) -> None:
        """Begin to spin, or rest."""
        self.flag[0] = SPIN if is_on else REST

    def close(self) -> None:
        """End the processes."""
        self.flag[0] = END
        for process in self.processes:
            process.wait()


def open_flag(path: Path) -> mmap.mmap:
    """Map the flag."""
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 1)


def main() -> None:
    """Spin or rest until told to end, or until the rank is gone."""
    os.sched_setaffinity(0, {int(sys.argv[2])})
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("-15", encoding="ascii")
    flag = open_flag(Path(sys.argv[1]))
    parent = os.getppid()
    while flag[0] != END and os.getppid() == parent:
        if flag[0] == REST:
            time.sleep(POLL_S)


if __name__ == "__main__":
    main()
