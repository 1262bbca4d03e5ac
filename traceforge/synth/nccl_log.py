"""NCCL's debug logs. In: a job that was run. Out: the lines each rank prints, level INFO, subsystems that carry data.

    version, settings, NICs · each communicator's init: machine, rings, trees, connections · one line a collective, in
    the order in which the program issues them; rank 0 of each communicator adds the algorithm that was chosen

The logs begin some seconds before the timeline: with a barrier of all ranks and the parameters' broadcast. Not written:
warnings, proxy threads' traffic, user buffers' registration; sends and receives, of which an all-to-all consists.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count

from traceforge.synth.cluster import LINKS, CollectiveOp, Group
from traceforge.synth.fault import wiring_of
from traceforge.synth.nccl_channels import Communicator, communicator_of
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.nccl_machine import address, direct_access, nics, topology
from traceforge.synth.scenario import Scenario, SimulatedJob
from traceforge.synth.wiring import Wiring

_BASE_NS = 1_735_689_600_000_000_000
_EVENTS_START_NS = 10_000_000_000
_INIT_START_NS = 2_000_000_000
_LINE_NS = 40_000
_BFLOAT16, _UINT8 = 9, 1
_LARGE_BYTES, _SMALL_BYTES = 4_194_304, 65_536
_TREE, _RING, _LL, _LL128, _SIMPLE = 0, 1, 0, 1, 2
_ALGORITHMS, _PROTOCOLS = ("TREE", "RING"), ("LL", "LL128", "SIMPLE")

OPERATIONS: dict[CollectiveOp, str] = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"
}  # fmt: skip
"""As NCCL names collectives."""

Line = tuple[int, str]
"""When a line is printed, by the rank's clock in ns since the base, and its text."""


def log_files(job: SimulatedJob, settings: NcclLogs) -> Iterator[tuple[str, str]]:
    """Name and text of each log.

    Raises:
        UsageError: the version is not known, or cannot print what is asked for.
    """
    cluster = job.scenario.cluster
    printed = {rank: list(_Process(job, rank, settings).lines()) for rank in range(cluster.ranks)}
    if not settings.by_host:
        for rank, lines in printed.items():
            yield f"nccl.{cluster.host_of(rank)}.{_pid(rank)}.log", _text(lines)
        return
    for node in range(cluster.nodes):
        own = [lines for rank, lines in printed.items() if cluster.node_of(rank) == node]
        yield f"nccl.node{node}.log", _text(heapq.merge(*own, key=lambda line: line[0]))


def _text(lines: Iterator[Line] | list[Line]) -> str:
    return "".join(f"{text}\n" for _, text in lines)


def _pid(rank: int) -> int:
    return 1_000 + rank


@dataclass(slots=True)
class _Side:
    """A rank's side of a communicator.

    Attributes:
        group: its kind, number and ranks; kind None for the one of all ranks that no collective of the program uses.
        rank: rank in the communicator.
        pointer: of the communicator object.
        stream: of its collectives.
        op_count: launches so far.
        is_connected: whether rings and trees are connected.
    """

    communicator: Communicator
    group: Group | None
    rank: int
    pointer: int
    comm_hash: int
    stream: int
    op_count: int = 0
    is_connected: bool = False


class _Process:
    """What one rank prints."""

    def __init__(self, job: SimulatedJob, rank: int, settings: NcclLogs) -> None:
        scenario = job.scenario
        self._job, self._rank, self._settings = job, rank, settings
        self._grammar = settings.grammar()
        self._wiring = wiring_of(scenario.cluster, scenario.faults, scenario.iterations)
        self._node = scenario.cluster.node_of(rank)
        self._device = self._wiring.device(rank)
        self._head = f"{scenario.cluster.host_of(rank)}:{_pid(rank)}:"
        self._now_ns = _INIT_START_NS + 7_000 * rank
        numbers = count(0)
        self._sides = [
            _side(scenario, self._wiring, group, rank, next(numbers))
            for group in groups_of(scenario)
            if rank in (group.ranks if group else range(scenario.cluster.ranks))
        ]

    def lines(self) -> Iterator[Line]:
        """All lines, in order."""
        yield from self._start()
        for number, side in enumerate(self._sides):
            yield from self._init(side, _pid(self._rank) + 50 + number)
        yield from self._before_training()
        yield from self._training()

    def _line(self, message: str, tid: int | None = None) -> Line:
        self._now_ns += _LINE_NS
        text = f"{self._head}{tid or _pid(self._rank)} [{self._device}] NCCL INFO {message}"
        return self._now_ns, (self._stamp() if self._settings.stamped else "") + text

    def _stamp(self) -> str:
        seconds, rest = divmod(_BASE_NS + self._now_ns, 1_000_000_000)
        return f"[{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1_000:06}] "

    def _start(self) -> Iterator[Line]:
        yield self._line("cudaDriverVersion 12080")
        for name, value in self._wiring.settings.get(self._node, {}).items():
            yield self._line(f"{name} set by environment to {value}.")
        yield self._line("NCCL_SOCKET_IFNAME set by environment to eth0")
        yield self._line(f"{self._grammar.bootstrap} eth0:{address(self._node)}<0>")
        if self._grammar.banner_has_head:
            yield self._line(self._grammar.banner)
        elif self._rank == 0:
            yield self._now_ns, self._grammar.banner
        for message in nics(self._wiring, self._node):
            yield self._line(message)

    def _init(self, side: _Side, tid: int) -> Iterator[Line]:
        name = (
            f"ncclCommInitRankConfig comm {side.pointer:#x} rank {side.rank} nranks {len(side.communicator.ranks)} "
            f"cudaDev {self._device} nvmlDev {self._device} busId {self._wiring.gpu_bus(self._device):x} "
            f"commId {side.comm_hash:#x}"
        )
        start_ns = self._now_ns
        for message in self._grammar.network:
            yield self._line(message, tid)
        yield self._line(f"{name} - Init START", tid)
        for message in self._built(side):
            yield self._line(message, tid)
        if not self._grammar.connects_late:
            yield from self._connect(side, tid)
        yield self._line(
            f"{len(side.communicator.channels)} coll channels, 0 collnet channels, 0 nvls channels, "
            f"{len(side.communicator.channels)} p2p channels, 2 p2p channels per peer",
            tid,
        )
        yield self._line(f"{name} - Init COMPLETE", tid)
        if self._grammar.has_timings:
            total = (self._now_ns - start_ns) / 1e9 + 0.4
            yield self._line(
                f"Init timings - ncclCommInitRankConfig: rank {side.rank} nranks {len(side.communicator.ranks)} total "
                f"{total:.2f} (kernels 0.21, alloc 0.11, bootstrap 0.05, allgathers 0.01, topo {total - 0.4:.2f}, "
                "graphs 0.00, connections 0.01, rest 0.01)",
                tid,
            )

    def _built(self, side: _Side) -> Iterator[str]:
        """What an init finds and decides."""
        built, rank = side.communicator, side.rank
        yield from topology(built, self._node)
        if len(built.nodes) > 1:
            yield from direct_access(self._wiring, self._rank, self._grammar)
        local = built.local(self._node)
        yield f"Setting affinity for GPU {self._device} to {'ff00' if self._wiring.socket(self._device) else 'ff'}"
        yield (
            f"comm {side.pointer:#x} rank {rank} nRanks {len(built.ranks)} nNodes {len(built.nodes)} "
            f"localRanks {len(local)} localRank {local.index(rank)} MNNVL 0"
        )
        if rank == 0:
            for channel in built.channels:
                order = "".join(f"{one:5}" for one in channel.order)
                yield f"Channel {channel.number:02}/{len(built.channels):02} :{order[:128]}"
        for channel in built.channels:
            yield f"Ring {channel.number:02} : {channel.previous(rank)} -> {rank} -> {channel.next(rank)}"
        trees = []
        for channel in built.channels:
            below = [*channel.children(rank), -1, -1, -1][:3]
            trees.append(f"[{channel.number}] {'/'.join(map(str, below))}->{rank}->{channel.parent[rank]}")
        yield f"Trees {' '.join(trees)}"
        yield f"P2P Chunksize set to {131072 if len(built.nodes) > 1 else 524288}"

    def _connect(self, side: _Side, tid: int) -> Iterator[Line]:
        """Rings first, then what trees need beyond them."""
        side.is_connected = True
        built = side.communicator
        for in_trees, word in ((False, "rings"), (True, "trees")):
            for channel in built.channels:
                for source, target in built.ends(channel, side.rank, in_trees=in_trees):
                    receives = target == side.rank
                    via = built.via(channel, source, target, receives=receives)
                    # Within a host, only the sender logs how it reaches the other.
                    if receives and not via.startswith("NET"):
                        continue
                    word_of_end = f" [{'receive' if receives else 'send'}]" if via.startswith("NET") else ""
                    index = "" if via.startswith("SHM") else "/0"
                    yield self._line(
                        f"Channel {channel.number:02}{index} : {source}[{built.device(source)}] -> "
                        f"{target}[{built.device(target)}]{word_of_end} via {via}",
                        tid,
                    )
            relays = int(self._wiring.relays(self._node))
            more = f", use ring PXN {relays} GDR 1" if self._grammar.connects_late and word == "rings" else ""
            yield self._line(f"Connected all {word}{more}", tid)

    def _before_training(self) -> Iterator[Line]:
        """A barrier of all ranks, and the parameters' broadcast within each data-parallel group."""
        first = self._sides[0]
        yield from self._call(first, "AllReduce", 1, 1, _UINT8)
        for side in self._sides:
            if side.group is not None and side.group.kind == "data_parallel":
                yield from self._call(side, "Broadcast", 0, self._job.scenario.workload.gradient_bytes // 2, _BFLOAT16)

    def _training(self) -> Iterator[Line]:
        shown = self._job.clocks.read(self._job.events.call_start_ns, self._rank) + _EVENTS_START_NS
        by_kind = {side.group.kind: side for side in self._sides if side.group is not None}
        for i in range(len(shown)):
            for n, operation in enumerate(self._job.program_of(self._rank)):
                if operation.collective in OPERATIONS and operation.group in by_kind and not operation.parts:
                    side, op = by_kind[operation.group], OPERATIONS[operation.collective]
                    self._now_ns = max(self._now_ns, int(shown[i, n]) - _LINE_NS)
                    # Of what is gathered or scattered, NCCL counts the part of a rank.
                    share = 1 if op == "AllReduce" else len(side.communicator.ranks)
                    yield from self._call(side, op, n, operation.size_bytes // 2 // share, _BFLOAT16)

    def _call(self, side: _Side, op: str, number: int, elements: int, datatype: int) -> Iterator[Line]:
        """A call's line; what it makes NCCL connect; and what NCCL chooses for it."""
        buffer = 0x7F0000000000 + (self._device << 36) + (number << 30)
        yield self._line(
            f"{op}: opCount {side.op_count:x} sendbuff {buffer:#x} recvbuff {buffer:#x} count {elements} "
            f"datatype {datatype} op 0 root 0 comm {side.pointer:#x} [nranks={len(side.communicator.ranks)}] "
            f"stream {side.stream:#x}"
        )
        side.op_count += int(self._grammar.counts_on_node or len(side.communicator.nodes) > 1)
        if not side.is_connected:
            yield from self._connect(side, _pid(self._rank) + 90)
        if side.rank == 0:
            yield self._line(self._choice(side, op, elements * (2 if datatype == _BFLOAT16 else 1)))

    def _choice(self, side: _Side, op: str, size_bytes: int) -> str:
        members = len(side.communicator.ranks)
        spans = len(side.communicator.nodes) > 1
        algorithm = _TREE if spans and size_bytes < _LARGE_BYTES and op == "AllReduce" else _RING
        protocol = _LL if size_bytes <= _SMALL_BYTES else _LL128 if size_bytes < _LARGE_BYTES else _SIMPLE
        if not self._grammar.chooses_in_words:
            predicted_ns = LINKS["rack" if spans else "node"].all_reduce_ns(size_bytes, members)
            return f"{size_bytes} Bytes -> Algo {algorithm} proto {protocol} time {predicted_ns / 1e3:f}"
        last = 0 if size_bytes <= _SMALL_BYTES else len(side.communicator.channels) - 1
        return (
            f"{op}: {size_bytes} Bytes -> Algo {_ALGORITHMS[algorithm]} proto {_PROTOCOLS[protocol]} "
            f"channel{{Lo..Hi}}={{0..{last}}}"
        )


def groups_of(scenario: Scenario) -> list[Group | None]:
    """Communicators in the order they are made; the first has all ranks (None: of its own, for barriers alone)."""
    groups = list(scenario.cluster.groups())
    whole = [group for group in groups if len(group.ranks) == scenario.cluster.ranks]
    first: list[Group | None] = [whole[0]] if whole else [None]
    return [*first, *(group for group in groups if group not in whole[:1])]


def comm_hash(scenario: Scenario, group: Group | None) -> int:
    """The number by which a communicator is known on all its ranks (commId); None for the one of all ranks."""
    name = f"{scenario.seed} {'world' if group is None else f'{group.kind} {group.number}'}"
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big") | 1 << 63


def _side(scenario: Scenario, wiring: Wiring, group: Group | None, rank: int, number: int) -> _Side:
    ranks = group.ranks if group else tuple(range(scenario.cluster.ranks))
    pointer = 0x55D0C0000000 + (rank << 20) + 0x4A90 * (number + 1)
    return _Side(
        communicator_of(ranks, wiring),
        group,
        ranks.index(rank),
        pointer,
        comm_hash(scenario, group),
        pointer + 0x3F0,
    )
