"""A hang as flight recorder dumps tell it: who is waited for, and how far each rank got in each process group.

Reads fabric.hang, process_group and group_progress. A run without dumps has no such section.
"""

from traceforge.report.blocks import (
    Block,
    Note,
    Paragraph,
    Section,
    Subheading,
    Table,
    TableColumn,
    TableFigure,
    number,
)
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, plural, rank_list
from traceforge.report.plugin import Plugin

_MOST_FRAMES = 12
_MOST_SIGNS = 1_200
_MESSAGES = (
    " Sends and receives run in groups marked *: there each rank counts its own, so that numbers of ranks differ."
)


def _build(context: Context) -> Section | None:
    hangs = context.rows("sections/hang")
    if not hangs:
        return None
    blocks: list[Block] = []
    for hang in hangs:
        if len(hangs) > 1 or not _is_in_verdict(hang, context):
            blocks.append(Paragraph(f"{clean(hang['summary'], 900)} {clean(hang['detail'], _MOST_SIGNS)}".rstrip()))
            blocks.append(Note(clean(hang["next_step"], 600)))
        if hang["stack"]:
            frames = [{"frame": frame} for frame in str(hang["stack"]).splitlines()]
            blocks.append(Table.of(frames, _FRAME_COLUMNS, _MOST_FRAMES, "Where the waiting ranks made that call"))
    progress = context.rows("sections/hang_progress")
    if progress:
        table = Table.of(progress, _COLUMNS, context.limits.table_rows)
        blocks += [
            Subheading("Progress of each rank in its process groups"),
            TableFigure("hang-progress", _summary(progress), table, ["sections/hang", "sections/hang_progress"]),
        ]
    return Section(blocks)


def _is_in_verdict(hang: Row, context: Context) -> bool:
    """Whether the verdict says all of it."""
    verdict = context.diagnosis.verdict
    return verdict is not None and clean(hang["detail"], _MOST_SIGNS) in verdict.explanation


def _summary(progress: list[Row]) -> str:
    groups = len({row["group_id"] for row in progress})
    text = f"In {plural(groups, 'process group')} a call waits or a rank is behind; the blocked one comes first."
    return text + (_MESSAGES if any(row["has_messages"] for row in progress) else "")


def _group(row: Row) -> str:
    members = f" (ranks {rank_list(row['members'])})" if row["members"] else ""
    return f"{clean(row['known_as'], 80)}{'*' if row['has_messages'] else ''}{members}"


def _reached(row: Row, name: str) -> str:
    """A number, with how far it is behind the furthest member."""
    reached, furthest = row[f"last_{name}"], row[f"furthest_{name}"]
    if reached is None:
        return "not recorded"
    behind = 0 if row["has_messages"] or furthest is None else furthest - reached
    return f"{reached}{f' ({behind} behind)' if behind else ''}"


def _rank(row: Row) -> str:
    return f"{row['rank']}{' holds up' if row['holds_up'] else ''}"


_FRAME_COLUMNS = (TableColumn("frame", lambda row: clean(row["frame"], 300), code=True, wide=True),)
_COLUMNS = (
    TableColumn("process group", _group, wide=True),
    TableColumn("rank", _rank),
    number("last call made", lambda row: _reached(row, "enqueued")),
    number("last started", lambda row: "not recorded" if row["last_started"] is None else str(row["last_started"])),
    number("last ended", lambda row: _reached(row, "completed")),
    number("waiting calls", lambda row: "no dump" if row["pending_count"] is None else count(row["pending_count"])),
)

SECTION = Plugin(15, "Hang", "Hang", _build)
