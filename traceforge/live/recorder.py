"""A recording from its begin to its end. In: a folder, what the launcher says of the rank. Out: `rank{r}.live` in it.

    with live.record("traces/") as recorder:
        for batch in loader:
            ...
            recorder.step()

Idea: whatever goes wrong inside a hook is counted, noted in the file, and never reaches the training program. Without a
folder, or where none can be made, all calls do nothing. Not handled: several recordings of one process at once.
"""

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from traceforge.live.clock import Clock
from traceforge.live.locality import locality
from traceforge.live.names import Names
from traceforge.live.pauses import GarbagePauses
from traceforge.live.queue import RowQueue
from traceforge.live.tracks import WORLD, NamedStretch, OpenCollective, Tracks
from traceforge.live.writer import LogWriter
from traceforge.version import __version__

FOLDER_VARIABLE = "TRACEFORGE_LIVE"
_MOST_FILES = 1_000
_MOST_FAILURES = 20
"""Failures of one hook after which it is not called again."""


class Hook(Protocol):
    """Something that watches or paces the program while it is recorded."""

    def install(self, recorder: "Recorder") -> Callable[[], None]:
        """Begin; what ends it again."""


class Recorder:
    """Records until it is closed; use as a context manager.

    Attributes:
        tracks: takes what happens.
        path: file that is written; None where nothing is recorded.
        rank: of this process.
        writer: of the file; None where nothing is recorded.
    """

    def __init__(
        self,
        tracks: Tracks,
        *,
        writer: LogWriter | None = None,
        path: Path | None = None,
        rank: int = 0,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.tracks = tracks
        self.path = path
        self.rank = rank
        self.failures: dict[str, tuple[int, str]] = {}
        self.writer = writer
        self._hooks = hooks
        self._installed = ExitStack()
        self._pauses = GarbagePauses(tracks.clock_ns)
        self._after_step: list[Callable[[int, int, int], None]] = []

    def __enter__(self) -> Self:
        if self.writer is None:
            return self
        self.writer.start()
        self._pauses.start()
        self._installed.callback(self._pauses.stop)
        for hook in self._hooks:
            self.guarded(type(hook).__name__, partial(self._install, hook))
        return self

    def _install(self, hook: Hook) -> None:
        self._installed.callback(hook.install(self))

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the recording."""
        self.guarded("close", self._installed.close)
        if self.writer is not None:
            self._pauses.hand_over(self.tracks)
            self.writer.close()

    def step(self) -> None:
        """Say that a step is done; a pacing hook may hold this rank back here."""
        if self.writer is None:
            return
        number = self.tracks.step
        start_ns, end_ns = self.tracks.end_step()
        self._pauses.hand_over(self.tracks)
        for act in self._after_step:
            self.guarded(getattr(act, "__qualname__", "hook"), partial(act, number, start_ns, end_ns))

    def after_step(self, act: Callable[[int, int, int], None]) -> None:
        """Call `act` after each step, with its number, start and end."""
        self._after_step.append(act)

    def before_flush(self, name: str, act: Callable[[], object]) -> None:
        """Call `act` once a second from the recorder's own thread."""
        if self.writer is not None:
            self.writer.before_flush.append(partial(self.guarded, name, act))

    def phase(self, name: str) -> NamedStretch:
        """A stretch of this thread that has a name, such as `forward`, `data_loading` or `save_checkpoint`."""
        return self.tracks.phase(name)

    def collective(
        self,
        op: str,
        group: str = WORLD,
        *,
        ranks: Sequence[int] | None = None,
        size_bytes: int | None = None,
        peer: int | None = None,
    ) -> OpenCollective:
        """A collective that begins now: `with` it where the call blocks, or call `returned` and, later, `end`."""
        return self.tracks.meeting(op, group, ranks=ranks, size_bytes=size_bytes, peer=peer)

    def guarded(self, name: str, act: Callable[[], object]) -> None:
        """Do something that must not harm the program: a failure is counted, and too many end it."""
        if self.failures.get(name, (0, ""))[0] >= _MOST_FAILURES:
            return
        try:
            act()
        except Exception as error:  # noqa: BLE001  # whatever it is, the training program must go on
            self.failed(name, error)

    def failed(self, name: str, error: Exception) -> None:
        """Count a failure of a hook."""
        count, text = self.failures.get(name, (0, ""))
        self.failures[name] = count + 1, text or f"{type(error).__name__}: {error}"[:500]


def start(
    folder: Path | None,
    *,
    environment: Mapping[str, str],
    rank: int | None = None,
    world_size: int | None = None,
    hooks: Sequence[Hook] = (),
    facts: Mapping[str, object] | None = None,
    clock_ns: Clock = time.monotonic_ns,
) -> Recorder:
    """A recorder that is ready to be entered; one that does nothing where the folder is None or cannot be used."""
    rank = _stated(environment, "RANK", 0) if rank is None else rank
    world_size = _stated(environment, "WORLD_SIZE", None) if world_size is None else world_size
    opened = None if folder is None else _opened(folder, rank or 0)
    if opened is None:
        return Recorder(Tracks(RowQueue(0), Names(), clock_ns), rank=rank or 0)
    path, file = opened
    opening = {
        "format": 1, "program": f"traceforge {__version__}", "rank": rank, "world_size": world_size,
        **locality(environment), **(facts or {}),
    }  # fmt: skip
    found: list[Recorder] = []
    writer = LogWriter(file, opening, lambda: {"failures": found[0].failures})
    tracks = Tracks(writer.queue, writer.names, clock_ns, world_size=world_size)
    found.append(Recorder(tracks, writer=writer, path=path, rank=rank or 0, hooks=hooks))
    return found[0]


def _stated(environment: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else default


def _opened(folder: Path, rank: int) -> tuple[Path, BinaryIO] | None:
    """A file of this process alone: an earlier recording is never written over."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(_MOST_FILES):
            path = folder / (f"rank{rank}.live" if not number else f"rank{rank}.{number}.live")
            try:
                return path, os.fdopen(
                    os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o644), "ab", 0
                )
            except FileExistsError:
                continue
        raise FileExistsError(f"{folder} holds {_MOST_FILES} recordings of rank {rank}")
    except OSError as error:
        warnings.warn(f"traceforge.live records nothing: {error}", RuntimeWarning, stacklevel=4)
        return None
