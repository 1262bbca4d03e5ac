"""What a collective of PyTorch is. In: its tensors and its group. Out: the kind that its row names.

Idea: what is known of one kind is asked for once. What a device holds has one only where `torch_device` sees when it
ends.
Not handled: tensors of several types in one call, of which the first's is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder
    from traceforge.live.torch_device import TorchDevice
    from traceforge.live.tracks import KnownCollective


class TorchCall(NamedTuple):
    """How a function names what it sends and receives."""

    op: str
    sent: str
    received: str


_DTYPES = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool",
}  # fmt: skip


class TorchKinds:
    """Knows kinds of collectives, and groups.

    Attributes:
        device: sees what is on a device; None where nobody does.
    """

    def __init__(self, torch: Any, device: TorchDevice | None = None) -> None:
        self._torch = torch
        self.device = device
        self._dist = torch.distributed
        self._groups: dict[Any, tuple[str, tuple[int, ...]]] = {}
        self._known: dict[Any, KnownCollective | None] = {}
        self._has_told = False

    def kind(
        self, recorder: Recorder, call: TorchCall, sent: Any, received: Any, group: Any, peer: int | None = None
    ) -> KnownCollective | None:
        """What a call is; None for what is on a device that nobody sees.

        Args:
            recorder: learns of what is new.
            call: its name; where its tensors stand does not matter here.
            sent: a tensor, several or none.
            received: likewise; the same object where the call works in place.
            group: process group; None for the default one.
            peer: rank in the group at the other end of a message.
        """
        key = (call.op, _extent(sent), None if received is sent else _extent(received), group, peer)
        if key not in self._known:
            self._known[key] = self._new_kind(recorder, call, sent, received, group, peer)
        return self._known[key]

    def _new_kind(
        self, recorder: Recorder, call: TorchCall, sent: Any, received: Any, group: Any, peer: int | None = None
    ) -> KnownCollective | None:
        """A kind that is new; None for what is on a device that nobody sees."""
        first, (sent_elements, device) = _first(sent), _amount(sent)
        on_device = device not in ("cpu", "")
        if on_device and (device != "cuda" or self.device is None or peer is not None):
            return None
        name, ranks = self._group(recorder, group)
        dtype = None if first is None else _DTYPES.get(str(first.dtype).removeprefix("torch."))
        other = None if peer is None else ranks[peer]
        found = recorder.tracks.kind(call.op, name, ranks, sent_elements, _amount(received)[0], dtype, other)
        return found._replace(on_device=on_device)

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
