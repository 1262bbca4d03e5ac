"""Messages of execution traces that do not fit, in words. In: rows of graph.message_pair. Out: sentences."""

from collections.abc import Sequence

from traceforge.graph.message_words import message_mismatch
from traceforge.report.context import Row
from traceforge.report.formatting import plural

_MOST_PAIRS = 8


def message_notes(rows: Sequence[Row]) -> list[str]:
    """A sentence for each pair of ranks that does not fit, and one for those that do; none without messages."""
    fitting = [row for row in rows if row["status"] == "agrees"]
    others = [row for row in rows if row["status"] != "agrees"]
    told = [_sentence(row) for row in others[:_MOST_PAIRS]]
    if fitting:
        sent = sum(row["send_count"] for row in fitting)
        told.append(f"{plural(sent, 'message')} of {plural(len(fitting), 'pair')} of ranks match: sent and received.")
    return told


def _sentence(row: Row) -> str:
    sender, receiver = f"rank {row['source_rank']}", f"rank {row['destination_rank']}"
    counts = f"{row['send_count']} sent, {row['receive_count']} received"
    if row["status"] == "shorter":
        return f"From {sender} to {receiver}, {counts}: {message_mismatch(row)}."
    return f"From {sender} to {receiver}, sends and receives do not match: {message_mismatch(row)}; {counts}."
