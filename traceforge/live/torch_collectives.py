"""Collectives of a PyTorch program. In: calls of `torch.distributed`. Out: a row each, from the call to its result.

Idea: a blocking call is timed as it is; an asynchronous one ends when its future does, and `Work.wait` is a phase of
its own. Only tensors of the host are timed: what a device does ends when the host does not look.
Not handled: functional collectives, coalesced ones, those that C++ issues by itself (buffers of DDP; its gradients see
`torch_gradients`).
"""

from __future__ import annotations

import functools
import inspect
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from traceforge.live.torch_patch import Undo, exchange, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceforge.live.recorder import Recorder
    from traceforge.live.tracks import OpenCollective


class _TorchCall(NamedTuple):
    """How a function names what it sends and receives, and the rank at its other end."""

    op: str
    sent: str
    received: str
    peer: str | None = None


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
    "send": _TorchCall("send", "tensor", "tensor", "dst"),
    "isend": _TorchCall("send", "tensor", "tensor", "dst"),
    "recv": _TorchCall("recv", "tensor", "tensor", "src"),
    "irecv": _TorchCall("recv", "tensor", "tensor", "src"),
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
        self._known: dict[Any, tuple[int, str]] = {}
        self._has_told = False
        self._inside: set[int] = set()

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
        undos.append(exchange(self._torch._C._distributed_c10d.Work, "wait", lambda wait: self._waited(recorder, wait)))
        return in_turn(undos)

    def begin(self, recorder: Recorder, op: str, tensor: Any, group: Any) -> OpenCollective | None:
        """A collective of one tensor that begins now; None for one that is not timed."""
        return self._begin(recorder, _TorchCall(op, "", ""), tensor, tensor, group, None)

    def _watched(self, recorder: Recorder, call: _TorchCall, original: Any) -> Any:
        """The function with a clock; this path is walked with every call, so that it is short."""
        names = list(inspect.signature(original).parameters)
        place = {name: names.index(name) if name in names else len(names) for name in (*call[1:], "group")}
        sent_at, received_at, peer_at, group_at = (place[name] for name in (*call[1:], "group"))
        most = len(names)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpenCollective | None:
            if kwargs:
                args = tuple(args[n] if n < len(args) else kwargs.get(name) for n, name in enumerate(names))
            args += (None,) * (most + 1 - len(args))
            return self._begin(recorder, call, args[sent_at], args[received_at], args[group_at], args[peer_at])

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            if thread in self._inside:
                return original(*args, **kwargs)
            meeting = None
            try:
                meeting = begin(args, kwargs)
            except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
                recorder.failed("torch.distributed", error)
            self._inside.add(thread)
            try:
                result = original(*args, **kwargs)
            finally:
                self._inside.discard(thread)
            if meeting is not None:
                try:
                    _end(meeting, result)
                except Exception as error:  # noqa: BLE001
                    recorder.failed("torch.distributed", error)
            return result

        return watched

    def _begin(
        self, recorder: Recorder, call: _TorchCall, sent: Any, received: Any, group: Any, peer: Any
    ) -> OpenCollective | None:
        key = (call.op, _extent(sent), None if received is sent else _extent(received), group, peer)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._key(recorder, call, sent, received, group, peer)
        name, group_name = known
        return recorder.tracks.begin(name, group_name) if name >= 0 else None

    def _key(
        self, recorder: Recorder, call: _TorchCall, sent: Any, received: Any, group: Any, peer: Any
    ) -> tuple[int, str]:
        """Number of the name of a kind of collective and its group; -1 for what is on a device."""
        first, (sent_elements, device) = _first(sent), _amount(sent)
        if device not in ("cpu", ""):
            return -1, ""
        name, ranks = self._group(recorder, group)
        dtype = None if first is None else _DTYPES.get(str(first.dtype).removeprefix("torch."))
        other = peer if type(peer) is int else None
        received_elements = _amount(received)[0]
        return recorder.tracks.name(
            ("collective", call.op, name, ranks, sent_elements, received_elements, dtype, other)
        ), name

    def _waited(self, recorder: Recorder, original: Any) -> Any:
        """`Work.wait` as a phase, where the program calls it; blocking collectives do, too."""

        @functools.wraps(original)
        def wait(*args: Any, **kwargs: Any) -> Any:
            if get_ident() in self._inside:
                return original(*args, **kwargs)
            with recorder.phase("wait_for_communication"):
                return original(*args, **kwargs)

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


def _end(meeting: OpenCollective, result: Any) -> None:
    """End a blocking call now, and an asynchronous one with its future."""
    if result is None or not hasattr(result, "get_future"):
        meeting.end()
        return
    meeting.returned()
    result.get_future().add_done_callback(lambda _: meeting.end())


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
