"""PyTorch programs, where PyTorch is installed: they are recorded as they are, and compute the same to the bit."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests.sources.test_live_log import read
from traceforge import live

torch = pytest.importorskip("torch")
STEPS = 4


def train(rank: int, ranks: int, folder: Path, variant: str) -> None:
    """A small data-parallel job; its weights' digest lands in a file."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29843")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist = torch.distributed
    isend, irecv = dist.isend, dist.irecv
    dist.init_process_group("gloo", init_method=f"file://{folder}/{variant}.store", rank=rank, world_size=ranks)
    net = torch.nn.Sequential(*[torch.nn.Linear(24, 24) for _ in range(4)])
    model = torch.nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=0.002, gradient_as_bucket_view="view" in variant
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rows = torch.randn(STEPS * 8, 24, generator=torch.Generator().manual_seed(rank))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=8)
    with live.record(folder / "traces" if "recorded" in variant else None) as recorder:
        for (batch,) in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss.detach().clone())
            dist.all_reduce(loss.detach().clone(), async_op=True).wait()
            if rank < 2:
                # as programs do that know the functions by names of their own
                end = dist.P2POp((isend, irecv)[rank], torch.zeros(5), 1 - rank)
                [message] = dist.batch_isend_irecv([end])
                message.wait()
            recorder.step()
    assert recorder.failures == {}
    digest = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in net.parameters())).hexdigest()
    (folder / f"{variant}.{rank}").write_text(digest)
    dist.destroy_process_group()


def run(folder: Path, variant: str, ranks: int = 3) -> None:
    torch.multiprocessing.spawn(train, (ranks, folder, variant), nprocs=ranks)


@pytest.mark.parametrize("kind", ["copy", "view"])
def test_recorded_training_is_the_same_to_the_bit(tmp_path: Path, kind: str) -> None:
    # given three ranks, for which dividing and multiplying by the inverse are not the same
    run(tmp_path, kind)
    run(tmp_path, f"{kind}-recorded")

    digests = {path.read_text() for path in tmp_path.glob(f"{kind}*.[0-9]")}
    assert len(digests) == 1

    # and phases, buckets and calls of the program are all there
    reading = read(tmp_path / "traces" / "rank1.live")
    names = {name for name in reading.names if name}
    assert {"forward", "backward", "Optimizer.step#SGD.step", "wait_for_communication"} <= names
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in names
    rows = reading.rows("collective")
    received = [(row["sequence"], row["in_elements"]) for row in rows if row["collective_name"] == "recv"]
    assert received == [(number, 5) for number in range(STEPS)]
    calls = [row for row in rows if row["collective_name"] != "recv"]
    assert [call["sequence"] for call in calls] == list(range(len(calls)))
    # Gradients that are views of buckets are scaled in two ways, so that nobody but DDP itself may reduce them.
    assert (len(calls) > STEPS * 3, "wait_for_gradients" in names) == ((kind == "copy",) * 2)
    assert {call["dtype"] for call in calls} == {"float"}
    assert (reading.summary.rank, reading.summary.world_size) == (1, 3)
    assert reading.codes == []


def test_each_spelling_of_a_call_is_told(tmp_path: Path) -> None:
    # given one rank with two groups
    dist, tensor = torch.distributed, torch.ones(6)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        group = dist.new_group([0])
        with live.record(tmp_path / "traces") as recorder:
            dist.all_reduce(tensor)
            dist.all_reduce(tensor=tensor, group=group)
            dist.all_reduce(tensor, dist.ReduceOp.MAX, group)
            dist.all_reduce(torch.nn.Parameter(torch.ones(6, dtype=torch.float64), requires_grad=False))
            dist.all_reduce(tensor[:3], async_op=True).wait()
            dist.all_gather([tensor], tensor=tensor[:6])
            with pytest.raises(TypeError):
                dist.all_reduce()
            with pytest.raises(TypeError):
                dist.all_reduce("no tensor")
            recorder.step()
    finally:
        dist.destroy_process_group()

    # then each has its kind, its amount, and its number in its group
    calls = read(tmp_path / "traces" / "rank0.live").rows("collective")
    told = sorted(
        (call["process_group_name"], call["sequence"], call["collective_name"], call["in_elements"], call["dtype"])
        for call in calls
    )
    first, second = sorted({call["process_group_name"] for call in calls})
    assert told == [
        (first, 0, "all_reduce", 6, "float"),
        (first, 1, "all_reduce", 6, "double"),
        (first, 2, "all_reduce", 3, "float"),
        (first, 3, "all_gather", 6, "float"),
        (second, 0, "all_reduce", 6, "float"),
        (second, 1, "all_reduce", 6, "float"),
    ]
    # and a call that PyTorch refuses is refused as ever; what is no tensor is nothing that could be told
    assert recorder.failures["torch.distributed"][0] == 1


def test_what_was_exchanged_is_put_back(tmp_path: Path) -> None:
    def exchanged() -> list[Any]:
        parallel, data = torch.nn.parallel.DistributedDataParallel, torch.utils.data.dataloader._BaseDataLoaderIter
        work = torch._C._distributed_c10d.Work
        return [
            torch.distributed.all_reduce, torch.distributed.distributed_c10d.all_reduce, torch.autograd.backward,
            parallel.forward, parallel.register_comm_hook, data.__next__, work.wait,
        ]  # fmt: skip

    before = exchanged()
    with live.record(tmp_path):
        during = exchanged()

    assert exchanged() == before
    assert all(ours is not theirs for ours, theirs in zip(during, before, strict=True))
