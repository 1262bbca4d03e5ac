"""Training steps over gloo for `capture.py`, on four ranks. In: PyTorch, and what a rank does besides. Out: steps.

Idea: `ddp` computes for real; all other jobs are paced: a layer sleeps as long as a device would compute, so that ranks
which share a core do not slow one another down. What PyTorch does around the layers (stages, shards, buckets,
messages) is its own code, not an imitation.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import library
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from tests.accuracy.capture_devices import compute

WIDTH = 64
FORWARD_S, _LOAD_S = 0.004, 0.002
_TOKENS = 400


@dataclass(slots=True)
class Doing:
    """What a rank does in a step besides, or otherwise.

    Attributes:
        slower: how much longer each of its layers takes, a share.
        rows: share of more rows in its batch.
        varies: how much longer its layers take in one step than in another, the spread of a share's logarithm.
        loads_s: how much longer its data loader takes, s.
        launches_s: how long its host takes before it asks a device for a layer, s.
        hot: rank whose expert gets more tokens, and the share of all tokens it gets besides.
    """

    slower: float = 0.0
    rows: float = 0.0
    varies: float = 0.0
    loads_s: float = 0.0
    launches_s: float = 0.0
    hot: tuple[int, float] | None = None


class Job(Protocol):
    """A rank's part of a job."""

    model: torch.nn.Module

    def step(self, doing: Doing) -> None:
        """One training step."""


@dataclass
class Pace:
    """How long layers of this rank take: a length, its scatter, and what the step does otherwise.

    Attributes:
        values: of each layer's weight, all of which are sent where gradients are.
        rows: of a batch, or of a micro-batch.
    """

    seed: int
    values: int = WIDTH
    rows: int = 4
    doing: Doing = field(default_factory=Doing)
    now: tuple[Doing, float] = (Doing(), 1.0)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {dist.get_rank()}")  # noqa: S311  # lengths, no secrets

    def seconds(self, usual_s: float) -> float:
        """Length of a layer's forward pass now."""
        return (
            usual_s
            * self.of_step()
            * (1 + self.doing.slower)
            * (1 + self.doing.rows)
            * self.random.lognormvariate(0, 0.02)
        )

    def of_step(self) -> float:
        """The share that one step takes, drawn when it begins."""
        if self.now[0] is not self.doing:
            self.now = self.doing, self.random.lognormvariate(0, self.doing.varies) if self.doing.varies else 1.0
        return self.now[1]


class Products:
    """Data parallel; layers are products that take a core's time."""

    _LAYERS = 6

    def __init__(self, _pace: Pace) -> None:
        self.size, self.batch = (2048, 8192) if torch.get_default_device().type == "cuda" else (384, 192)
        layers = [torch.nn.Linear(self.size, self.size, bias=False) for _ in range(self._LAYERS)]
        self.model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)

    def step(self, doing: Doing) -> None:
        """Forward, backward with reduction of gradients, update."""
        rows = torch.randn(round(self.batch * (1 + doing.rows)), self.size)
        self.model.zero_grad()
        self.model(rows).square().mean().backward()
        update(self.model)


def _forward(x: torch.Tensor, seconds: float) -> torch.Tensor:
    compute(x, seconds)
    return x * 0.99


def _backward(gradient: torch.Tensor, seconds: float) -> torch.Tensor:
    compute(gradient, seconds)
    return gradient * 0.99


def _keep(ctx: Any, inputs: tuple[torch.Tensor, float], output: torch.Tensor) -> None:
    ctx.seconds = inputs[1]


layer = library.custom_op("paced::layer", _forward, mutates_args=())
layer.register_fake(lambda x, _seconds: torch.empty_like(x))
layer_backward = library.custom_op("paced::layer_backward", _backward, mutates_args=())
layer.register_autograd(
    lambda ctx, gradient: (layer_backward(gradient, 2 * ctx.seconds), None), setup_context=_keep
)  # backward takes twice as long


class Layer(torch.nn.Module):
    """A layer whose forward pass takes a time."""

    def __init__(self, pace: Pace, usual_s: float = FORWARD_S) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(pace.values))
        self.pace, self.usual_s = pace, usual_s

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Sleep, and scale each column."""
        if self.pace.doing.launches_s:
            time.sleep(self.pace.doing.launches_s)
        return layer(rows * self.weight[:WIDTH], self.pace.seconds(self.usual_s))  # type: ignore[no-any-return]  # untyped library


class _Batches(IterableDataset[torch.Tensor]):
    def __init__(self, pace: Pace, rows: int) -> None:
        self.pace, self.rows = pace, rows

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            time.sleep(self.pace.random.lognormvariate(0, 0.02) * _LOAD_S + self.pace.doing.loads_s)
            yield torch.randn(self.rows, WIDTH)


def batches(pace: Pace, rows: int) -> Iterator[torch.Tensor]:
    """Batches of so many rows from a data loader."""
    return iter(DataLoader(_Batches(pace, rows), batch_size=None))


class Paced:
    """Data parallel: four layers, each a bucket."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        layers = torch.nn.Sequential(*(Layer(self.pace) for _ in range(4)))
        self.model = self.spread(layers)
        self.batches = batches(self.pace, pace.rows)

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """Over all ranks."""
        return DistributedDataParallel(layers, bucket_cap_mb=0.0002)

    def step(self, doing: Doing) -> None:
        """Fetch, forward, backward with reduction of gradients, update."""
        self.pace.doing = doing
        rows = next(self.batches)
        self.model.zero_grad()
        self.model(rows).square().mean().backward()
        update(self.model)


class Buffered(Paced):
    """Data parallel with statistics of batches, which rank 0 sends to all others in each forward pass."""

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """Over all ranks, with a normalisation of batches behind the layers."""
        return super().spread(layers.append(torch.nn.BatchNorm1d(WIDTH)))


class Logged(Paced):
    """Data parallel; each step's loss is summed on rank 0, and each rank's gathered there."""

    def step(self, doing: Doing) -> None:
        """Fetch, forward, backward, update, then what rank 0 logs."""
        super().step(doing)
        loss = self.model.module[0].weight.detach().square().mean()
        dist.reduce(loss.clone(), dst=0)
        losses = [torch.empty(()) for _ in range(dist.get_world_size())]
        dist.gather(loss, losses if dist.get_rank() == 0 else None, dst=0)


class Accumulated(Paced):
    """Data parallel; a step is a micro-batch, and gradients are reduced and applied in every fourth."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.taken = 0

    def step(self, doing: Doing) -> None:
        """Fetch, forward, backward; with the reduction of gradients and the update where it is the last of four."""
        self.pace.doing = doing
        self.taken += 1
        rows = next(self.batches)
        is_last = self.taken % 4 == 0
        with nullcontext() if is_last else self.model.no_sync():
            self.model(rows).square().mean().backward()
        if is_last:
            update(self.model)
            self.model.zero_grad()


class Averaged(Paced):
    """Local SGD: each rank updates by itself, and parameters are averaged after every fourth step."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.taken = 0

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """As they are."""
        return layers

    def step(self, doing: Doing) -> None:
        """Fetch, forward, backward, update, and now and then the average."""
        super().step(doing)
        self.taken += 1
        if self.taken % 4 == 0:
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.data)
                parameter.data /= dist.get_world_size()


class Shards(Paced):
    """Sharded data parallel (FSDP2): each layer is gathered before it computes."""

    def spread(self, layers: torch.nn.Sequential) -> torch.nn.Module:
        """Each rank keeps a quarter of each layer."""
        mesh = init_device_mesh(torch.get_default_device().type, (dist.get_world_size(),))
        for one in layers:
            fully_shard(one, mesh=mesh)
        return fully_shard(layers, mesh=mesh)  # type: ignore[no-any-return]  # untyped library


class Experts:
    """Expert parallel: two layers of an expert a rank, to which tokens go and from which they return."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.model = torch.nn.Sequential(*(Layer(self.pace) for _ in range(4)))
        self.batches = batches(self.pace, _TOKENS)

    def step(self, doing: Doing) -> None:
        """Attention and experts, twice, then reduction of gradients, update."""
        self.pace.doing = doing
        rows = next(self.batches)
        self.model.zero_grad()
        for dense, expert in (self.model[:2], self.model[2:]):
            rows = self._routed(dense(rows), expert)
        rows.square().mean().backward()
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
        update(self.model)

    def _routed(self, rows: torch.Tensor, expert: torch.nn.Module) -> torch.Tensor:
        ranks = dist.get_world_size()
        draws = [self.pace.random.gauss(1, 0.03) for _ in range(ranks)]
        if self.pace.doing.hot:
            place, more = self.pace.doing.hot
            draws[place] += more * ranks
        sent = [int(_TOKENS * one / sum(draws)) for one in draws]
        sent[0] += _TOKENS - sum(sent)
        counts = torch.empty(ranks, dtype=torch.int64)
        dist.all_to_all_single(counts, torch.tensor(sent))
        received = counts.tolist()
        expert.usual_s = 2 * FORWARD_S * sum(received) / _TOKENS
        there = _Exchange.apply(rows, received, sent)
        return _Exchange.apply(expert(there), sent, received)  # type: ignore[no-any-return]  # untyped library


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, received: list[int], sent: list[int]) -> torch.Tensor:
        ctx.splits = received, sent
        return _exchanged(rows, received, sent)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        received, sent = ctx.splits
        return _exchanged(gradient, sent, received), None, None


def _exchanged(rows: torch.Tensor, received: list[int], sent: list[int]) -> torch.Tensor:
    there = rows.new_empty(sum(received), WIDTH)
    dist.all_to_all_single(there, rows.contiguous(), received, sent)
    return there


def update(model: torch.nn.Module) -> None:
    """Take a small step."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(1e-6 * parameter.grad)


AHEAD_JOBS = ("ahead",)
"""Jobs whose loop never waits for the device."""

ONE_AXIS_JOBS: dict[str, Callable[[Pace], Job]] = {
    "ddp": Products,
    "paced": Paced,
    "ahead": Paced,
    "buffered": Buffered,
    "logged": Logged,
    "accumulated": Accumulated,
    "averaged": Averaged,
    "fsdp2": Shards,
    "experts": Experts,
}
