"""What a GPU did on a stream. In: the name of a line, and an event of it. Out: category, name and bytes of its work.

Idea: XLA names a line after all that its stream did (`Stream #14(MemcpyD2D,Compute)`), so that what an event is follows
from its own statistics (`memcpy_details`, …) or name, and from the line only where that is of one kind.
By XLA's collectors of CUPTI and ROCm. Not handled: kinds of memory that a copy goes between.
"""

import re
from typing import NamedTuple

_STREAM = re.compile(r"^Stream #(?P<number>\d{1,9})\b(?:.*\((?P<kinds>[\w,]+)\))?")
_COPY = re.compile(r"^Mem(?:cpy|ory)(?:(?P<source>[HDP])(?:2|to)(?P<target>[HDP])|Other)", re.IGNORECASE)
_MEMORY_SET = re.compile(r"^memset", re.IGNORECASE)
_SIZE = re.compile(r"\b(?:size|num_bytes):(\d{1,15})\b")
_COPY_DETAILS, _SET_DETAILS = "memcpy_details", "memset_details"


class StreamLine(NamedTuple):
    """A line of a stream: its number, and the only kind of work on it; None where it did several."""

    number: int
    kind: str | None


class StreamWork(NamedTuple):
    """Category, name and, of copies and memory sets, bytes; NULL where not stated."""

    category: str
    name: str
    size_bytes: int | None


def stream_of(line: str) -> StreamLine | None:
    """The stream that a line is of; None where it is of none."""
    found = _STREAM.match(line)
    if found is None:
        return None
    kinds = (found["kinds"] or "").split(",")
    return StreamLine(int(found["number"]), kinds[0] if len(kinds) == 1 else None)


def work_of(name: str, details: tuple[str, str] | None, stream: StreamLine) -> StreamWork:
    """What an event of a stream is.

    Args:
        details: statistic and text of what the event states of itself, where it is no kernel.
    """
    statistic, text = details or ("", "")
    size = _SIZE.search(text)
    size_bytes = int(size[1]) if size else None
    copy = _COPY.match(name) or _COPY.match(stream.kind or "")
    if copy or statistic == _COPY_DETAILS:
        ends = f"{copy['source']}to{copy['target']}" if copy and copy["source"] else "unknown"
        return StreamWork("gpu_memcpy", f"Memcpy {ends}", size_bytes)
    if statistic == _SET_DETAILS or _MEMORY_SET.match(name) or _MEMORY_SET.match(stream.kind or ""):
        return StreamWork("gpu_memset", "Memset (Device)", size_bytes)
    if statistic:
        return StreamWork("memory", name, None)  # allocated, freed or resident: nothing runs
    return StreamWork("kernel", name.removesuffix(".kd") or "kernel", None)
