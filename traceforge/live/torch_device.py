"""When a device got to what it was asked for. In: the current stream of a PyTorch program. Out: rows with device times.

Idea: an event costs the training thread a few microseconds, and nobody waits for it: the recorder's own thread reads
those that are past, and ties them to the host's clock by an event on a stream of its own that it does wait for.
A collective is two events on the program's stream: where it is asked for, and where the stream has its result; marks
between them show whether the device was behind its host, or idle. No other stream is asked to wait for anything:
devices have few queues, and what stands in the same one would wait as well. So one that is hidden behind work seems to
last until the stream asks for its result, and of gradients that DDP reduces there is one row, from the last of them to
the result of all.
Not handled: several devices of one process, collectives on streams of their own (FSDP) or that nobody waits for,
messages, what a CUDA graph replays; pacing, which needs to know waits when the step ends.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from traceforge.live.layout import Row, RowKind
from traceforge.live.queue import CAPACITY
from traceforge.live.torch_patch import Undo, exchange, in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceforge.live.clock import Clock
    from traceforge.live.recorder import Recorder
    from traceforge.live.tracks import KnownCollective, Tracks

_TRIES = 5
_AT_ONCE = 64
_LONGEST_END_S = 10.0
_OTHER_STREAM = "collectives on streams of their own are not recorded, as what waits for them is not seen"
_DEVICE_NODES = tuple(Path("/dev") / name for name in ("nvidiactl", "dxg", "kfd"))
_BLOCKING = ("item", "tolist", "cpu")
"""Methods of a tensor for which the host waits until the device has caught up."""


def has_device(torch: Any, nodes: Sequence[Path] = _DEVICE_NODES) -> bool:
    """Whether there is a device that PyTorch can use. CUDA itself is not asked: forked processes could not use it then.

    Args:
        torch: the library.
        nodes: where the kernel shows devices.
    """
    if torch.cuda.is_initialized():
        return True
    is_built = torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None
    return is_built and any(node.exists() for node in nodes)


class _Passing(NamedTuple):
    """What the device has still to get to.

    Attributes:
        name: number of a collective's name; -1 of a mark.
        asked_ns: when the host asked for it.
        detail: sequence of a collective; whether the device was given nothing since the mark before.
        is_awaited: whether the stream went on only when the collective had ended.
        events: one of a mark, begin and end of a collective.
    """

    name: int
    asked_ns: int
    detail: int
    is_awaited: bool
    events: list[Any]


class DeviceCollective:
    """A rank's part in one collective on its device."""

    __slots__ = ("_device", "_passing")

    def __init__(self, device: TorchDevice, passing: _Passing) -> None:
        self._device = device
        self._passing = passing

    def end(self) -> None:
        """What is asked of the current stream from now on comes after the collective."""
        self._device.end(self._passing)

    def ends_with(self, work: Any) -> None:
        """The stream goes on until the program waits for `work`."""
        self._device.awaited[work] = self._passing._replace(is_awaited=False)


class TorchDevice:
    """Marks on the default stream of the device that a program communicates from.

    Attributes:
        awaited: collectives for whose result the stream does not wait yet, by what the program will wait for.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._cuda = torch.cuda
        self._index = -1
        self._default: Any = None
        self._own: Any = None
        self._streams: dict[Any, Any] = {}
        self._free: list[Any] = []
        self.awaited: WeakKeyDictionary[Any, _Passing] = WeakKeyDictionary()
        self._passing: deque[_Passing] = deque()
        self._reading = Lock()
        self._is_capturing = False
        self._has_other = False
        self._waiting: list[DeviceCollective | None] = []
        self._recorder: Recorder | None = None

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch, from the first collective of a device on."""
        self._recorder = recorder
        recorder.before_flush("device times", self._read)
        recorder.after_step(lambda _number, _start_ns, end_ns: self.mark(end_ns))
        graph = getattr(self._cuda, "CUDAGraph", None)
        loader = self._torch.utils.data.dataloader._BaseDataLoaderIter
        undos = [
            lambda: recorder.guarded("device times", self._finish),
            exchange(loader, "__next__", self._quiet),
            exchange(self._torch, "save", self._quiet),
            exchange(self._torch.nn.parallel.DistributedDataParallel, "forward", self._marked),
            exchange(self._torch.autograd, "backward", self._backward),
            exchange(self._cuda, "synchronize", self._marked),
            *(exchange(self._torch.Tensor, name, self._marked) for name in _BLOCKING),
        ]
        if graph is not None:
            undos.append(exchange(graph, "capture_begin", functools.partial(self._capturing, True)))
            undos.append(exchange(graph, "capture_end", functools.partial(self._capturing, False)))
        return in_turn(undos)

    def begin(self, kind: KnownCollective, asked_ns: int) -> DeviceCollective | None:
        """A collective that the current stream will get to; None where that is not the default stream."""
        sequence = kind.next_sequence()
        stream = self._stream()
        if stream is not self._default or self._is_capturing:
            if not (self._has_other or self._is_capturing) and self._recorder is not None:
                self._has_other = True
                self._recorder.failed("device times", RuntimeError(_OTHER_STREAM))
            return None
        event = self._event()
        event.record(stream)
        return DeviceCollective(self, _Passing(kind.name, asked_ns, sequence, True, [event]))

    def end(self, passing: _Passing) -> None:
        """The current stream has got to the end of a collective."""
        if self._is_full():
            return
        event = self._event()
        event.record(self._stream())
        passing.events.append(event)
        self._passing.append(passing)

    def mark(self, asked_ns: int, *, is_quiet: bool = False) -> None:
        """See when the default stream gets here.

        Args:
            asked_ns: now.
            is_quiet: whether the device was given nothing since the mark before.
        """
        if self._index < 0 or self._is_capturing or self._is_full():
            return
        event = self._event()
        event.record(self._default)
        self._passing.append(_Passing(-1, asked_ns, int(is_quiet), False, [event]))

    def _is_full(self) -> bool:
        """Whether so much waits for the device that no more is kept; that is counted."""
        if len(self._passing) < CAPACITY:
            return False
        if self._recorder is not None:
            self._recorder.failed("marks of the device", RuntimeError("the device was too far behind its host"))
        return True

    def _event(self) -> Any:
        try:
            return self._free.pop()
        except IndexError:
            return self._cuda.Event(enable_timing=True)

    def _stream(self) -> Any:
        """The current stream, an object each."""
        if self._index < 0:
            self._index = self._cuda.current_device()
            self._default = self._cuda.default_stream()
            self._streams[self._key(self._default)] = self._default
        key = self._torch._C._cuda_getCurrentStream(self._index)
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = self._cuda.current_stream()
        return found

    @staticmethod
    def _key(stream: Any) -> tuple[int, int, int]:
        return stream.stream_id, stream.device_index, stream.device_type

    def _read(self) -> None:
        """Hand over what the device has got to."""
        with self._reading:
            if self._passing and not self._is_capturing and self._recorder is not None:
                tracks = self._recorder.tracks
                self._cuda.set_device(self._index)
                self._hand_over(tracks, *self._anchor(tracks.clock_ns))

    def _anchor(self, clock_ns: Clock) -> tuple[Any, int]:
        """An event, and when it was on the host's clock: the closest of some tries."""
        if self._own is None:
            self._own = self._cuda.Stream(self._index)
        tries = []
        for _ in range(_TRIES):
            event = self._event()
            before = clock_ns()
            event.record(self._own)
            event.synchronize()
            tries.append((clock_ns() - before, before, event))
        took, before, event = min(tries, key=lambda one: one[0])
        self._free += [one for _, _, one in tries if one is not event]
        return event, before + took // 2

    def _hand_over(self, tracks: Tracks, anchor: Any, anchor_ns: int) -> None:
        passing, count = self._passing, 0
        while passing and not self._is_capturing and passing[0].events[-1].query():
            one = passing.popleft()
            times = [anchor_ns + round(anchor.elapsed_time(event) * 1e6) for event in one.events]
            self._free += one.events
            tracks.add(_row(one, times))
            count += 1
            if count % _AT_ONCE == 0:
                time.sleep(0)
        self._free.append(anchor)

    def _finish(self) -> None:
        """Read what is left; a device that does not answer must not keep the program from its end."""
        until = time.monotonic() + _LONGEST_END_S
        while self._passing and not self._passing[-1].events[-1].query() and time.monotonic() < until:
            time.sleep(0.001)
        self._read()

    def _quiet(self, original: Any) -> Any:
        """A function that gives the device nothing."""

        @functools.wraps(original)
        def quiet(*args: Any, **kwargs: Any) -> Any:
            self._mark_now()
            try:
                return original(*args, **kwargs)
            finally:
                self._mark_now(is_quiet=True)

        return quiet

    def _marked(self, original: Any) -> Any:
        """A function that waits for the device, after which nobody knows how far behind it was, or begins a stretch."""

        @functools.wraps(original)
        def marked(*args: Any, **kwargs: Any) -> Any:
            if not args or getattr(args[0], "is_cuda", True):
                self._mark_now()
            return original(*args, **kwargs)

        return marked

    def will_wait(self, kind: KnownCollective, asked_ns: int) -> None:
        """The backward pass has asked for all gradients; until it returns, the stream waits for their reduction."""
        self._waiting.append(self.begin(kind, asked_ns))

    def _backward(self, original: Any) -> Any:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            self._waiting.clear()
            self._mark_now()
            try:
                return original(*args, **kwargs)
            finally:
                for one in self._waiting:
                    if one is not None and self._recorder is not None:
                        self._recorder.guarded("device times", one.end)

        return backward

    def waiting(self, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`Work.wait`, by which the stream waits for a collective: what lies between is no work."""
        self._mark_now()
        try:
            return original(*args, **kwargs)
        finally:
            passing = self.awaited.pop(args[0], None)
            if passing is not None and self._recorder is not None:
                self._recorder.guarded("device times", functools.partial(self.end, passing))
            self._mark_now(is_quiet=True)

    def _mark_now(self, *, is_quiet: bool = False) -> None:
        if self._index >= 0 and self._recorder is not None:
            try:
                self.mark(self._recorder.tracks.clock_ns(), is_quiet=is_quiet)
            except Exception as error:  # noqa: BLE001  # whatever it is, the program must go on
                self._recorder.failed("device times", error)

    def _capturing(self, begins: bool, original: Any) -> Any:
        """While a graph is captured no event may be looked at, by any thread."""

        @functools.wraps(original)
        def capture(*args: Any, **kwargs: Any) -> Any:
            if begins:
                with self._reading:
                    self._is_capturing = True
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                self._is_capturing = False

        return capture


def _row(one: _Passing, times_ns: list[int]) -> Row:
    # A device gets nowhere before it was asked: what looks so is how well the clocks are tied.
    reached = max(one.asked_ns, times_ns[0])
    if one.name < 0:
        return int(RowKind.DEVICE_MARK), 0, one.asked_ns, reached, one.detail, 0, 0
    ended, late = max(reached, times_ns[-1]), reached - one.asked_ns
    return int(RowKind.DEVICE_COLLECTIVE), one.name, reached, ended, one.detail, late, int(one.is_awaited)
