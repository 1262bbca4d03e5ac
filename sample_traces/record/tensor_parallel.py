"""A model split over neighbouring ranks: each layer's weight is halved, activations are summed.

In:   the group of ranks that share the model.
Out:  `SplitNetwork`, which takes and returns the same shapes as `workload.Network`.
Idea: pairs of linear layers, the first split by columns, the second by rows; an all-reduce each way.
Not:  sequence parallelism, or overlap of these all-reduces with compute.
Source: Shoeybi et al. 2019, Megatron-LM, section 3.
"""

from typing import Any

import torch
import torch.distributed as dist
from scenarios import LAYERS, WIDTH
from torch import nn

Group = dist.ProcessGroup


class SumBackward(torch.autograd.Function):
    """Identity forward; backward, the gradient is summed over the group."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        """Shape of `x` in and out."""
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Sum."""
        grad = grads[0].contiguous()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class SumForward(torch.autograd.Function):
    """Sum over the group forward; identity backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        """Sum; `x` is a fresh product that nobody else reads."""
        ctx.mark_dirty(x)
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Pass on."""
        return grads[0], None


class SplitNetwork(nn.Module):
    """Residual pairs of linear layers, of which each rank of `group` holds its share."""

    def __init__(self, group: Group) -> None:
        """Make this rank's share of every pair."""
        super().__init__()
        self.group = group
        share = 2 * WIDTH // group.size()
        self.widen = nn.ModuleList(nn.Linear(WIDTH, share, bias=False) for _ in range(LAYERS // 2))
        self.narrow = nn.ModuleList(nn.Linear(share, WIDTH, bias=False) for _ in range(LAYERS // 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (batch, WIDTH) in and out."""
        for widen, narrow in zip(self.widen, self.narrow, strict=True):
            shared = SumBackward.apply(x, self.group)  # type: ignore[no-untyped-call]
            partial = narrow(torch.relu(widen(shared)))
            x = x + SumForward.apply(partial, self.group)  # type: ignore[no-untyped-call]
        return x
