"""Gradients that DDP reduces. In: a module's buckets. Out: a collective each, and when the backward pass only waits.

Idea: DDP lets a program reduce each bucket itself; ours does what DDP would, with the same operations in the same
order, so that the gradients are the same to the bit, and notes begin and end. A program's own hook is watched instead.
It is for a PyTorch whose process groups call no hooks (`torch_groups`). On a device nothing is reduced by us: it is
seen when all gradients are there, and when the stream has the result of all (`torch_device`).
Not handled: on hosts, modules with mixed precision, sparse gradients, or views of buckets among a number of ranks that
is no power of two: they reduce as if nobody watched.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from traceforge.live.torch_kinds import TorchCall, TorchKinds
from traceforge.live.torch_patch import Undo, exchange, in_turn
from traceforge.live.torch_phases import TorchPhases

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder
    from traceforge.live.tracks import KnownCollective, OpenCollective

_ALL_REDUCE = TorchCall("all_reduce", "", "")


class TorchGradients:
    """Watches the buckets of every DDP module, from its first forward pass on."""

    def __init__(self, torch: Any, kinds: TorchKinds, phases: TorchPhases) -> None:
        self._torch = torch
        self._named = kinds
        self._phases = phases
        self._seen: set[int] = set()
        self._awaits_ready = False
        self._kinds: dict[Any, KnownCollective | None] = {}
        self._handles: list[Any] = []

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch."""
        module = self._torch.nn.parallel.DistributedDataParallel
        return in_turn(
            [
                exchange(module, "forward", functools.partial(self._before_first, recorder)),
                exchange(module, "register_comm_hook", functools.partial(self._registered, recorder)),
                self._let_go,
            ]
        )

    def _let_go(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _before_first(self, recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def forward(ddp: Any, *args: Any, **kwargs: Any) -> Any:
            if id(ddp) not in self._seen:
                self._seen.add(id(ddp))
                recorder.guarded("DDP", functools.partial(self._watch, recorder, ddp))
            return original(ddp, *args, **kwargs)

        return forward

    def _watch(self, recorder: Recorder, ddp: Any) -> None:
        if self._named.device is not None:
            self._watch_on_device(recorder, ddp)
        if not ddp._comm_hooks and _is_plain(self._torch, ddp):
            original = type(ddp).register_comm_hook
            getattr(original, "__wrapped__", original)(ddp, None, self._reducing(recorder, ddp))
            # What is saved or copied with the module must not hold the recorder.
            ddp._comm_hooks.pop()

    def _watch_on_device(self, recorder: Recorder, ddp: Any) -> None:
        """Have the first gradient of each backward pass tell when the last one is there."""
        own = [one for one in ddp.module.parameters() if one.requires_grad and one.is_cuda]
        kind = self._named.kind(recorder, _ALL_REDUCE, own, own, ddp.process_group) if own else None
        if kind is not None:
            handle = own[-1].register_post_accumulate_grad_hook(functools.partial(self._given, recorder, ddp, kind))
            self._handles.append(handle)

    def _given(self, recorder: Recorder, ddp: Any, kind: KnownCollective, _parameter: Any) -> None:
        if not ddp.require_backward_grad_sync:
            return

        # Called in order: DDP's own callback, which waits, comes after this one.
        def ready() -> None:
            ready_ns = self._phases.ready_ns = recorder.tracks.clock_ns()
            if self._named.device is not None:
                recorder.guarded("DDP", functools.partial(self._named.device.will_wait, kind, ready_ns))

        recorder.guarded("DDP", lambda: self._torch.autograd.Variable._execution_engine.queue_callback(ready))

    def _registered(self, recorder: Recorder, original: Any) -> Any:
        """A program registers a hook of its own: it is watched where it reduces tensors of the host."""

        @functools.wraps(original)
        def register(ddp: Any, state: Any, hook: Any) -> Any:
            @functools.wraps(hook)
            def watched(state: Any, bucket: Any) -> Any:
                begun = self._begun(recorder, bucket.buffer(), ddp.process_group)
                future = hook(state, bucket)
                if begun is not None:
                    begun.returned()
                    future.add_done_callback(begun.end)
                return future

            return original(ddp, state, watched)

        return register

    def _reducing(self, recorder: Recorder, ddp: Any) -> Any:
        """A hook that does what DDP would; its path is walked with every bucket, so that it calls little."""
        options = self._torch._C._distributed_c10d.AllreduceOptions()

        # DDP refuses annotations that are not its own.
        def reduced(_state, bucket):  # type: ignore[no-untyped-def]
            tensor, group = bucket.buffer(), ddp.process_group
            begun = self._begun(recorder, tensor, group)
            ranks = group.size()
            if ranks > 1:
                tensor.mul_(1.0 / ranks)  # as the reducer does, which does not divide
            future = group.allreduce([tensor], options).get_future()
            if begun is None:
                return future.then(_only)
            begun.returned()

            def ended(future: Any) -> Any:
                begun.end()
                return future.value()[0]

            return future.then(ended)

        return reduced

    def _begun(self, recorder: Recorder, tensor: Any, group: Any) -> OpenCollective | None:
        """The collective that begins, if it could be noted."""
        try:
            if not self._awaits_ready:
                self._awaits_ready = True
                # Called in order: DDP's own callback, which waits, comes after this one.
                self._torch.autograd.Variable._execution_engine.queue_callback(
                    functools.partial(self._ready, recorder.tracks.clock_ns)
                )
            key = tensor.numel(), tensor.dtype, tensor.is_cpu, group
            if key not in self._kinds:
                self._kinds[key] = self._named.kind(recorder, _ALL_REDUCE, tensor, tensor, group)
            kind = self._kinds[key]
            return None if kind is None or kind.on_device else recorder.tracks.begin(kind)
        except Exception as error:  # noqa: BLE001  # whatever it is, the gradients must be reduced
            recorder.failed("DDP", error)
            return None

    def _ready(self, clock_ns: Any) -> None:
        self._phases.ready_ns = clock_ns()
        self._awaits_ready = False


def _only(future: Any) -> Any:
    return future.value()[0]


def _is_plain(torch: Any, ddp: Any) -> bool:
    """Whether DDP reduces in its plainest way, on the host.

    Gradients that are views of the bucket are divided, others multiplied by the inverse: only for powers of two is that
    the same to the bit.
    """
    ranks = ddp.process_group.size()
    if ddp.gradient_as_bucket_view and ranks & (ranks - 1):
        return False
    sparse = any(getattr(one, "sparse", False) for one in ddp.module.modules() if isinstance(one, torch.nn.Embedding))
    bags = any(getattr(one, "sparse", False) for one in ddp.module.modules() if isinstance(one, torch.nn.EmbeddingBag))
    on_host = all(one.device.type == "cpu" for one in ddp.module.parameters())
    return on_host and not sparse and not bags and getattr(ddp, "mixed_precision", None) is None
