"""Collectives and messages of a PyTorch program. In: calls of `torch.distributed`. Out: a row each, call to result.

Idea: a blocking call is timed as it is; an asynchronous one ends when its future does, and `Work.wait` is a phase of
its own. Only tensors of the host are timed: what a device does ends when the host does not look. Sends and receives are
watched where all of them pass, in the group: programs compare `isend` with what they hold, so that it stays what it is.
A message has no future: it ends where the program has waited for it.
Not handled: messages that nobody waits for, functional collectives, coalesced ones, those that C++ issues by itself
(buffers of DDP; its gradients see `torch_gradients`).
"""

from __future__ import annotations

import functools
import inspect
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from traceforge.live.torch_patch import Undo, exchange, in_turn
from traceforge.live.tracks import OpenCollective

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceforge.live.recorder import Recorder
    from traceforge.live.tracks import KnownCollective


class _TorchCall(NamedTuple):
    """How a function names what it sends and receives."""

    op: str
    sent: str
    received: str


_CALLS = {
    "all_reduce": _TorchCall("all_reduce", "tensor", "tensor"),
    "broadcast": _TorchCall("broadcast", "tensor", "tensor"),
    "reduce": _TorchCall("reduce", "tensor", "tensor"),
    "all_gather": _TorchCall("all_gather", "tensor", "tensor_list"),
    "all_gather_into_tensor": _TorchCall("all_gather", "input_tensor", "output_tensor"),
    "reduce_scatter": _TorchCall("reduce_scatter", "input_list", "output"),
    "reduce_scatter_tensor": _TorchCall("reduce_scatter", "input", "output"),
    "all_to_all": _TorchCall("all_to_all", "input_tensor_list", "output_tensor_list"),
    "all_to_all_single": _TorchCall("all_to_all", "input", "output"),
    "gather": _TorchCall("gather", "tensor", "tensor"),
    "scatter": _TorchCall("scatter", "tensor", "tensor"),
    "barrier": _TorchCall("barrier", "", ""),
}
_DTYPES = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool",
}  # fmt: skip


class TorchCollectives:
    """Watches the functions of `torch.distributed`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self._groups: dict[Any, tuple[str, tuple[int, ...]]] = {}
        self._known: dict[Any, KnownCollective | None] = {}
        self._has_told = False
        self._inside: set[int] = set()
        self._awaited: WeakKeyDictionary[Any, OpenCollective] = WeakKeyDictionary()

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch."""
        homes = [self._dist, self._dist.distributed_c10d]
        undos = []
        for name, call in _CALLS.items():
            original = getattr(self._dist, name, None)
            if original is None:
                continue
            ours = self._watched(recorder, call, original)
            undos += [exchange(home, name, _instead(ours)) for home in homes if getattr(home, name, 0) is original]
        c10d = self._torch._C._distributed_c10d
        undos += [exchange(c10d.ProcessGroup, op, partial(self._passed, recorder, op)) for op in ("send", "recv")]
        undos.append(exchange(c10d.Work, "wait", partial(self._waited, recorder)))
        return in_turn(undos)

    def kind(self, recorder: Recorder, op: str, tensor: Any, group: Any) -> KnownCollective | None:
        """What a collective of one tensor is; None for one that is not timed."""
        return self._kind(recorder, _TorchCall(op, "", ""), tensor, tensor, group)

    def _watched(self, recorder: Recorder, call: _TorchCall, original: Any) -> Any:
        """The function with a clock; this path is walked with every call, so that it calls little and makes little."""
        kind_of, inside, tracks = self._kind_of(recorder, call, original), self._inside, recorder.tracks
        clock_ns, threads, add = tracks.clock_ns, tracks.threads, tracks.add_collective

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            identifier = get_ident()
            if identifier in inside:
                return original(*args, **kwargs)
            kind = None
            try:
                kind = kind_of(args, kwargs)
            except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
                recorder.failed("torch.distributed", error)
            name, sequence = (0, -1) if kind is None else (kind[0], kind[1]())
            inside.add(identifier)
            start = clock_ns()
            try:
                result = original(*args, **kwargs)
            finally:
                inside.discard(identifier)
            if kind is not None:
                end = clock_ns()
                thread = threads[identifier]
                get_future = None if result is None else getattr(result, "get_future", None)
                if get_future is None:
                    add(name, sequence, start, end, end, thread)
                else:
                    try:
                        meeting = OpenCollective(tracks, name, sequence, start, thread, end)
                        get_future().add_done_callback(meeting.end)
                    except Exception as error:  # noqa: BLE001
                        recorder.failed("torch.distributed", error)
            return result

        return watched

    def _kind_of(
        self, recorder: Recorder, call: _TorchCall, original: Any
    ) -> Callable[[tuple[Any, ...], dict[str, Any]], KnownCollective | None]:
        """What finds the kind of a call by its arguments; what is known of one kind is asked for once."""
        names = list(inspect.signature(original).parameters)
        sent_at, received_at, group_at = (
            names.index(name) if name in names else len(names) for name in (*call[1:], "group")
        )
        tensor_type = self._torch.Tensor
        known: dict[Any, KnownCollective | None] = {}

        def of_any(args: tuple[Any, ...], kwargs: dict[str, Any]) -> KnownCollective | None:
            if kwargs:
                args = tuple(args[n] if n < len(args) else kwargs.get(name) for n, name in enumerate(names))
            args += (None,) * (len(names) + 1 - len(args))
            return self._kind(recorder, call, args[sent_at], args[received_at], args[group_at])

        def of_one(args: tuple[Any, ...], kwargs: dict[str, Any]) -> KnownCollective | None:
            tensor: Any = args[sent_at] if len(args) > sent_at else kwargs.get(call.sent)
            if type(tensor) is not tensor_type:
                return of_any(args, kwargs)
            group = args[group_at] if len(args) > group_at else kwargs.get("group")
            key = tensor.numel(), tensor.dtype, tensor.is_cpu, group
            try:
                return known[key]
            except KeyError:
                found = known[key] = of_any(args, kwargs)
                return found

        return of_one if call.sent == call.received else of_any

    def _kind(
        self, recorder: Recorder, call: _TorchCall, sent: Any, received: Any, group: Any, peer: int | None = None
    ) -> KnownCollective | None:
        key = (call.op, _extent(sent), None if received is sent else _extent(received), group, peer)
        if key not in self._known:
            self._known[key] = self._new_kind(recorder, call, sent, received, group, peer)
        return self._known[key]

    def _new_kind(
        self, recorder: Recorder, call: _TorchCall, sent: Any, received: Any, group: Any, peer: int | None = None
    ) -> KnownCollective | None:
        """A kind that is new; None for what is on a device."""
        first, (sent_elements, device) = _first(sent), _amount(sent)
        if device not in ("cpu", ""):
            return None
        name, ranks = self._group(recorder, group)
        dtype = None if first is None else _DTYPES.get(str(first.dtype).removeprefix("torch."))
        other = None if peer is None else ranks[peer]
        return recorder.tracks.kind(call.op, name, ranks, sent_elements, _amount(received)[0], dtype, other)

    def _passed(self, recorder: Recorder, op: str, original: Any) -> Any:
        """`ProcessGroup.send` or `recv`, which PyTorch calls for each message, of a batch as well."""
        call, tracks = _TorchCall(op, "", ""), recorder.tracks

        @functools.wraps(original)
        def passed(*args: Any, **kwargs: Any) -> Any:
            meeting = None
            try:
                group, (tensor, *_), peer = args[:3]
                kind = self._kind(recorder, call, tensor, tensor, group, peer)
                meeting = None if kind is None else tracks.begin(kind)
            except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
                recorder.failed("torch.distributed", error)
            work = original(*args, **kwargs)
            if meeting is not None and work is not None:
                meeting.returned()
                self._awaited[work] = meeting
            return work

        return passed

    def _waited(self, recorder: Recorder, original: Any) -> Any:
        """`Work.wait` as a phase, where the program calls it; blocking collectives do, too."""
        inside, tracks, awaited = self._inside, recorder.tracks, self._awaited
        clock_ns, end_phase = tracks.clock_ns, tracks.end_phase
        name = tracks.name(("phase", "wait_for_communication"))

        @functools.wraps(original)
        def wait(*args: Any, **kwargs: Any) -> Any:
            if get_ident() in inside:
                return original(*args, **kwargs)
            start = clock_ns()
            try:
                result = original(*args, **kwargs)
            finally:
                end_phase(name, start)
            if awaited and (message := awaited.pop(args[0], None)) is not None:
                message.end()
            return result

        return wait

    def _group(self, recorder: Recorder, group: Any) -> tuple[str, tuple[int, ...]]:
        """Name and members of a group; the default one where none is named."""
        found = self._groups.get(group)
        if found is None:
            c10d = self._dist.distributed_c10d
            own = c10d._get_default_group() if group is None else group
            found = str(own.group_name), tuple(self._dist.get_process_group_ranks(own))
            self._groups[group] = found
        if not self._has_told and recorder.writer is not None:
            self._has_told = True
            facts = {"backend": self._dist.get_backend(), "world_size": self._dist.get_world_size()}
            recorder.writer.tell({**facts, "torch": str(self._torch.__version__)})
        return found


def _instead(ours: Any) -> Callable[[Any], Any]:
    return lambda _original: ours


def _extent(tensors: Any) -> Any:
    """What tells tensors of one kind from those of another."""
    if isinstance(tensors, list | tuple):
        return sum(one.numel() for one in tensors), *((tensors[0].dtype, tensors[0].device) if tensors else ())
    return None if tensors is None else (tensors.numel(), tensors.dtype, tensors.device)


def _first(tensors: Any) -> Any:
    if isinstance(tensors, list | tuple):
        return tensors[0] if tensors else None
    return tensors


def _amount(tensors: Any) -> tuple[int | None, str]:
    """Elements of a tensor or of several, and the kind of device they are on; nothing where there is no tensor."""
    first = _first(tensors)
    if first is None:
        return None, ""
    count = sum(one.numel() for one in tensors) if isinstance(tensors, list | tuple) else tensors.numel()
    return count, str(first.device.type)
