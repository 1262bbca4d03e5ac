"""Rows of lines that were read many at once. In: arrays of fields. Out: frames of raw.nccl_record, _tuning and calls.

Idea: what was learnt once (heads, tails) stands in frames; gathering from them makes the columns.
Not handled: anything the slow way does not teach.
"""

import numpy as np
import polars as pl

from traceforge.sources.nccl_log.byte_words import Int64Array
from traceforge.sources.nccl_log.calls import Entries
from traceforge.sources.nccl_log.canonical_lines import CanonicalLines, Lines
from traceforge.sources.nccl_log.state import LogState
from traceforge.sources.nccl_log.tables import SCHEMAS, TYPES

_HEAD = {"process_id": TYPES["i32"], "tid": TYPES["i64"], "device": TYPES["i32"], "op": TYPES["str"]}
_TUNING_TAIL = ("algorithm", "protocol", "channel_low", "channel_high")


class ManyRows:
    """Stores lines of one log."""

    def __init__(self, state: LogState, canonical: CanonicalLines) -> None:
        self._state = state
        self._canonical = canonical
        self._heads = Entries(_HEAD)
        self._tuning_tails = Entries({name: SCHEMAS["tuning"][name] for name in _TUNING_TAIL})

    def add(self, lines: Lines, record_ids: Int64Array, line_numbers: Int64Array, rule: str) -> None:
        """Store lines of one form.

        Args:
            lines: their fields.
            record_ids: their numbers as records.
            line_numbers: their numbers as lines.
            rule: name of the rule that reads such lines.
        """
        heads = self._heads.frame([head.columns for head in self._canonical.heads.entries])[lines.head]
        has_time = pl.Series(lines.has_time)
        record = heads.select("process_id", "tid", "device").with_columns(
            pl.Series("record_id", record_ids),
            pl.Series("line", line_numbers),
            pl.when(has_time).then(pl.Series(lines.time_ns)).alias("raw_time_ns"),
            level=pl.lit("INFO"),
            rule=pl.lit(rule),
        )
        self._state.tables.add_frame("record", record)
        self._count(lines)
        if rule == "collective_call":
            self._state.calls.add_lines(lines, record_ids, heads, self._canonical.call_tails.entries)
        else:
            tails = self._tuning_tails.frame(self._canonical.tuning_tails.entries)[lines.tail]
            sizes = pl.Series("size_bytes", lines.numbers["size_bytes"].view(np.int64))
            rows = tails.with_columns(heads["op"], sizes, pl.Series("record_id", record_ids))
            self._state.tables.add_frame("tuning", rows)

    def _count(self, lines: Lines) -> None:
        """Count records by process, launcher's prefix and form of time stamp, as the slow way does."""
        state, heads = self._state, self._canonical.heads.entries
        styles = len(state.prefixes.styles) + 1
        counts = np.bincount(lines.head * styles + lines.style + 1, minlength=1)
        for pair in np.flatnonzero(counts).tolist():
            head_number, style_number, count = pair // styles, pair % styles - 1, int(counts[pair])
            head = heads[head_number]
            prefix = head.prefix if style_number < 0 else state.prefixes.styles[style_number]
            state.styles[prefix.style] += count
            state.processes.all[head.process_id].count(count, prefix.rank)
        timed = int(lines.has_time.sum())
        if timed and state.prefixes.stamp is not None:
            state.stamps[state.prefixes.stamp] += timed
