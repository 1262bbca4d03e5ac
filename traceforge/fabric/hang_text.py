"""A hang in words. In: what `hang_search` found. Out: a sentence, and what to do next."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from traceforge.fabric.hang_state import Dumps, Hang, RecordedCall
from traceforge.units import listed, plural

_MOST_LISTED = 12
_MOST_TOLD = 3
_STACKS = "Look at the stacks of {ranks} (py-spy dump --pid, or the last frames in the dump) and at {their} log"
_RECORD = (
    "(TORCH_NCCL_DUMP_ON_TIMEOUT=1, TORCH_FR_BUFFER_SIZE=2000, and the prefix TORCH_FR_DUMP_TEMP_FILE on storage that "
    "outlives the job)."
)


def summary(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    """What holds up the job, in one sentence.

    Args:
        names: of the groups, as people know them.
    """
    return _SUMMARIES[hang.kind](hang, dumps, names)


def detail(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    """What shows it, in a few sentences; empty where there is nothing more to say."""
    told = _DETAILS[hang.kind](hang, dumps, names) if hang.kind in _DETAILS else ""
    sentences = [told] if told else []
    if hang.call and (frame := own_frame(hang.call.stack)):
        sentences.append(f"On {_ranks([hang.call.rank])} that call was made in {frame}.")
    sentences += [_last_call(dumps, rank, names) for rank in hang.ranks[:_MOST_TOLD] if rank in dumps.last]
    if dumps.without_dump and hang.kind != "unknown":
        has, they_do = ("has", "it does") if len(dumps.without_dump) == 1 else ("have", "they do")
        sentences.append(f"{_ranks(dumps.without_dump, 'Rank')} {has} no dump: what {they_do} cannot be known.")
    return " ".join(sentences)


def own_frame(stack: str | None) -> str | None:
    """The innermost frame of a stack that is not PyTorch's own; the innermost of all where there is none."""
    frames = (stack or "").splitlines()
    return next((frame for frame in frames if "/torch/" not in frame), frames[0] if frames else None)


def next_step(hang: Hang, dumps: Dumps) -> str:
    """What to do next about a hang."""
    if hang.kind == "unknown":
        return _to_know_more(hang, dumps)
    whom = _ranks(hang.ranks)
    return {
        "mismatch": f"Make all members call the same: look at what {whom} did differently before this call.",
        "order": f"Make {whom} make these calls in an order in which none waits for a later one; "
        "their stacks (py-spy dump) show where they are.",
        "ahead": f"See whether {whom} takes a branch or one step more that the others do not take; if not, look at the "
        f"stacks of {_ranks(hang.absent)} (py-spy dump --pid): something outside of collectives holds them.",
        "absent": _STACKS.format(ranks=whom, their="its" if len(hang.ranks) == 1 else "their")
        + ", not at those that wait.",
        "stuck": f"Look at the devices of {whom}: Xid lines in the kernel log, nvidia-smi, and the kernels before this "
        "call (compute-sanitizer).",
        "unstarted": f"Look at what runs on {whom} before this call: nvidia-smi, Xid lines in the kernel "
        "log, kernels that do not end (cuda-gdb), calls of other groups on other streams.",
        "transfer": "Look at the links between the members: NCCL_DEBUG=INFO, counters of NICs, nvidia-smi nvlink."
        + ("" if _has_starts(dumps) else " TORCH_NCCL_ENABLE_TIMING=1 records which devices have begun a call."),
        "none": "If the job still hangs, look at the stacks (py-spy dump): it is not in a collective.",
    }[hang.kind]


def _to_know_more(hang: Hang, dumps: Dumps) -> str:
    if hang.discord:
        return "Write the dumps of all ranks at one moment; PyTorch does when a call times out " + _RECORD
    if dumps.without_dump or dumps.silent or dumps.unplaced:
        return "Collect the dumps of all ranks " + _RECORD
    return "Look at the stacks of all ranks (py-spy dump --pid): the dumps do not show who is waited for."


def _has_starts(dumps: Dumps) -> bool:
    """Whether every call that waits tells if its device has begun it."""
    stands = [stand.call for stand in dumps.stands.values()]
    return all(call is not None and call.has_started is not None for call in stands)


def _mismatch(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    odd, usual = hang.others[0], hang.call
    if usual and usual.is_message:
        one, other = f"Rank {usual.rank} calls {_described(usual)}", f"rank {odd.rank} calls {_described(odd)}"
        return f"{one}, and at its other end {other}: these do not match."
    calls = "calls" if len(hang.ranks) == 1 else "call"
    where = f", where {_ranks([usual.rank])} calls {_described(usual)}" if usual else ""
    return (
        f"{_ranks(hang.ranks, 'Rank')} {calls} {_described(odd)} as collective {hang.sequence} of "
        f"{_group(hang.group, dumps, names)}{where}: these do not match."
    )


def _order(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    calls = [call for call in (hang.call, *hang.others) if call]
    told = [f"{_ranks([call.rank])} in {_place(call, dumps, names)}" for call in calls[:_MOST_TOLD]]
    more = [f"{plural(len(calls) - _MOST_TOLD, 'more rank')}"] if len(calls) > _MOST_TOLD else []
    how = "each other" if len(hang.ranks) == 2 else "each other in a ring"
    return f"{_ranks(hang.ranks, 'Rank')} wait for {how}{': ' if told else ''}{listed([*told, *more])}."


def _order_detail(hang: Hang, _dumps: Dumps, _names: Mapping[int, str]) -> str:
    calls = [call for call in (hang.call, *hang.others) if call and call.is_message]
    if len(calls) == len(hang.ranks) and len({call.op.split()[0] for call in calls}) == 1:
        does, other = ("sends", "receives") if calls[0].op.startswith("send ") else ("receives", "sends")
        return (
            f"Each {does} before it {other}, so that nobody is at the other end (batch_isend_irecv makes both at once)."
        )
    return "They make these calls in different order, or one of them stopped with its earlier call under way."


def _absent(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    place = _blocked(hang, dumps, names)
    if hang.call and hang.call.is_message:
        others = len(hang.waiting) - 1
        more = f"; because of that, {others} more {_wait(others)} in other calls" if others else ""
        return (
            f"{_ranks(hang.ranks, 'Rank')} never made the other end of {place}, in which {_ranks([hang.call.rank])} "
            f"waits{more}."
        )
    if hang.absent == hang.ranks:
        inside = sum((own.group, own.sequence) == (hang.group, hang.sequence) for own in dumps.stands.values())
        told = f"{_ranks(hang.ranks, 'Rank')} never made the call that {_waiting(inside)} in: {place}"
        others = len(hang.waiting) - inside
        return f"{told}{f'; because of that, {others} more {_wait(others)} in other calls' if others else ''}."
    return (
        f"{_ranks(hang.ranks, 'Rank')} stopped making calls, and {_waiting(len(hang.waiting))} for them; first, "
        f"{_ranks(hang.absent)} never made {place}."
    )


def _ahead(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    alone = "alone waits" if len(hang.ranks) == 1 else "alone wait"
    few, many = _ranks(hang.ranks, "Rank"), _ranks(hang.absent)
    return f"{few} {alone} in {_blocked(hang, dumps, names)}: {many} never made that call, and wait in none."


def _stuck(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    device, does = ("device", "does") if len(hang.ranks) == 1 else ("devices", "do")
    tail = f"; {_waiting(len(hang.waiting))} for this" if hang.waiting else ""
    return f"The {device} of {_ranks(hang.ranks)} {does} not end calls that other members ended{tail}."


def _stuck_detail(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    calls = [_at(dumps, rank, names) for rank in hang.ranks[:_MOST_TOLD]]
    more = f"; and {plural(len(hang.ranks) - _MOST_TOLD, 'more rank')}" if len(hang.ranks) > _MOST_TOLD else ""
    text = f"Calls under way: {'; '.join(calls)}{more}."
    if hang.others:
        place = _place(hang.others[0], dumps, names)
        text += f" What others wait for, and {_ranks(hang.absent)} never made, is first {place}."
    return text


def _unstarted(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    device, has = ("device", "has") if len(hang.ranks) == 1 else ("devices", "have")
    return (
        f"The {device} of {_ranks(hang.ranks)} {has} not begun a call that other members have begun: "
        f"{_blocked(hang, dumps, names)}. {_waiting(len(hang.waiting)).capitalize()} for this."
    )


def _transfer(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    place = _blocked(hang, dumps, names)
    if _has_starts(dumps):
        return f"All members have begun {place}, and none gets out of it: nobody is missing, so the transfer hangs."
    return f"All members have made {place}, and none gets out of it: nobody is missing."


def _transfer_detail(_hang: Hang, dumps: Dumps, _names: Mapping[int, str]) -> str:
    either = "If the dumps were written while the job ran, the call may only have been under way."
    if _has_starts(dumps):
        return either
    return (
        "Either the transfer itself hangs, or the device of a member has not come to it: these dumps do not record "
        f"what the devices have begun. {either}"
    )


def _unknown(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    whether = "Who holds up the job" if hang.waiting and not hang.discord else "Whether the job hangs"
    return f"{whether} cannot be known: {_why_unknown(hang, dumps, names)}."


def _why_unknown(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    if hang.discord:
        call, rank = hang.discord
        return (
            f"the dumps are not of one moment. Rank {call.rank} had ended {_place(call, dumps, names)}, which rank "
            f"{rank} had not yet made when its dump was written"
        )
    if dumps.without_dump:
        has = "has" if len(dumps.without_dump) == 1 else "have"
        world = plural(len(dumps.ranks) + len(dumps.without_dump), "rank")
        return f"{_ranks(dumps.without_dump)} of {world} {has} no dump"
    if dumps.silent:
        dump, holds = ("dump", "holds") if len(dumps.silent) == 1 else ("dumps", "hold")
        return f"the {dump} of {_ranks(dumps.silent)} {holds} no call"
    if dumps.unplaced:
        return f"of {plural(dumps.unplaced, 'call')} the dumps do not say which they are, or whether they had ended"
    if hang.waiting and not dumps.stated:
        return f"these dumps do not state who takes part; all {plural(len(dumps.ranks), 'rank')} with a dump do"
    return "these dumps do not say who is waited for"


def _unknown_detail(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    if hang.discord:
        return ""
    if not hang.waiting:
        return "" if dumps.unplaced else "No call in the dumps that are there waits."
    return f"{_ranks(hang.waiting, 'Rank')} {_wait(len(hang.waiting))}, first in {_blocked(hang, dumps, names)}."


def _none(_hang: Hang, dumps: Dumps, _names: Mapping[int, str]) -> str:
    ranks = f"{'all ' if dumps.stated else ''}{plural(len(dumps.ranks), 'rank')}"
    return f"Nothing hangs in a collective: every call that the dumps of {ranks} know of had ended."


Sentence = Callable[[Hang, Dumps, Mapping[int, str]], str]
_SUMMARIES: Mapping[str, Sentence] = MappingProxyType(
    {
        "mismatch": _mismatch,
        "order": _order,
        "absent": _absent,
        "ahead": _ahead,
        "stuck": _stuck,
        "unstarted": _unstarted,
        "transfer": _transfer,
        "unknown": _unknown,
        "none": _none,
    }
)
_DETAILS: Mapping[str, Sentence] = MappingProxyType(
    {"order": _order_detail, "stuck": _stuck_detail, "transfer": _transfer_detail, "unknown": _unknown_detail}
)


def _last_call(dumps: Dumps, rank: int, names: Mapping[int, str]) -> str:
    call = dumps.last[rank]
    frame = own_frame(call.stack)
    return f"The last call of rank {rank} is {_place(call, dumps, names)}{f', made in {frame}' if frame else ''}."


def _blocked(hang: Hang, dumps: Dumps, names: Mapping[int, str]) -> str:
    if hang.call is not None:
        return _place(hang.call, dumps, names)
    return f"call {hang.sequence} of {_group(hang.group, dumps, names)}, which the dumps do not describe"


def _at(dumps: Dumps, rank: int, names: Mapping[int, str]) -> str:
    stand = dumps.stands[rank]
    where = _place(stand.call, dumps, names) if stand.call else f"call {stand.sequence} of {names[stand.group]}"
    return f"rank {rank} in {where}"


def _place(call: RecordedCall, dumps: Dumps, names: Mapping[int, str]) -> str:
    if call.is_message:
        return f"{call.op} of {_group(call.group, dumps, names)}"
    return f"{_described(call, call.sequence)} of {_group(call.group, dumps, names)}"


def _described(call: RecordedCall, sequence: int | None = None) -> str:
    size = "" if call.in_shapes is None else f" ({_shapes(call.in_shapes)}{_types(call.in_dtypes)})"
    return f"{call.op}{'' if sequence is None else f' {sequence}'}{size}"


def _shapes(text: str) -> str:
    inner = text[1:-1] if text.startswith("[[") and text.endswith("]]") else text
    return inner if len(inner) <= 60 else inner[:57] + "..."


def _types(text: str | None) -> str:
    types = dict.fromkeys((text or "").strip('[]"').split('", "'))
    inner = " ".join(types)
    return f" {inner[:40]}" if inner else ""


def _group(group: int | None, dumps: Dumps, names: Mapping[int, str]) -> str:
    if group is None:
        return "an unknown group"
    members = dumps.members[group]
    return names[group] + (f" ({_ranks(members)})" if members else "")


def _waiting(count: int) -> str:
    """How many wait: `14 ranks wait`."""
    return f"{plural(count, 'rank')} {_wait(count)}"


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _ranks(ranks: Sequence[int], word: str = "rank") -> str:
    """`ranks 0–3 and 7`; at most a dozen stretches."""
    if not ranks:
        return f"no {word}"
    stretches: list[list[int]] = []
    for rank in sorted(ranks):
        if stretches and rank == stretches[-1][-1] + 1:
            stretches[-1].append(rank)
        else:
            stretches.append([rank])
    parts = [str(own[0]) if len(own) == 1 else f"{own[0]}\N{EN DASH}{own[-1]}" for own in stretches]
    if len(parts) > _MOST_LISTED:
        parts = [*parts[:_MOST_LISTED], f"{len(parts) - _MOST_LISTED} more"]
    return f"{word}{'' if len(ranks) == 1 else 's'} {listed(parts)}"
