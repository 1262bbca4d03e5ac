"""Host threads of an exported Chakra trace as chains. In: host nodes in order of start. Out: pieces, one after another.

Time of a thread belongs to the innermost operation that is open on it. Where callees interrupt it, an operation becomes
pieces; time with none open is a pause. A thread goes on from another one where that handed work over: where a thread
that was silent begins what runs for an operation open on another one, or after another one ended; and where it has
nothing but annotations open, as while it waits. Not handled: operations that wait for another thread themselves.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from traceforge.export.chakra_node import ExportNode, Remainders

_HANDOVER_NS = 50_000


@dataclass(frozen=True, slots=True)
class HostCall:
    """A host node with what places it.

    Attributes:
        node: in the state of its file; its duration is changed.
        thread: number of its thread.
        end_ns: aligned clock.
        is_annotation: whether it is a label of a stretch, which computes nothing itself.
        caller: node that called it, as its file states; None when none is known.
    """

    node: ExportNode
    thread: int
    end_ns: int
    is_annotation: bool = False
    caller: int | None = None


@dataclass(slots=True)
class _Thread:
    """A thread up to some time.

    Attributes:
        open: calls that have begun and not ended, innermost last.
        last: ids of nodes that whatever comes next depends on.
        until_ns: up to when nodes cover its time.
        is_running: whether the innermost call is still in its first piece.
    """

    open: list[HostCall] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    until_ns: int | None = None
    is_running: bool = False

    @property
    def innermost(self) -> ExportNode | None:
        """The operation that runs."""
        return self.open[-1].node if self.open else None

    def is_silent(self, at_ns: int) -> bool:
        """Whether it has nothing to do that is its own."""
        return self.until_ns is None or at_ns - self.until_ns > _HANDOVER_NS


class Threads:
    """Chains of nodes, one a thread, while time goes on."""

    def __init__(self, remainders: Remainders) -> None:
        self._threads: dict[int, _Thread] = {}
        self._remainders = remainders
        self._open: dict[int, HostCall] = {}
        self._ends: list[tuple[int, int, HostCall]] = []

    def flatten(self, calls: Iterable[HostCall]) -> None:
        """Cut nodes, given in order of start, to their first piece, add the others, and let each follow the last."""
        for place, call in enumerate(calls):
            start_ns = call.node.start_ns or 0
            self._end_until(start_ns)
            self._begin(call, start_ns)
            heapq.heappush(self._ends, (max(call.end_ns, start_ns), -place, call))
        self._end_until(None)

    def _end_until(self, at_ns: int | None) -> None:
        """End the calls that end by then; all of them without a time."""
        while self._ends and (at_ns is None or self._ends[0][0] <= at_ns):
            end_ns, _, call = heapq.heappop(self._ends)
            thread = self._threads[call.thread]
            if thread.open[-1] is call:
                self._fill(call.thread, end_ns)
                thread.is_running = False
            thread.open.remove(call)
            self._open.pop(call.node.node_id, None)

    def _begin(self, call: HostCall, at_ns: int) -> None:
        thread = self._threads.setdefault(call.thread, _Thread())
        caller = self._open.get(call.caller) if call.caller is not None else None
        if caller is not None and caller.thread != call.thread and not thread.open and thread.is_silent(at_ns):
            self._fill(caller.thread, at_ns)
            self._threads[caller.thread].is_running = False
            thread.last = sorted({*thread.last, *self._threads[caller.thread].last})
        else:
            self._fill(call.thread, at_ns)
        call.node.data.extend(thread.last)
        call.node.duration_ns = 0
        thread.last, thread.until_ns, thread.is_running = [call.node.node_id], at_ns, True
        thread.open.append(call)
        self._open[call.node.node_id] = call

    def _fill(self, number: int, at_ns: int) -> None:
        """Cover a thread's time until then."""
        thread = self._threads[number]
        operation = thread.innermost
        if thread.is_running and operation is not None:
            operation.duration_ns = at_ns - (operation.start_ns or 0)
        else:
            self._take_over(thread, number, at_ns)
            if thread.until_ns is not None:
                thread.last = self._remainders.behind(thread.last, thread.until_ns, at_ns, operation)
        thread.until_ns = at_ns

    def _take_over(self, thread: _Thread, number: int, at_ns: int) -> None:
        """Go on from the thread that ended last, where this one was silent and that may be why."""
        if not thread.is_silent(at_ns) or any(not call.is_annotation for call in thread.open):
            return
        others = {at: other for at, other in self._threads.items() if at != number and not other.is_running}
        giver = max(others, key=lambda at: others[at].until_ns or 0, default=None)
        if giver is None:
            return
        given = others[giver]
        if given.until_ns is None or (thread.until_ns is not None and given.until_ns <= thread.until_ns):
            return
        if not thread.open and given.open:
            self._fill(giver, at_ns)
        thread.last = sorted({*thread.last, *given.last})
        thread.until_ns = given.until_ns
