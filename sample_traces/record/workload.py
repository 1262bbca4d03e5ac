"""The model and the data of a rank, and the two faults that live inside a rank's own program.

In:   a scenario and the rank.
Out:  `Network`, `Batches`, and a `Meter` that says what was injected in the current step, in ns.
Idea: extra compute is real products in forward and backward; an input stall is a sleep where storage is read.
Not:  network faults, which the rank cannot see.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
from scenarios import BATCH, LAYERS, WIDTH
from torch import nn
from torch.utils.data import Dataset


@dataclass
class Meter:
    """What was injected into this rank since the last `take`."""

    stall_ns: int = 0
    extra_wall_ns: int = 0
    extra_cpu_ns: int = 0

    def take(self) -> dict[str, int]:
        """Return the sums of this step and start again at zero."""
        sums = {
            "stall_ns": self.stall_ns,
            "extra_wall_ns": self.extra_wall_ns,
            "extra_cpu_ns": self.extra_cpu_ns,
        }
        self.stall_ns = self.extra_wall_ns = self.extra_cpu_ns = 0
        return sums

    def add_extra(self, wall_start_ns: int, cpu_start_ns: int) -> None:
        """Count extra compute that began at these readings and ends now."""
        self.extra_wall_ns += time.monotonic_ns() - wall_start_ns
        self.extra_cpu_ns += time.thread_time_ns() - cpu_start_ns


class UnevenWork(torch.autograd.Function):
    """Hand `x` on unchanged after doing a linear layer's products with `weight`, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, meter: Meter) -> torch.Tensor:
        """One product of the layer's shape."""
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        ctx.meter = meter
        ctx.save_for_backward(x, weight)
        ctx.extra = torch.mm(x, weight)
        meter.add_extra(wall_ns, cpu_ns)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Two products, as a linear layer has (for its input and for its weight)."""
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        x, weight = ctx.saved_tensors
        torch.mm(ctx.extra, weight.t())
        torch.mm(x.t(), ctx.extra)
        ctx.meter.add_extra(wall_ns, cpu_ns)
        return grads[0], None, None


class Network(nn.Module):
    """Residual linear layers; every layer's gradient fills one DDP bucket."""

    def __init__(self, *, extra_share: float, meter: Meter) -> None:
        """Make the layers; each is preceded by `extra_share` of its own products, done in vain."""
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))
        self.meter = meter
        self.extra_weight = torch.randn(WIDTH, round(WIDTH * extra_share)) if extra_share else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (BATCH, WIDTH) in and out."""
        for layer in self.layers:
            if self.extra_weight is not None:
                x = UnevenWork.apply(x, self.extra_weight, self.meter)  # type: ignore[no-untyped-call]
            x = x + torch.relu(layer(x))
        return x


class Batches(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Ready-made batches; item i is the batch of step i. Items of `stalled_steps` take `stall_ns` longer."""

    def __init__(
        self, *, steps: int, stalled_steps: frozenset[int], stall_ns: int, meter: Meter, batch: int = BATCH
    ) -> None:
        """Hold one pool of random rows from which each batch, of so many rows, is copied."""
        self.batch = batch
        self.pool = torch.randn(4 * batch, WIDTH)
        self.steps = steps
        self.stalled_steps = stalled_steps
        self.stall_ns = stall_ns
        self.meter = meter

    def __len__(self) -> int:
        """Count of batches."""
        return self.steps

    def __getitem__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (inputs, targets) of one step."""
        if step in self.stalled_steps:
            start_ns = time.monotonic_ns()
            time.sleep(self.stall_ns / 1e9)
            self.meter.stall_ns += time.monotonic_ns() - start_ns
        first = (step % 3) * self.batch
        rows = self.pool[first : first + self.batch]
        return rows.clone(), rows.flip(1)
