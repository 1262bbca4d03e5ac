"""Sends and receives of PyTorch. In: `ProcessGroup.send` and `recv`. Out: a row each, from the call to its wait.

Idea: all messages pass the group, also those of a batch: programs compare `isend` with what they hold, so that it stays
what it is. A message has no future: it ends where the program has waited for it.
Not handled: messages that nobody waits for.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from traceforge.live.torch_kinds import TorchCall, TorchKinds
from traceforge.live.torch_patch import Undo, exchange, in_turn

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder
    from traceforge.live.tracks import OpenCollective


class TorchMessages:
    """Watches the messages of all groups.

    Attributes:
        awaited: messages on their way, by what the program will wait for.
    """

    def __init__(self, torch: Any, kinds: TorchKinds) -> None:
        self._torch = torch
        self._kinds = kinds
        self.awaited: WeakKeyDictionary[Any, OpenCollective] = WeakKeyDictionary()

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch."""
        group = self._torch._C._distributed_c10d.ProcessGroup
        return in_turn([exchange(group, op, partial(self._passed, recorder, op)) for op in ("send", "recv")])

    def received(self, work: Any) -> None:
        """The program has waited for a message."""
        message = self.awaited.pop(work, None)
        if message is not None:
            message.end()

    def _passed(self, recorder: Recorder, op: str, original: Any) -> Any:
        """`ProcessGroup.send` or `recv`, which PyTorch calls for each message, of a batch as well."""
        call, tracks = TorchCall(op, "", ""), recorder.tracks

        @functools.wraps(original)
        def passed(*args: Any, **kwargs: Any) -> Any:
            meeting = None
            try:
                group, (tensor, *_), peer = args[:3]
                kind = self._kinds.kind(recorder, call, tensor, tensor, group, peer)
                meeting = None if kind is None else tracks.begin(kind)
            except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
                recorder.failed("torch.distributed", error)
            work = original(*args, **kwargs)
            if meeting is not None and work is not None:
                meeting.returned()
                self.awaited[work] = meeting
            return work

        return passed
