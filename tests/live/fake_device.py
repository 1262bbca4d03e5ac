"""A device that does as it is told on a test clock. In: how long streams are busy. Out: what `torch.cuda` offers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass(eq=False)
class FakeStream:
    """A stream; its address is its key.

    Attributes:
        busy_until_ns: when all that it was asked for is done.
    """

    stream_id: int
    busy_until_ns: int = 0
    device_index: int = 0
    device_type: int = 1


@dataclass
class FakeCuda:
    """One device.

    Attributes:
        clock_ns: of the host.
        current: stream that takes what is asked for.
        looked: how often an event was looked at.
    """

    clock_ns: Callable[[], int]
    looked: int = 0
    default: FakeStream = field(default_factory=lambda: FakeStream(0))
    current: FakeStream = field(init=False)

    def __post_init__(self) -> None:
        self.current = self.default

    def work(self, duration_ns: int) -> None:
        """Keep the current stream busy for so long after what it does already."""
        self.current.busy_until_ns = max(self.current.busy_until_ns, self.clock_ns()) + duration_ns

    def module(self) -> Any:
        """As `torch.cuda`."""
        return SimpleNamespace(
            is_initialized=lambda: False,
            current_device=lambda: 0,
            set_device=lambda _index: None,
            default_stream=lambda: self.default,
            current_stream=lambda: self.current,
            synchronize=lambda: None,
            Stream=lambda _index: FakeStream(99),
            Event=lambda enable_timing: FakeEvent(self),
            CUDAGraph=type("CUDAGraph", (), {"capture_begin": _nothing, "capture_end": _nothing}),
        )

    def current_key(self, _index: int) -> tuple[int, int, int]:
        """As `torch._C._cuda_getCurrentStream`."""
        return self.current.stream_id, self.current.device_index, self.current.device_type


class FakeEvent:
    """An event, which a stream gets to when it is done with what came before."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self._at_ns = -1

    def record(self, stream: FakeStream) -> None:
        """Ask a stream."""
        self._at_ns = max(self._cuda.clock_ns(), stream.busy_until_ns)

    def query(self) -> bool:
        """Whether the stream has got here."""
        self._cuda.looked += 1
        return self._at_ns <= self._cuda.clock_ns()

    def synchronize(self) -> None:
        """The stream has nothing to do."""

    def elapsed_time(self, other: "FakeEvent") -> float:
        """From this one to the other, ms."""
        return (other._at_ns - self._at_ns) / 1e6


def _nothing(*_: Any) -> None:
    pass
