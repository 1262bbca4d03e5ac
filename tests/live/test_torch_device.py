"""A device is asked when it gets to a place, and nobody waits for the answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.live.fake_device import FakeCuda, FakeStream
from tests.live.jobs import MS, HandClock, recorder
from tests.sources.test_live_log import read
from traceforge.live.layout import RowKind
from traceforge.live.queue import CAPACITY
from traceforge.live.recorder import Recorder
from traceforge.live.torch_device import TorchDevice, has_device
from traceforge.live.tracks import KnownCollective

MARK, COLLECTIVE = RowKind.DEVICE_MARK, RowKind.DEVICE_COLLECTIVE


class Job:
    """A program with a device, on a clock that the test turns."""

    def __init__(self, folder: Path | None = None) -> None:
        self.clock = HandClock()
        self.cuda = FakeCuda(self.clock)
        backward = SimpleNamespace(backward=lambda: None)
        self.torch: Any = SimpleNamespace(
            cuda=self.cuda.module(),
            _C=SimpleNamespace(_cuda_getCurrentStream=self.cuda.current_key),
            utils=SimpleNamespace(data=SimpleNamespace(dataloader=SimpleNamespace(_BaseDataLoaderIter=_Loader))),
            nn=SimpleNamespace(parallel=SimpleNamespace(DistributedDataParallel=_Module)),
            save=lambda *_: self.clock.turn(5 * MS),
            Tensor=_Tensor,
            autograd=backward,
        )
        self.device = TorchDevice(self.torch)
        self.recorder: Recorder = recorder(folder, self.clock, ranks=2)
        self.rows: list[tuple[int, ...]] = []
        self.recorder.tracks.add = self.rows.append  # type: ignore[method-assign]
        self.undo = self.device.install(self.recorder)
        self.start_ns = self.clock()

    def kind(self) -> KnownCollective:
        return self.recorder.tracks.kind("all_reduce", "dp", (0, 1), 4, 4, "float", None)

    def told(self) -> list[tuple[RowKind, int, int, int]]:
        """Kind, start and end since the job began, ms, and a of each row."""
        since = [(row[0], row[2] - self.start_ns, row[3] - self.start_ns, row[4]) for row in self.rows]
        return [(RowKind(kind), start // MS, end // MS, a) for kind, start, end, a in since]


class _Loader:
    def __next__(self) -> int:
        return 1


class _Module:
    def forward(self) -> None:
        """Nothing is computed."""


class _Tensor:
    is_cuda = True

    def item(self) -> float:
        """A number."""
        return 1.0


def test_a_collective_is_told_when_its_device_has_got_to_it_and_past_it() -> None:
    # given a device with 30 ms of work before a collective that takes 10
    #   host     |ask|
    #   device   |work·········|reduce|
    job = Job()
    job.cuda.work(30 * MS)
    begun = job.device.begin(job.kind(), job.clock())
    job.cuda.work(10 * MS)
    assert begun is not None
    begun.end()

    # when the recorder's thread looks while the device works, and when it is done
    job.device._read()
    assert job.rows == []
    job.clock.turn(50 * MS)
    job.device._read()

    # then it is told on the host's clock, once
    assert job.told() == [(COLLECTIVE, 30, 40, 0)]
    assert job.rows[0][5:] == (30 * MS, 1)
    job.device._read()
    assert len(job.rows) == 1


def test_marks_tell_where_the_device_was_given_nothing() -> None:
    # given a collective, from which on the device is known, then a batch that is waited for
    job = Job()
    first = job.device.begin(job.kind(), job.clock())
    assert first is not None
    first.end()
    job.cuda.work(3 * MS)
    next(job.torch.utils.data.dataloader._BaseDataLoaderIter())
    job.clock.turn(20 * MS)
    job.torch.save("model")
    job.device._read()

    # then the first mark is late by the work, and what lies between two of a pair is quiet
    assert job.told()[1:] == [(MARK, 0, 3, 0), (MARK, 0, 3, 1), (MARK, 20, 20, 0), (MARK, 25, 25, 1)]


def test_a_host_that_asks_for_a_number_is_told_how_far_behind_the_device_was() -> None:
    job = Job()
    begun = job.device.begin(job.kind(), job.clock())
    assert begun is not None
    begun.end()
    job.cuda.work(7 * MS)
    assert _Tensor().item() == 1.0
    job.clock.turn(8 * MS)
    job.device._read()

    assert job.told()[1:] == [(MARK, 0, 7, 0)]


def test_a_collective_that_is_not_awaited_ends_where_the_stream_waits_for_it() -> None:
    # given work that hides 5 of 8 ms
    #   stream   |work·····|wait|
    job = Job()
    begun = job.device.begin(job.kind(), job.clock())
    work = _Module()
    assert begun is not None
    begun.ends_with(work)
    job.cuda.work(5 * MS)
    job.device.waiting(lambda _work: job.cuda.work(3 * MS), (work,), {})
    job.clock.turn(10 * MS)
    job.device._read()

    assert job.told() == [(MARK, 0, 5, 0), (COLLECTIVE, 0, 8, 0), (MARK, 0, 8, 1)]
    assert job.rows[1][6] == 0


def test_gradients_are_one_collective_from_the_last_of_them_to_the_result() -> None:
    job = Job()
    kind = job.kind()

    def backward() -> None:
        job.cuda.work(6 * MS)
        job.device.will_wait(kind, job.clock())
        job.cuda.work(4 * MS)

    # given a backward pass, of which the first is known only when its gradients are there
    job.undo()
    job.torch.autograd.backward = backward
    job.undo = job.device.install(job.recorder)
    job.torch.autograd.backward()
    job.clock.turn(20 * MS)
    job.device._read()

    assert job.told() == [(COLLECTIVE, 6, 10, 0)]


def test_what_is_on_a_stream_of_its_own_is_not_told_and_said_once() -> None:
    job = Job()
    first = job.device.begin(job.kind(), job.clock())
    assert first is not None
    job.cuda.current = FakeStream(5)

    assert job.device.begin(job.kind(), job.clock()) is None
    assert job.device.begin(job.kind(), job.clock()) is None
    assert job.recorder.failures["device times"][0] == 1


def test_no_event_is_looked_at_while_a_graph_is_captured() -> None:
    job = Job()
    begun = job.device.begin(job.kind(), job.clock())
    assert begun is not None
    begun.end()
    graph = job.torch.cuda.CUDAGraph()
    graph.capture_begin()
    looked = job.cuda.looked
    job.device._read()
    job.device.mark(job.clock())
    assert job.device.begin(job.kind(), job.clock()) is None
    assert job.cuda.looked == looked
    graph.capture_end()
    job.device._read()

    assert job.told() == [(COLLECTIVE, 0, 0, 0)]
    assert job.recorder.failures == {}


def test_a_device_that_stands_still_costs_bounded_memory() -> None:
    job = Job()
    job.cuda.work(10**18)
    begun = job.device.begin(job.kind(), job.clock())
    assert begun is not None
    begun.end()
    for _ in range(CAPACITY + 5):
        job.device.mark(job.clock())

    # then what was dropped is counted
    assert len(job.device._passing) == CAPACITY
    assert job.recorder.failures["marks of the device"][0] == 6


@pytest.mark.parametrize(
    ("cuda", "is_initialized", "node", "found"),
    [("13.0", False, True, True), ("13.0", False, False, False), (None, False, True, False), (None, True, False, True)],
)
def test_whether_there_is_a_device_is_told_without_asking_cuda(
    tmp_path: Path, cuda: str | None, is_initialized: bool, node: bool, found: bool
) -> None:
    # given a library built with or without CUDA, and a kernel that shows a device or none
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: is_initialized), version=SimpleNamespace(cuda=cuda)
    )
    if node:
        (tmp_path / "nvidiactl").touch()

    # then CUDA is not asked: who forks after that could not use it
    assert has_device(torch, [tmp_path / "nvidiactl"]) is found


def test_what_is_left_is_told_at_the_end_and_what_was_exchanged_is_put_back(tmp_path: Path) -> None:
    before = _Tensor.item
    job = Job(tmp_path)
    assert _Tensor.item is not before
    begun = job.device.begin(job.kind(), job.clock())
    assert begun is not None
    begun.end()
    job.undo()

    assert job.told() == [(COLLECTIVE, 0, 0, 0)]
    assert _Tensor.item is before


def test_a_recording_holds_what_the_device_did(tmp_path: Path) -> None:
    # given a file with a step, and a device that was behind by 30 ms at one collective and at once at the next
    job = Job(tmp_path)
    del job.recorder.tracks.add  # rows go to the file
    with job.recorder:
        for busy_ns in (30 * MS, 0):
            job.cuda.work(busy_ns)
            begun = job.device.begin(job.kind(), job.clock())
            job.cuda.work(2 * MS)
            assert begun is not None
            begun.end()
            job.clock.turn(40 * MS)
        job.device._read()
        job.recorder.step()

    # then it shows two collectives; before the first nothing is known
    reading = read(tmp_path / "rank0.live")
    kernels = [event for event in reading.events if event["category"] == "kernel"]
    assert [(event["name"], event["duration_ns"]) for event in kernels] == [("ncclKernel_all_reduce", 2 * MS)] * 2
    assert np.diff([int(str(event["raw_start_ns"])) for event in kernels]).tolist() == [10 * MS]
    assert [row["sequence"] for row in reading.rows("collective")] == [0, 1]
