"""Jobs of several axes for `capture.py`, on four ranks: pipelines, tensor parallel, rings. In: PyTorch. Out: steps.

Idea: as `capture_jobs`; a layer sleeps, and all around it is PyTorch's own code.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from tests.accuracy.capture_jobs import FORWARD_S, WIDTH, Doing, Job, Layer, Pace, Paced, batches, update

_MICROBATCHES = 8


def _two_axes(*names: str) -> DeviceMesh:
    shape = (2, dist.get_world_size() // 2)
    return init_device_mesh(torch.get_default_device().type, shape, mesh_dim_names=names)


class HybridShards(Paced):
    """Sharded in pairs (FSDP2), with replicas of the pairs (HSDP)."""

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """A mesh of two by two."""
        mesh = _two_axes("replicate", "shard")
        for one in layers:
            fully_shard(one, mesh=mesh)
        return fully_shard(layers, mesh=mesh)  # type: ignore[no-any-return]  # untyped library


class RedundantStates(Paced):
    """Data parallel; each rank keeps the optimiser's state of a part, updates it and broadcasts it (ZeRO 1)."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.SGD, lr=1e-6)

    def step(self, doing: Doing) -> None:
        """Fetch, forward, backward with reduction of gradients, the optimiser's step."""
        self.pace.doing = doing
        rows = next(self.batches)
        self.optimizer.zero_grad()
        self.model(rows).square().mean().backward()
        self.optimizer.step()


class Ring(Paced):
    """Data parallel; each layer passes a block around a ring of all ranks, as attention over long contexts does."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.layers = [module for module in self.model.modules() if isinstance(module, Layer)]

    def step(self, doing: Doing) -> None:
        """Fetch, a ring a layer, forward, backward with reduction of gradients, update."""
        self.pace.doing = doing
        rows = next(self.batches)
        self.model.zero_grad()
        rank = dist.get_rank()
        for one in self.layers:
            block = rows.clone()
            for _ in range(dist.get_world_size() - 1):
                received = torch.empty_like(block)
                ends = (
                    dist.P2POp(dist.isend, block, (rank + 1) % dist.get_world_size()),
                    dist.P2POp(dist.irecv, received, (rank - 1) % dist.get_world_size()),
                )
                for work in dist.batch_isend_irecv(list(ends)):
                    work.wait()
                block = received
            with torch.no_grad():
                one(block)
        self.model(rows).square().mean().backward()
        update(self.model)


class TensorShards(Paced):
    """Tensor parallel in pairs, sharded data parallel (FSDP2) over the pairs: each layer's product is split."""

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """A mesh of two by two."""
        mesh = _two_axes("data", "tensor")
        blocks = torch.nn.Sequential(*(_Block(one) for one in layers))
        for block in blocks:
            parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=mesh["data"])
        return fully_shard(blocks, mesh=mesh["data"])  # type: ignore[no-any-return]  # untyped library


class _Block(torch.nn.Module):
    def __init__(self, paced: torch.nn.Module) -> None:
        super().__init__()
        self.paced = paced
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(self.paced(rows)))  # type: ignore[no-any-return]  # untyped library


class Stages:
    """A pipeline of `ranks / replicas` stages of one layer, eight micro-batches, replicas that reduce gradients."""

    def __init__(self, pace: Pace, schedule: Callable[..., Any], replicas: int = 1, last: float = 1.0) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.pace, count = pace, ranks // replicas
        self.stage, replica = rank % count, rank // count
        stages = [list(range(one * count, (one + 1) * count)) for one in range(replicas)]
        groups = [dist.new_group(own, group_desc="pipeline") for own in stages]
        beside = [dist.new_group(list(range(one, ranks, count)), group_desc="data parallel") for one in range(count)]
        self.beside, self.replicas = beside[self.stage], replicas
        self.is_last = self.stage == count - 1
        self.model = Layer(self.pace, FORWARD_S * (last if self.is_last else 1))
        own = PipelineStage(self.model, self.stage, count, torch.get_default_device(), group=groups[replica])
        self.schedule = schedule(own, _MICROBATCHES, loss_fn=lambda out, target: (out - target).square().mean())
        self.batches = batches(self.pace, pace.rows * _MICROBATCHES)
        self.target = torch.zeros(pace.rows * _MICROBATCHES, WIDTH)

    def step(self, doing: Doing) -> None:
        """All micro-batches, reduction over replicas, update."""
        self.pace.doing = doing
        self.model.zero_grad()
        if self.stage == 0:
            self.schedule.step(next(self.batches))
        elif self.is_last:
            self.schedule.step(target=self.target)
        else:
            self.schedule.step()
        if self.replicas > 1:
            dist.all_reduce(self.model.weight.grad, group=self.beside)
        update(self.model)


class Looped:
    """A pipeline in which each rank has two stages of one layer, in turns (interleaved 1F1B)."""

    def __init__(self, pace: Pace) -> None:
        self.pace, rank = pace, dist.get_rank()
        self.model = torch.nn.ModuleList(Layer(self.pace, FORWARD_S / 2) for _ in range(2))
        device, count = torch.get_default_device(), 2 * dist.get_world_size()
        own = [PipelineStage(one, rank + n * dist.get_world_size(), count, device) for n, one in enumerate(self.model)]
        self.is_first, self.is_last = rank == 0, rank == dist.get_world_size() - 1
        self.schedule = ScheduleInterleaved1F1B(
            own, _MICROBATCHES, loss_fn=lambda out, target: (out - target).square().mean()
        )
        self.batches = batches(self.pace, pace.rows * _MICROBATCHES)
        self.target = torch.zeros(pace.rows * _MICROBATCHES, WIDTH)

    def step(self, doing: Doing) -> None:
        """All micro-batches through both stages, update."""
        self.pace.doing = doing
        self.model.zero_grad()
        given = (next(self.batches),) if self.is_first else ()
        self.schedule.step(*given, **({"target": self.target} if self.is_last else {}))
        update(self.model)


class TensorStages(Stages):
    """A pipeline of two stages, each split over two ranks, whose outputs are summed in every layer."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace, Schedule1F1B, replicas=2)
        half = dist.get_world_size() // 2
        pairs = [dist.new_group([first, first + half], group_desc="tensor parallel") for first in range(half)]
        pair = pairs[dist.get_rank() % half]
        self.model.register_forward_hook(lambda _module, _given, out: _Summed.apply(out, pair))


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, rows: torch.Tensor, group: Any) -> torch.Tensor:
        summed = rows.clone()
        dist.all_reduce(summed, group=group)
        return summed / 2

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


MESH_JOBS: dict[str, Callable[[Pace], Job]] = {
    "hybrid-fsdp2": HybridShards,
    "tensor-fsdp2": TensorShards,
    "zero1": RedundantStates,
    "ring": Ring,
    "gpipe": lambda pace: Stages(pace, ScheduleGPipe),
    "1f1b": lambda pace: Stages(pace, Schedule1F1B),
    "1f1b-twice": lambda pace: Stages(pace, Schedule1F1B, replicas=2),
    "1f1b-uneven": lambda pace: Stages(pace, Schedule1F1B, last=1.4),
    "1f1b-tensor": TensorStages,
    "interleaved": Looped,
}
