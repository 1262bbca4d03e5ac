"""A Dask cluster of real processes for tests. In: how many workers. Out: its address on standard output, until it ends.

`python -m tests.local_cluster 2 /scratch`; it ends with its standard input. `started` runs it for a test. The scheduler
gives a task up when the second worker dies of it, where usually the fourth has to.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

_END_S = 30


@contextmanager
def started(scratch: Path, workers: int = 2) -> Iterator["tuple[str, subprocess.Popen[str]]"]:
    """The address of a cluster, as `--executor` takes it, and the process of its scheduler."""
    command = [sys.executable, "-m", "tests.local_cluster", str(workers), str(scratch)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            with suppress(ProcessLookupError):  # what does not end by itself, as workers do that just start again
                os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Dying:
    """A source in whose reader workers die, after its first rows.

    Attributes:
        inner: reads the files.
        deaths: how many in all, by the name of a file.
        marks: folder where each death is counted; the process of the test sees it, too.
    """

    inner: object
    deaths: dict[str, int]
    marks: Path

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name in ("inner", "deaths", "marks"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def read(self, path: Path, emit: object, options: object) -> object:
        """Read, and perhaps die of it."""

        def emit_and_die(batch: object) -> None:
            emit(batch)  # type: ignore[operator]
            for death in range(self.deaths.get(path.name, 0)):
                mark = self.marks / f"{path.name}-{death}"
                if not mark.exists():
                    mark.touch()
                    time.sleep(1)  # a nanny that has not quite begun would give up a worker that dies so early
                    os.kill(os.getpid(), 9)

        return self.inner.read(path, emit_and_die, options)  # type: ignore[attr-defined]


def main(arguments: Sequence[str]) -> None:
    """Run the cluster until standard input ends."""
    import dask
    from distributed import LocalCluster

    workers, scratch = arguments
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.deploy.lost-worker-timeout": "10 minutes",  # a busy machine takes its time to start one again
        "temporary-directory": scratch,
    }
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=int(workers), threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        print(cluster.scheduler_address.replace("tcp://", "dask://"), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
