"""Chrome traces of other tools. In: what a file turned out to hold. Out: an error where PyTorch did not write it.

Idea: browsers, compilers, ONNX Runtime, TensorFlow, Ray and many more write the same JSON. Nothing is known of events
whose category PyTorch's profiler does not write, and such a file must not pass for a rank that does nothing. Whoever
makes traces by hand keeps the categories, or a key of the profiler's header.
"""

from collections.abc import Collection
from pathlib import Path

from traceforge.errors import NotATraceError
from traceforge.sources.kineto.kinds import Kinds
from traceforge.sources.kineto.tracks import TrackNames

_HEADER_KEYS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName"})
_ASCEND = "Ascend Hardware"


def refuse_others(path: Path, kinds: Kinds, tracks: TrackNames, members: Collection[str]) -> None:
    """Go on with a trace of PyTorch's profiler.

    Args:
        members: names of what stands beside the events.

    Raises:
        NotATraceError: another tool wrote the events.
    """
    if tracks.has_process(_ASCEND):
        raise NotATraceError(
            "Ascend's timeline is not read, as its device events have no category",
            where=str(path),
            hint="record the steps with traceforge.live",
        )
    if not kinds.are_of_pytorch and _HEADER_KEYS.isdisjoint(members):
        raise NotATraceError(
            "a Chrome trace of another tool: no event has a category of PyTorch's profiler",
            where=str(path),
            hint="record the steps on every rank with torch.profiler",
        )
