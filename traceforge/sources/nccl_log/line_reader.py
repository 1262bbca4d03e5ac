"""Lines one by one. In: a line. Out: its records, stored; and what it teaches for reading lines many at once.

Idea: this way reads everything and decides what everything means; speed is the business of the other way.
Not handled: records that span lines.
"""

import re

from traceforge.sources.nccl_log.calls import call_row, call_tail
from traceforge.sources.nccl_log.canonical_lines import CanonicalLines, Head
from traceforge.sources.nccl_log.framing import Framed, records_in
from traceforge.sources.nccl_log.grammar import Record
from traceforge.sources.nccl_log.interpreter import UNPARSED
from traceforge.sources.nccl_log.launchers import ANSI, read_prefix, without_repeats
from traceforge.sources.nccl_log.rules.tunings import tuning_tail
from traceforge.sources.nccl_log.stamps import Stamp, read_stamp
from traceforge.sources.nccl_log.state import LogState

_BUFFER_BYTES = frozenset((1022, 1023, 4094, 4095))
"""Length of records that filled NCCL's buffer (RCCL's is larger), without and with the line end."""
_LONGEST_NEIGHBOUR = 1_024
_MICROSECOND_NS = 1_000


class LineReader:
    """Reads single lines of one log."""

    def __init__(self, state: LogState, canonical: CanonicalLines) -> None:
        self._state = state
        self._canonical = canonical

    def may_hold_records(self, line: bytes) -> bool:
        """A quick test that few lines of other programs pass."""
        return b"CCL" in line or b"# " in line or self._state.neighbours.goes_on

    def read(self, line: bytes, number: int, record_id: int) -> int:
        """Store the records of a line.

        Args:
            line: the line, without its end.
            number: its number, from 1.
            record_id: number of its first record.

        Returns:
            How many records it holds.
        """
        is_clean = b"\x1b" not in line
        if not is_clean:
            line = ANSI.sub(b"", line)
        whole = line
        line, left_out = without_repeats(line)
        count = 0
        for framed in records_in(line, self._state.processes.glued_bytes):
            self._store(framed, line if is_clean and line is whole else None, number, record_id + count)
            count += 1
        self._state.issues.add("repeats_left_out", left_out if count else 0, at=f"line {number}")
        return count or self._neighbour(line, number, record_id)

    def _store(self, framed: Framed, line: bytes | None, number: int, record_id: int) -> None:
        state = self._state
        stamp = read_stamp(framed.prefix)
        prefix = read_prefix(framed.prefix if stamp is None else framed.prefix[: stamp.start])
        is_doubtful = framed.follows or prefix.style == "other"
        record = self._record(framed, stamp, number, record_id, is_doubtful=is_doubtful)
        rule, match = state.interpreter.read(record)
        self._add_record(record, rule)
        state.styles[prefix.style] += 1
        if stamp is not None:
            state.stamps[stamp.form, stamp.resolution_ns] += 1
        if record.process_id is not None:
            state.processes.all[record.process_id].count(1, prefix.rank)
        if rule == UNPARSED:
            state.templates.add(record)
        self._note(framed, record)
        if line is not None and framed.head is not None and match is not None and not framed.is_torn:
            self._learn(line, framed.head, stamp, record, rule, match)

    def _record(self, framed: Framed, stamp: Stamp | None, number: int, record_id: int, *, is_doubtful: bool) -> Record:
        head = framed.head
        time_ns = None if stamp is None else stamp.time_ns
        if head is None:
            return Record(record_id, number, None, None, None, framed.level, time_ns, None, framed.message)
        if head["us"] is not None and time_ns is None and len(head["us"]) <= 16:
            time_ns = int(head["us"]) * _MICROSECOND_NS
        process = self._state.processes.of(head["host"].decode("ascii"), int(head["pid"]), is_doubtful=is_doubtful)
        self._state.issues.add("too_many_processes", int(process is None), at=f"line {number}")
        return Record(
            record_id=record_id,
            line=number,
            process_id=None if process is None else process.process_id,
            tid=None if head["tid"] is None else int(head["tid"]),
            device=None if head["device"] is None else int(head["device"]),
            level=framed.level,
            raw_time_ns=time_ns,
            place=None if head["place"] is None else head["place"].decode("utf-8", "replace"),
            message=framed.message,
            is_cut=head.end() - head.start() + len(framed.message) in _BUFFER_BYTES,
        )

    def _note(self, framed: Framed, record: Record) -> None:
        at = f"line {record.line}"
        self._state.issues.add("torn_line", int(framed.is_torn), at=at)
        self._state.issues.add("record_without_head", int(framed.head is None), at=at)
        self._state.issues.add("cut_record", int(record.is_cut), at=at)

    def _add_record(self, record: Record, rule: str) -> None:
        row = {
            "record_id": record.record_id,
            "line": record.line,
            "process_id": record.process_id,
            "tid": record.tid,
            "device": record.device,
            "level": record.level,
            "rule": rule,
            "raw_time_ns": record.raw_time_ns,
        }
        self._state.tables.add("record", row)

    def _learn(
        self,
        line: bytes,
        head: re.Match[bytes],
        stamp: Stamp | None,
        record: Record,
        rule: str,
        match: re.Match[str],
    ) -> None:
        """Teach the other way what this line looked like, if it is of a form that it reads."""
        if rule == "collective_call":
            tail, tail_word = call_tail(call_row(match.groupdict())), b" datatype "
        elif rule == "tuning" and match.groupdict().get("channel_low") is not None:
            tail, tail_word = tuning_tail(match), b" Bytes -> "
        else:
            return
        begin = line.rfind(b" ", 0, head.start()) + 1
        is_glued_stamp = stamp is not None and begin < head.start()
        if record.process_id is None or record.level != "INFO" or head["us"] or head["place"] or is_glued_stamp:
            return
        self._state.prefixes.learn(line[:begin], stamp)
        head_end = head.end() + match.end("op") + len(": ")
        tail_start = line.find(tail_word, head_end) + 1
        if tail_start:
            columns = {"process_id": record.process_id, "tid": record.tid, "device": record.device, "op": match["op"]}
            known = Head(columns, record.process_id, read_prefix(line[begin : head.start()].decode("utf-8", "replace")))
            self._canonical.learn(line, (begin, head_end, tail_start), known, tail)

    def _neighbour(self, line: bytes, number: int, record_id: int) -> int:
        """Store what a line without records says; 1 where it says something."""
        text = line[:_LONGEST_NEIGHBOUR].decode("utf-8", "replace").rstrip()
        banner = self._state.neighbours.banner(text)
        record = Record(record_id, number, None, None, None, None, None, None, text if banner is None else banner)
        rule: str | None
        if banner is None:
            rule = self._state.neighbours.read(text, record_id)
        else:
            rule = self._state.interpreter.read(record)[0]
        if rule is None or rule == UNPARSED:
            return 0
        self._add_record(record, rule)
        return 1
