"""Collectives of a PyTorch whose process groups call hooks. In: the hooks. Out: a row each, from call to result.

Idea: every collective passes a process group, whoever issues it: a program, DDP for a bucket, a functional collective.
A blocking call ends when its `Work.wait` returns. So does an asynchronous one that the program waits for before it is
done, or at once; the calls of a kind before show whether it is such. All others end by a callback of their future,
which costs as much again as all else here. Where a program changes its ways, one call may seem to end with its wait.
Not handled: messages (`torch_messages`), what runs on a device, coalesced calls.
"""

from __future__ import annotations

import functools
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from traceforge.live.layout import RowKind
from traceforge.live.torch_kinds import TorchCall, TorchKinds
from traceforge.live.torch_patch import Undo, exchange, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceforge.live.recorder import Recorder
    from traceforge.live.torch_messages import TorchMessages
    from traceforge.live.torch_phases import TorchPhases
    from traceforge.live.tracks import KnownCollective

_PHASE = int(RowKind.PHASE)
_HOOK = 0x7F0E
"""Number under which our hooks are registered."""
_TRIALS = 8
_GIVEN_UP = -3 * _TRIALS
"""Points at which a kind of calls is not looked at any more."""
_AT_ONCE_NS = 20_000
"""A wait so soon after its call tells the end as well as any clock."""

_SENT, _RECEIVED = "input_tensors", "output_tensors"
_OPS = {
    "ALLREDUCE": ("all_reduce", _SENT, _SENT),
    "BROADCAST": ("broadcast", _SENT, _SENT),
    "REDUCE": ("reduce", _SENT, _SENT),
    "ALLGATHER": ("all_gather", _SENT, _RECEIVED),
    "REDUCE_SCATTER": ("reduce_scatter", _SENT, _RECEIVED),
    "ALLTOALL": ("all_to_all", _SENT, _RECEIVED),
    "GATHER": ("gather", _SENT, _SENT),
    "SCATTER": ("scatter", _RECEIVED, _RECEIVED),
    "BARRIER": ("barrier", "", ""),
}


def has_hooks(torch: Any) -> bool:
    """Whether this PyTorch calls hooks with each collective."""
    group = torch._C._distributed_c10d.ProcessGroup
    return hasattr(group, "register_pre_hook") and hasattr(group, "register_post_hook")


class _Habit:
    """What calls of one kind are, and whether the program waits for them before they are done.

    Attributes:
        points: one for each call that was awaited in time, up to `_TRIALS`, and `_TRIALS` less for one that was not.
    """

    __slots__ = ("name", "next_sequence", "points")

    def __init__(self, kind: KnownCollective) -> None:
        self.name, self.next_sequence = kind.name, kind.next_sequence
        self.points = 0

    def learn(self, *, is_late: bool) -> None:
        """How one call was awaited."""
        self.points = self.points - _TRIALS if is_late else min(self.points + 1, _TRIALS)


class _CallUnderWay(NamedTuple):
    """An asynchronous collective on its way; a tuple, which costs a fifth of what an object does."""

    habit: _Habit
    sequence: int
    start_ns: int
    returned_ns: int
    thread: int
    step: int
    has_callback: bool


class TorchGroups:
    """Watches all process groups, those that are made later as well."""

    def __init__(self, torch: Any, kinds: TorchKinds, messages: TorchMessages, phases: TorchPhases) -> None:
        self._torch = torch
        self._kinds = kinds
        self._messages = messages
        self._phases = phases
        self._begun: dict[int, tuple[int, _Habit, int]] = {}
        self._blocked: dict[int, tuple[int, _Habit, int]] = {}
        self._open: dict[Any, _CallUnderWay] = {}
        self._awaits_ready = False

    def install(self, recorder: Recorder) -> Undo:
        """Begin to watch."""
        c10d = self._torch.distributed.distributed_c10d
        watched: list[Any] = []

        def watch(group: Any) -> None:
            recorder.guarded("torch.distributed", functools.partial(self._watch, recorder, group, watched))

        def made(original: Any) -> Any:
            @functools.wraps(original)
            def make(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                watch(result[0])
                return result

            return make

        for group in list(c10d._world.pg_map):
            watch(group)
        undo_new = exchange(c10d, "_new_process_group_helper", made)
        undo_wait = exchange(self._torch._C._distributed_c10d.Work, "wait", functools.partial(self._waited, recorder))
        recorder.after_step(functools.partial(self._let_go, recorder))

        def undo_hooks() -> None:
            for group in watched:
                group.unregister_pre_hook(_HOOK)
                group.unregister_post_hook(_HOOK)
            watched.clear()
            self._open.clear()

        return in_turn([undo_hooks, undo_new, undo_wait])

    def _watch(self, recorder: Recorder, group: Any, watched: list[Any]) -> None:
        if not hasattr(group, "register_pre_hook"):
            return
        group.register_pre_hook(_HOOK, self._before(recorder, group))
        group.register_post_hook(_HOOK, self._after(recorder))
        watched.append(group)

    def _before(self, recorder: Recorder, group: Any) -> Callable[[Any], None]:
        """Called with each collective before it is issued: its path calls little and makes little."""
        known: dict[Any, _Habit | None] = {}
        begun, blocked, phases, clock_ns = self._begun, self._blocked, self._phases, recorder.tracks.clock_ns
        all_to_all = int(self._torch._C._distributed_c10d.HookOpName.ALLTOALL)

        def before(call: Any) -> None:
            try:
                start = clock_ns()
                name, tensors = call.name.__index__(), call.input_tensors
                key: Any = None
                # What one tensor is sent says what is received, but where each rank chooses its parts.
                if len(tensors) == 1 and name != all_to_all:
                    tensor = tensors[0]
                    key = name, tensor.numel(), tensor.dtype, tensor.is_cpu
                habit = known[key] if key in known else self._habit(recorder, group, call, known, key)
                identifier = get_ident()
                if blocked:
                    # A call that failed before anybody waited for it.
                    blocked.pop(identifier, None)
                if habit is not None:
                    (begun if call.async_op else blocked)[identifier] = start, habit, habit.next_sequence()
                if phases.is_backward and not self._awaits_ready:
                    self._await_ready(clock_ns)
            except Exception as error:  # noqa: BLE001  # whatever it is, the call must be made
                recorder.failed("torch.distributed", error)

        return before

    def _habit(
        self, recorder: Recorder, group: Any, call: Any, known: dict[Any, _Habit | None], key: Any
    ) -> _Habit | None:
        if call.name.name not in _OPS:
            return None
        op, sent_of, received_of = _OPS[call.name.name]
        sent, received = (list(getattr(call, one)) if one else None for one in (sent_of, received_of))
        kind = self._kinds.kind(recorder, TorchCall(op, "", ""), sent, received, group)
        place = key or (call.name.name, kind)
        if place not in known:
            known[place] = None if kind is None else _Habit(kind)
        return known[place]

    def _await_ready(self, clock_ns: Callable[[], int]) -> None:
        """Learn when the backward pass has computed all gradients."""

        # Called in order: DDP's own callback, which waits, comes after this one.
        def ready() -> None:
            self._phases.ready_ns = clock_ns()
            self._awaits_ready = False

        self._torch.autograd.Variable._execution_engine.queue_callback(ready)
        self._awaits_ready = True

    def _after(self, recorder: Recorder) -> Callable[[Any], None]:
        """Called with each collective once it is issued."""
        begun, open_calls, tracks, under_way = self._begun, self._open, recorder.tracks, _CallUnderWay._make
        clock_ns, threads, add = tracks.clock_ns, tracks.threads, tracks.add_collective

        def after(call: Any) -> None:
            if not begun:
                return
            try:
                identifier = get_ident()
                found = begun.pop(identifier, None)
                if found is None:
                    return
                start, habit, sequence = found
                work, points, thread = call.work, habit.points, threads[identifier]
                has_callback, returned = points < _TRIALS, clock_ns()
                if points > _GIVEN_UP:
                    open_calls[work] = under_way((habit, sequence, start, returned, thread, tracks.step, has_callback))
                if has_callback:
                    work.get_future().add_done_callback(
                        lambda _future: add(habit.name, sequence, start, returned, clock_ns(), thread)
                    )
            except Exception as error:  # noqa: BLE001  # whatever it is, the call was made
                recorder.failed("torch.distributed", error)

        return after

    def _waited(self, recorder: Recorder, original: Any) -> Any:
        """`Work.wait`: the end of a blocking call, or a phase of its own, and perhaps the end of the call as well."""
        tracks, open_calls, blocked, messages = recorder.tracks, self._open, self._blocked, self._messages
        clock_ns, add_row, add, threads = tracks.clock_ns, tracks.add, tracks.add_collective, tracks.threads
        phase = tracks.name(("phase", "wait_for_communication"))

        @functools.wraps(original)
        def wait(*args: Any, **kwargs: Any) -> Any:
            if blocked and (found := blocked.pop(identifier := get_ident(), None)) is not None:
                start, habit, sequence = found
                try:
                    return original(*args, **kwargs)
                finally:
                    end = clock_ns()
                    add(habit.name, sequence, start, end, end, threads[identifier])
            call = open_calls.pop(args[0], None) if open_calls else None
            start = clock_ns()
            is_late = call is not None and start - call[3] > _AT_ONCE_NS and args[0].is_completed()
            try:
                return original(*args, **kwargs)
            finally:
                end = clock_ns()
                add_row((_PHASE, phase, start, end, threads[get_ident()], 0, 0))
                if messages.awaited:
                    messages.received(args[0])
                if call is not None:
                    habit, sequence, call_start, returned, thread, _, has_callback = call
                    if not has_callback:
                        add(habit.name, sequence, call_start, returned, start if is_late else end, thread)
                    if is_late or habit.points < _TRIALS:
                        habit.learn(is_late=is_late)

        return wait

    def _let_go(self, recorder: Recorder, step: int, _start_ns: int, _end_ns: int) -> None:
        """Forget calls that nobody waits for, so that what they hold is free."""
        # A backward pass that failed never says that it is ready.
        self._awaits_ready = False
        old = [work for work, call in self._open.items() if call.step < step] if self._open else ()
        for work in old:
            call = self._open.pop(work)
            if not call.has_callback:
                recorder.failed(
                    "torch.distributed", RuntimeError("nobody waited for a call, so that its end is unknown")
                )
            call.habit.points = _GIVEN_UP
