"""Chrome traces that are no rank's. In: what a file turned out to hold. Out: an error where it is none.

Idea: browsers, compilers, ONNX Runtime, TensorFlow, Ray and many more write the same JSON. Nothing is known of events
whose category PyTorch's profiler does not write, and such a file must not pass for a rank that does nothing. Whoever
makes traces by hand keeps the categories, or a key of the profiler's header. The profiler records one process: where
there are several, ranks were merged for a viewer, and would be read as one whose devices do the work of all.
"""

from collections.abc import Collection
from pathlib import Path

from traceforge.errors import NoRanksTraceError
from traceforge.sources.kineto.kinds import Kinds
from traceforge.sources.kineto.tracks import TrackNames

_HEADER_KEYS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName"})
_ASCEND = "Ascend Hardware"
_HOST = "CPU"


def refuse_others(path: Path, kinds: Kinds, tracks: TrackNames, members: Collection[str]) -> None:
    """Go on with a trace of PyTorch's profiler.

    Args:
        members: names of what stands beside the events.

    Raises:
        NoRanksTraceError: another tool wrote the events, or they are of several ranks.
    """
    if tracks.has_process(_ASCEND):
        raise NoRanksTraceError(
            "Ascend's timeline is not read, as its device events have no category",
            where=str(path),
            hint="record the steps with traceforge.live",
        )
    hosts = tracks.count_labelled(_HOST)
    if hosts > 1:
        raise NoRanksTraceError(
            f"traces of {hosts} processes were merged into one file: which rank did what cannot be told",
            where=str(path),
            hint="give the files that were merged, one a rank",
        )
    if not kinds.are_of_pytorch and _HEADER_KEYS.isdisjoint(members):
        raise NoRanksTraceError(
            "a Chrome trace of another tool: no event has a category of PyTorch's profiler",
            where=str(path),
            hint="record the steps on every rank with torch.profiler",
        )
