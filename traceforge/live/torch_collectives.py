"""Collectives of a PyTorch program. In: calls of `torch.distributed`. Out: a row each, from the call to its result.

Idea: a blocking call is timed as it is; an asynchronous one ends when its future does, and `Work.wait` is a phase of
its own. It is for a PyTorch whose process groups call no hooks (`torch_groups`).
Not handled: functional collectives, coalesced ones, those that C++ issues by itself (buffers of DDP; its gradients see
`torch_gradients`).
"""

from __future__ import annotations

import functools
import inspect
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from traceforge.live.torch_kinds import TorchCall, TorchKinds
from traceforge.live.torch_patch import Undo, exchange, in_turn
from traceforge.live.tracks import OpenCollective

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceforge.live.recorder import Recorder
    from traceforge.live.torch_messages import TorchMessages
    from traceforge.live.tracks import KnownCollective

_CALLS = {
    "all_reduce": TorchCall("all_reduce", "tensor", "tensor"),
    "broadcast": TorchCall("broadcast", "tensor", "tensor"),
    "reduce": TorchCall("reduce", "tensor", "tensor"),
    "all_gather": TorchCall("all_gather", "tensor", "tensor_list"),
    "all_gather_into_tensor": TorchCall("all_gather", "input_tensor", "output_tensor"),
    "reduce_scatter": TorchCall("reduce_scatter", "input_list", "output"),
    "reduce_scatter_tensor": TorchCall("reduce_scatter", "input", "output"),
    "all_to_all": TorchCall("all_to_all", "input_tensor_list", "output_tensor_list"),
    "all_to_all_single": TorchCall("all_to_all", "input", "output"),
    "gather": TorchCall("gather", "tensor", "tensor"),
    "scatter": TorchCall("scatter", "tensor", "tensor"),
    "barrier": TorchCall("barrier", "", ""),
}


class TorchCollectives:
    """Watches the functions of `torch.distributed`."""

    def __init__(self, torch: Any, kinds: TorchKinds, messages: TorchMessages) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self._kinds = kinds
        self._messages = messages
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
        undos.append(exchange(self._torch._C._distributed_c10d.Work, "wait", partial(self._waited, recorder)))
        return in_turn(undos)

    def _watched(self, recorder: Recorder, call: TorchCall, original: Any) -> Any:
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
            if kind is not None and kind.on_device:
                return self._on_device(recorder, kind, original, args, kwargs)
            name, sequence = (0, -1) if kind is None else (kind.name, kind.next_sequence())
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

    def _on_device(
        self, recorder: Recorder, kind: KnownCollective, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A collective that ends on a device, when the host does not look."""
        device, identifier, begun = self._kinds.device, get_ident(), None
        try:
            if device is not None:
                begun = device.begin(kind, recorder.tracks.clock_ns())
        except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
            recorder.failed("torch.distributed", error)
        self._inside.add(identifier)
        try:
            result = original(*args, **kwargs)
        finally:
            self._inside.discard(identifier)
        if begun is not None:
            try:
                begun.end() if result is None else begun.ends_with(result)
            except Exception as error:  # noqa: BLE001
                recorder.failed("torch.distributed", error)
        return result

    def _kind_of(
        self, recorder: Recorder, call: TorchCall, original: Any
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
            return self._kinds.kind(recorder, call, args[sent_at], args[received_at], args[group_at])

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

    def _waited(self, recorder: Recorder, original: Any) -> Any:
        """`Work.wait` as a phase, where the program calls it; blocking collectives do, too."""
        inside, tracks, messages = self._inside, recorder.tracks, self._messages
        clock_ns, end_phase, device = tracks.clock_ns, tracks.end_phase, self._kinds.device
        name = tracks.name(("phase", "wait_for_communication"))

        @functools.wraps(original)
        def wait(*args: Any, **kwargs: Any) -> Any:
            if get_ident() in inside:
                return original(*args, **kwargs)
            start = clock_ns()
            try:
                result = original(*args, **kwargs) if device is None else device.waiting(original, args, kwargs)
            finally:
                end_phase(name, start)
            if messages.awaited:
                messages.received(args[0])
            return result

        return wait


def _instead(ours: Any) -> Callable[[Any], Any]:
    return lambda _original: ours
