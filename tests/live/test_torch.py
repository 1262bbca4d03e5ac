"""PyTorch programs, where PyTorch is installed: they are recorded as they are, and compute the same to the bit."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sources.test_live_log import read
from traceforge import live
from traceforge.live import torch_groups

torch = pytest.importorskip("torch")
STEPS = 4
HAS_HOOKS = torch_groups.has_hooks(torch)
BOTH_WAYS = ["hooks", "calls"] if HAS_HOOKS else ["calls"]
"""By hooks of process groups, where this PyTorch has any, and by exchanged functions, as older ones are watched."""


def without_hooks(_torch: Any) -> bool:
    return False


@pytest.fixture(params=BOTH_WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "calls":
        monkeypatch.setattr(torch_groups, "has_hooks", without_hooks)
    return str(request.param)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Any]:
    """torch.distributed with one rank."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        yield torch.distributed
    finally:
        torch.distributed.destroy_process_group()


def train(rank: int, ranks: int, folder: Path, variant: str) -> None:
    """A small data-parallel job; its weights' digest lands in a file."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29843")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if "calls" in variant:
        torch_groups.has_hooks = without_hooks
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
def test_recorded_training_is_the_same_to_the_bit(tmp_path: Path, kind: str, way: str) -> None:
    # given three ranks, for which dividing and multiplying by the inverse are not the same
    run(tmp_path, kind)
    run(tmp_path, f"{kind}-{way}-recorded")

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
    # Without hooks, views of buckets are scaled in two ways, so that nobody but DDP itself may reduce them.
    sees_buckets = kind == "copy" or way == "hooks"
    assert (len(calls) > STEPS * 3, "wait_for_gradients" in names) == ((sees_buckets,) * 2)
    # DDP tells the order of its buckets in numbers.
    assert {call["dtype"] for call in calls} == ({"float", "int"} if way == "hooks" else {"float"})
    assert (reading.summary.rank, reading.summary.world_size) == (1, 3)
    assert reading.codes == []


def test_each_spelling_of_a_call_is_told(tmp_path: Path, alone: Any, way: str) -> None:
    # given one rank with two groups, one of which is made while it is recorded
    tensor = torch.ones(6)
    with live.record(tmp_path / "traces") as recorder:
        group = alone.new_group([0])
        alone.all_reduce(tensor)
        alone.all_reduce(tensor=tensor, group=group)
        alone.all_reduce(tensor, alone.ReduceOp.MAX, group)
        alone.all_reduce(torch.nn.Parameter(torch.ones(6, dtype=torch.float64), requires_grad=False))
        alone.all_reduce(tensor[:3], async_op=True).wait()
        alone.all_gather([tensor], tensor=tensor[:6])
        with pytest.raises(TypeError):
            alone.all_reduce()
        with pytest.raises(TypeError):
            alone.all_reduce("no tensor")
        recorder.step()

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
    assert recorder.failures.get("torch.distributed", (0, ""))[0] == (way == "calls")


@pytest.mark.skipif(not HAS_HOOKS, reason="this PyTorch calls no hooks")
def test_collectives_that_no_function_of_python_issues_are_recorded(tmp_path: Path, alone: Any) -> None:
    functional = pytest.importorskip("torch.distributed._functional_collectives")
    with live.record(tmp_path / "traces") as recorder:
        functional.all_reduce(torch.ones(5), "sum", alone.group.WORLD).sum()
        recorder.step()

    [call] = read(tmp_path / "traces" / "rank0.live").rows("collective")
    assert (call["collective_name"], call["in_elements"]) == ("all_reduce", 5)
    assert recorder.failures == {}


@pytest.mark.skipif(not HAS_HOOKS, reason="this PyTorch calls no hooks")
def test_a_call_that_is_awaited_at_once_ends_with_its_wait_and_others_when_they_are_done(
    tmp_path: Path, alone: Any
) -> None:
    # given calls of three floats that are awaited at once, and calls of four that are awaited 2 ms later
    made: list[int] = []
    with live.record(tmp_path / "traces") as recorder:
        recorder.after_step(lambda *_: made.append(recorder.tracks.step))
        for _ in range(20):
            alone.all_reduce(torch.ones(3), async_op=True).wait()
            late = alone.all_reduce(torch.ones(4), async_op=True)
            time.sleep(0.002)
            late.wait()
            recorder.step()

    # then none is lost, and none seems to last until somebody looked
    reading = read(tmp_path / "traces" / "rank0.live")
    names = [name for name in reading.names if name]
    calls = reading.rows("collective")
    assert sorted(call["in_elements"] for call in calls) == [3] * 20 + [4] * 20
    durations = [event["duration_ns"] for event in reading.events if event["name"] == "gloo:all_reduce"]
    assert sorted(durations)[30] < 2_000_000, names
    assert recorder.failures == {}


@pytest.mark.skipif(not HAS_HOOKS, reason="this PyTorch calls no hooks")
def test_a_call_that_nobody_waits_for_any_more_is_counted_once(
    tmp_path: Path, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a kind of call that is awaited at once for long, on however busy a machine, and then never
    monkeypatch.setattr("traceforge.live.torch_groups._AT_ONCE_NS", 10**12)
    with live.record(tmp_path / "traces") as recorder:
        for _ in range(10):
            alone.all_reduce(torch.ones(3), async_op=True).wait()
        for _ in range(5):
            alone.all_reduce(torch.ones(3), async_op=True)
            recorder.step()
            recorder.step()

    # then the end of the first is unknown, and those after it end when they are done
    calls = read(tmp_path / "traces" / "rank0.live").rows("collective")
    assert [call["sequence"] for call in calls] == [*range(10), *range(11, 15)]
    assert recorder.failures["torch.distributed"] == (
        1,
        "RuntimeError: nobody waited for a call, so that its end is unknown",
    )


def test_a_checkpoint_is_a_phase(tmp_path: Path) -> None:
    with live.record(tmp_path / "traces") as recorder:
        torch.save({"weights": torch.ones(3)}, tmp_path / "checkpoint.pt")
        recorder.step()

    assert "save_checkpoint" in read(tmp_path / "traces" / "rank0.live").names
    assert torch.load(tmp_path / "checkpoint.pt")["weights"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("way", ["calls"], indirect=True)
@pytest.mark.usefixtures("way")
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
