"""One scenario from start to end: ranks in their hosts, and the network switched at the right steps.

In:   a scenario and a folder for raw output.
Out:  each rank's files in that folder, and the `Switched` times of the network fault.
Idea: rank 0 says on a pipe that a step begins. A change is made a few ms later, while every rank is in the
      forward pass and the network is silent, so no rank is held up and no step is marked by the switching.
Not:  faults inside a rank (`workload.py`).
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lab import PORT, Lab, Switch, address, host, outsider, rack, switch_port
from scenarios import NIC_BITS_PER_S, UPLINK_BITS_PER_S, Scenario

HERE = Path(__file__).resolve().parent
MASTER_PORT = 29500
TRAFFIC_PORT = 5201
SETTLE_S = 0.006
"""From the begin of a step to the change: every rank has left the last all-reduce, none is in the next."""
LONGEST_RUN_S = 300


class RecordingError(RuntimeError):
    """A run did not end as it should; the text carries the process's own last words."""


@dataclass
class Switched:
    """When the network fault went on and off (monotonic ns, 0: never), and what it measured."""

    on_ns: int = 0
    off_ns: int = 0
    measured: dict[str, int] = field(default_factory=dict)


class Fault(Protocol):
    """Something in the network that can be on or off."""

    def on(self) -> None:
        """Begin."""

    def off(self) -> dict[str, int]:
        """End; return what was measured while it was on."""

    def close(self) -> None:
        """Leave no process behind; raise `LabError` if an order was refused."""


class SlowNic:
    """The token buckets of both directions of one host's cable."""

    def __init__(self, rank: int, rack_number: int, slow_bits_per_s: int) -> None:
        """Open both ends."""
        self.slow_bits_per_s = slow_bits_per_s
        self.ends = (Switch(host(rank), PORT), Switch(rack(rack_number), switch_port(host(rank))))

    def on(self) -> None:
        """Go slow."""
        for end in self.ends:
            end.set_rate(self.slow_bits_per_s)

    def off(self) -> dict[str, int]:
        """Stay slow: the scenario runs to the end."""
        return {}

    def close(self) -> None:
        """End both `tc`."""
        for end in self.ends:
            end.close()


class OtherTraffic:
    """TCP flows from the outsider in rack 0 to the one in rack 1."""

    def __init__(self, flows: int) -> None:
        """Connect; nothing is sent yet."""
        self.processes: list[subprocess.Popen[str]] = []
        self._start(1, "receive", str(TRAFFIC_PORT))
        self.sender = self._start(0, "send", address(outsider(1)), str(TRAFFIC_PORT), str(flows))

    def _start(self, number: int, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            inside(outsider(number), str(HERE / "traffic.py"), *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout  # noqa: S101 - made with a pipe above
        if process.stdout.readline().strip() != "ready":
            self.close()
            raise RecordingError("the competing traffic could not connect; are both racks up?")
        return process

    def on(self) -> None:
        """Send."""
        self._say("go")

    def off(self) -> dict[str, int]:
        """Stop sending; return bytes sent and the time it took."""
        self._say("stop")
        assert self.sender.stdout  # noqa: S101 - made with a pipe above
        measured: dict[str, int] = json.loads(self.sender.stdout.readline())
        return measured

    def close(self) -> None:
        """End sender and receiver."""
        for process in self.processes:
            process.kill()
            process.wait()

    def _say(self, word: str) -> None:
        assert self.sender.stdin  # noqa: S101 - made with a pipe above
        self.sender.stdin.write(word + "\n")
        self.sender.stdin.flush()


def inside(namespace: str, program: str, *words: str) -> list[str]:
    """Return the command that runs one of our programs in a namespace."""
    return ["ip", "netns", "exec", namespace, sys.executable, program, *words]


def run(scenario: Scenario, out: Path, pace: str = "") -> Switched:
    """Record one scenario into `out`, its ranks paced where `pace` says how; raise `RecordingError` if one fails."""
    with Lab(ranks=scenario.ranks, nic_bits_per_s=NIC_BITS_PER_S, uplink_bits_per_s=UPLINK_BITS_PER_S) as lab:
        fault = make_fault(scenario, lab)
        ranks: list[subprocess.Popen[bytes]] = []
        try:
            steps = start_ranks(scenario, out, ranks, pace)
            switched = follow(scenario, steps, fault)
            for rank, process in enumerate(ranks):
                await_rank(rank, process, out)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
            if fault:
                fault.close()
        return switched


def start_ranks(scenario: Scenario, out: Path, started: list[subprocess.Popen[bytes]], pace: str) -> Iterator[str]:
    """Start all ranks, each at once in `started`; return the step numbers that rank 0 will say, as lines."""
    read_end, write_end = os.pipe()
    started.extend(start_rank(scenario, rank, out, write_end, pace) for rank in range(scenario.ranks))
    os.close(write_end)
    return os.fdopen(read_end)


def make_fault(scenario: Scenario, lab: Lab) -> Fault | None:
    """Return the network fault of a scenario, off, or None if it has none."""
    if scenario.traffic_flows:
        return OtherTraffic(scenario.traffic_flows)
    if scenario.slow_nic_bits_per_s and scenario.rank is not None:
        return SlowNic(scenario.rank, lab.rack_of(scenario.rank), scenario.slow_nic_bits_per_s)
    return None


def start_rank(scenario: Scenario, rank: int, out: Path, step_pipe: int, pace: str) -> subprocess.Popen[bytes]:
    """Start one rank in its host; only rank 0 gets the pipe."""
    words = ["--scenario", scenario.name, "--rank", str(rank), "--out", str(out)]
    if pace:
        words += ["--pace", pace]
    if rank == 0:
        words += ["--step-pipe", str(step_pipe)]
    unshare = ["unshare", "--uts", sys.executable, str(HERE / "train.py"), *words]
    quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    gib = str(2**30)
    keep_pages = {"MALLOC_TRIM_THRESHOLD_": gib, "MALLOC_MMAP_THRESHOLD_": gib, "MALLOC_ARENA_MAX": "1"}
    group = {"MASTER_ADDR": address(host(0)), "MASTER_PORT": str(MASTER_PORT), "GLOO_SOCKET_IFNAME": PORT}
    with (out / f"rank{rank}.log").open("wb") as log:
        return subprocess.Popen(
            ["ip", "netns", "exec", host(rank), *unshare],
            env=os.environ | quiet | keep_pages | group,
            pass_fds=[step_pipe] if rank == 0 else [],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def follow(scenario: Scenario, steps: Iterator[str], fault: Fault | None) -> Switched:
    """Read step numbers until the pipe closes; switch the fault as the scenario says."""
    switched = Switched()
    for line in steps:
        if fault is None or not scenario.steps:
            continue
        if int(line) == scenario.steps[0]:
            time.sleep(SETTLE_S)
            switched.on_ns = time.monotonic_ns()
            fault.on()
        elif int(line) == scenario.steps[-1] + 1:
            time.sleep(SETTLE_S)
            switched.off_ns = time.monotonic_ns()
            switched.measured = fault.off()
    return switched


def await_rank(rank: int, process: subprocess.Popen[bytes], out: Path) -> None:
    """Wait for a rank's end; raise with the last lines it wrote if it failed."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=LONGEST_RUN_S)
    if process.returncode:
        last = (out / f"rank{rank}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
        raise RecordingError(f"rank {rank} ended with {process.returncode}:\n  " + "\n  ".join(last))
    if process.returncode is None:
        raise RecordingError(f"rank {rank} still runs after {LONGEST_RUN_S} s; see whether all ranks connect")
