"""Phases of a PyTorch program. In: the places that PyTorch's own profiler names. Out: phases of the training thread.

Data loading is `enumerate(DataLoader)#…`, the optimiser `Optimizer.step#…`, as in the profiler's traces; beside them
`forward` of the outermost data-parallel module or of the model that is named, `save_checkpoint`, and `backward`, which
ends where DDP begins to wait for gradients. Nothing is added to the graph of autograd. Not handled: forward passes of
models that are neither named nor data parallel; `loss.backward` on other threads; `save` that a program imported by
name.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from traceforge.live.torch_patch import Undo, exchange, in_turn

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder


class TorchPhases:
    """Watches loaders, forward and backward passes and optimisers.

    Args:
        torch: the library.
        model: whose forward pass is named, where it is not data parallel.

    Attributes:
        ready_ns: when the backward pass that runs has computed all gradients; 0 before.
        is_backward: whether a backward pass runs.
    """

    def __init__(self, torch: Any, model: Any = None) -> None:
        self._torch = torch
        self._model = model
        self._depth = 0
        self._started: list[int] = []
        self.ready_ns = 0
        self.is_backward = False

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch."""
        torch = self._torch
        undos = [
            exchange(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self._loader(recorder)),
            exchange(torch.autograd, "backward", self._backward(recorder)),
            *self._optimizers(recorder),
            exchange(torch, "save", self._checkpoint(recorder)),
        ]
        if (saving := sys.modules.get("torch.distributed.checkpoint")) is not None:
            undos.append(exchange(saving, "save", self._checkpoint(recorder)))
        undos += [exchange(owner, "forward", self._forward(recorder)) for owner in self._outermost()]
        return in_turn(undos)

    def _outermost(self) -> list[Any]:
        """Classes of modules whose forward pass is named; models themselves stay as they are, for they are saved."""
        parallel = self._torch.nn.parallel
        fsdp = getattr(getattr(self._torch.distributed, "fsdp", None), "FullyShardedDataParallel", None)
        is_own = self._model is not None and not isinstance(self._model, parallel.DistributedDataParallel)
        chosen = (parallel.DistributedDataParallel, fsdp, type(self._model) if is_own else None)
        return [one for one in chosen if one is not None]

    def _is_named(self, module: Any) -> bool:
        return module is self._model or not (self._model is not None and type(module) is type(self._model))

    def _loader(self, recorder: Recorder) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def following(loader: Any) -> Any:
                with recorder.phase(f"enumerate(DataLoader)#{type(loader).__name__}.__next__"):
                    return original(loader)

            return following

        return wrap

    def _checkpoint(self, recorder: Recorder) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def save(*args: Any, **kwargs: Any) -> Any:
                with recorder.phase("save_checkpoint"):
                    return original(*args, **kwargs)

            return save

        return wrap

    def _forward(self, recorder: Recorder) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def forward(*args: Any, **kwargs: Any) -> Any:
                if self._depth or not self._is_named(args[0]):
                    return original(*args, **kwargs)
                self._depth += 1
                try:
                    with recorder.phase("forward"):
                        return original(*args, **kwargs)
                finally:
                    self._depth -= 1

            return forward

        return wrap

    def _backward(self, recorder: Recorder) -> Callable[[Any], Any]:
        clock_ns, tracks = recorder.tracks.clock_ns, recorder.tracks

        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def backward(*args: Any, **kwargs: Any) -> Any:
                self.ready_ns = 0
                self.is_backward = True
                start = clock_ns()
                try:
                    return original(*args, **kwargs)
                finally:
                    end = clock_ns()
                    self.is_backward = False
                    ready = self.ready_ns or end
                    tracks.add_phase("backward", start, ready)
                    if ready < end:
                        tracks.add_phase("wait_for_gradients", ready, end)

            return backward

        return wrap

    def _optimizers(self, recorder: Recorder) -> list[Undo]:
        module = importlib.import_module("torch.optim.optimizer")  # `torch.optim` hides it
        clock_ns, tracks = recorder.tracks.clock_ns, recorder.tracks

        def before(*_: Any) -> None:
            self._started.append(clock_ns())

        def after(optimizer: Any, *_: Any) -> None:
            if self._started:
                name = type(optimizer).__name__
                tracks.add_phase(f"Optimizer.step#{name}.step", self._started.pop(), clock_ns())

        hooks = [module.register_optimizer_step_pre_hook(before), module.register_optimizer_step_post_hook(after)]
        return [hook.remove for hook in hooks]
