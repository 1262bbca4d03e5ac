"""Records in a line. In: the bytes of a line. Out: the records that stand in it, torn ones apart.

Idea: a record is known by its head (host:pid:tid [device] NCCL INFO) wherever it stands; what precedes it is of the
launcher and the clock, what follows up to the next head is the message. A marker without a head is a record of no
process. Heads differ little by version, so one pattern takes all. Seen: NCCL 2.3 to 2.32, RCCL 2.8 to 2.21.
Not handled: heads torn inside (`NCCL IN`), whose text falls to the record before them; messages beyond 16 KiB are cut.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from traceforge.sources.nccl_log.launchers import without_prefix
from traceforge.sources.nccl_log.stamps import read_stamp

LONGEST_HEAD = 600
_LONGEST_MESSAGE = 16 * 1024
MARKER = re.compile(rb"NCCL (INFO|WARN|ATTN|TRACE|CALL|DIAG) ")
HEAD = re.compile(
    rb"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,254}):(?P<pid>\d{1,10})(?::(?P<tid>\d{1,10}) | (?=NCCL DIAG ))"
    rb"(?:\[(?P<device>\d{1,4})\] "
    # Old RCCL: us since 1970. TRACE: ms since start, function:line. WARN, ATTN: file:line, (function) since 2.30.7.
    # DIAG: no thread.
    # Plug-ins in C++: int f(cq*, int):line.
    rb"(?:(?P<us>\d{13,19}) |(?:\d+\.\d+ )?(?P<place>[^\s:\[\]]+:\d+|[^\[\]]{1,400}?\):\d+) "
    rb"(?:\((?P<function>[^()\s]{1,200})\) )?)?)?"
    rb"NCCL (?:INFO|WARN|ATTN|TRACE|CALL|DIAG) "
)


@dataclass(frozen=True, slots=True)
class Framed:
    """A record as it stands in its line.

    Attributes:
        head: the match of its head; None where it has none.
        level: INFO, WARN, ATTN, TRACE, CALL or DIAG.
        prefix: text before the head.
        message: text of the message, without line end.
        is_torn: whether another record stands in the same line.
        follows: whether one stands before it, whose text may go on in the name of its host.
    """

    head: re.Match[bytes] | None
    level: str
    prefix: str
    message: str
    is_torn: bool
    follows: bool = False


def records_in(line: bytes, glued_bytes: Callable[[str, int], int] = lambda _host, _pid: 0) -> Iterator[Framed]:
    """The records of a line, in order.

    Args:
        line: the line, without its end.
        glued_bytes: how much of a host name, printed with a pid, is text that another record left there.
    """
    marks = list(MARKER.finditer(line))
    if not marks:
        return
    heads = heads_before(line, marks)
    starts = [mark.start() if head is None else head.start() for mark, head in zip(marks, heads, strict=True)]
    for number, head in enumerate(heads[1:], start=1):
        if head is not None:
            starts[number] += _glued(head, heads[:number]) or glued_bytes(head["host"].decode(), int(head["pid"]))
    prefix = _text(line[: starts[0]])
    for number, (mark, head, end) in enumerate(zip(marks, heads, [*starts[1:], len(line)], strict=True)):
        text = _text(line[mark.end() : end][:_LONGEST_MESSAGE])
        message = text if end == len(line) else _without_next_prefix(text)
        yield Framed(head, mark[1].decode(), prefix, message.rstrip(), is_torn=len(marks) > 1, follows=number > 0)
        prefix = text[len(message) :]


def _glued(head: re.Match[bytes], earlier: list[re.Match[bytes] | None]) -> int:
    """How much of a head's host name belongs to the record before it, as earlier heads of the line show."""
    for other in earlier:
        if other is not None and other["pid"] == head["pid"] and head["host"].endswith(other["host"]):
            return len(head["host"]) - len(other["host"])
    return 0


def heads_before(data: bytes, marks: Sequence[re.Match[bytes]]) -> list[re.Match[bytes] | None]:
    """The head that ends with each marker; None where there is none."""
    after = [0, *(mark.end() for mark in marks)]
    return [
        HEAD.search(data, max(behind, mark.start() - LONGEST_HEAD), mark.end())
        for behind, mark in zip(after, marks, strict=False)
    ]


def _without_next_prefix(text: str) -> str:
    """A message without what belongs to the record behind it."""
    stamp = read_stamp(text)
    return without_prefix(text if stamp is None else text[: stamp.start])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
