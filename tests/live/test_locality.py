"""Where a process runs, and what time it is: read from files and clocks of the machine, and again and again."""

import json
import zlib
from pathlib import Path

from traceforge.live.clock import Anchor, read_anchor
from traceforge.live.layout import HEAD, MAGIC
from traceforge.live.locality import locality
from traceforge.live.writer import LogWriter


def _machine(root: Path) -> Path:
    """Two NUMA nodes; a NIC on the second, and a bridge, which is no hardware."""
    for node, cores, distance in ((0, "0-63", "10 21"), (1, "64-127", "21 10")):
        folder = root / f"devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cores)
        (folder / "distance").write_text(distance)
    device = root / "devices/pci0000:80/0000:81:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    for name in ("eth0", "docker0"):
        (root / "class/net" / name).mkdir(parents=True)
    (root / "class/net/eth0/device").symlink_to(device)
    return root


def test_a_rank_knows_its_node_and_how_far_its_nic_is(tmp_path: Path) -> None:
    # given cores 0 to 63 on node 0, to which this process's first core belongs, and a NIC on node 1
    told = locality({"NCCL_DEBUG": "INFO", "API_TOKEN": "secret", "OMP_NUM_THREADS": "4"}, _machine(tmp_path))

    assert told["numa_nodes"] == [0]
    assert told["nics"] == [{"name": "eth0", "pci": "0000:81:00.0", "numa_node": 1, "distance": 21}]
    assert told["environment"] == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "4"}


def test_the_wall_clock_is_read_between_the_two_closest_readings() -> None:
    # given an interruption of 1 ms in the second try, and readings 10 ns apart in all others
    now = 0
    readings: list[int] = []

    def monotonic() -> int:
        nonlocal now
        now += 1_000_000 if len(readings) == 3 else 5
        readings.append(now)
        return now

    anchor = read_anchor(monotonic, lambda: 7_000 + now)

    assert anchor.epoch_ns - anchor.monotonic_ns in range(6_995, 7_006)


def test_each_flush_reads_the_clocks_anew(tmp_path: Path) -> None:
    # given a wall clock that somebody sets between two flushes
    anchors = iter([Anchor(1, 100), Anchor(2, 101), Anchor(3, 5_000)])
    with (tmp_path / "rank0.live").open("ab", buffering=0) as file:
        writer = LogWriter(file, {}, anchor=lambda: next(anchors))
        for at in (1, 2):
            writer.queue.put((0, 0, at, at + 1, at, 0, 0))
            writer.flush()

    told = [fact["clock"] for fact in _facts(tmp_path / "rank0.live") if "clock" in fact]
    assert told == [[[1, 100]], [[2, 101]], [[3, 5_000]]]


def _facts(path: Path) -> list[dict[str, object]]:
    content, place, found = path.read_bytes(), len(MAGIC), []
    while place < len(content):
        _, kind, size, _, _ = HEAD.unpack_from(content, place)
        place += HEAD.size
        if kind == b"FACT":
            found.append(json.loads(zlib.decompress(content[place : place + size])))
        place += size
    return found
