"""What "nothing else" excludes, and how far to trust the answer, in a few words each on the first screen.

Reads attribute.sight and the numbers of the section on data quality, where all of it stands.
"""

from traceforge.report.answer_blocks import Assurances
from traceforge.report.blocks import Section
from traceforge.report.context import Context, Row
from traceforge.report.formatting import capital, duration, listed, percent, plural
from traceforge.report.plugin import Plugin

_SUBJECTS = {"rank": "on one rank", "host": "on one host", "job": "on all transfers"}
_PATTERNS = {"persistent": "(in all iterations)", "episode": "(in a quarter of the iterations)"}
_ALIKE = "what slows all ranks alike in every iteration"


def _build(context: Context) -> Section | None:
    entries = [("What “nothing else” excludes", _sight(_looked_for(context))), ("Trust", _trust(context))]
    shown = [(title, text) for title, text in entries if text]
    if not shown:
        return None
    return Section([Assurances(shown, "trust", "Data quality", ["sections/assurance", "clocks", "matching", "issues"])])


def _looked_for(context: Context) -> list[Row]:
    """Kinds of culprits that this run could have had: one rank alone has no transfers."""
    rows, is_alone = context.rows("sections/assurance"), len(context.job.ranks) < 2
    return [row for row in rows if not (is_alone and row["subject_kind"] == "job")]


def _sight(rows: list[Row]) -> str:
    seen = [row for row in rows if row["is_seen"] and row["subject_kind"] in _SUBJECTS]
    if not seen:
        return ""
    clauses: dict[str, list[str]] = {}
    for row in seen:
        clauses.setdefault(duration(row["smallest_ns"]), []).append(_where(row))
    sizes = [f"{size} an iteration {' or '.join(places)}" for size, places in clauses.items()]
    unseen = [_where(row) for row in rows if not row["is_seen"] and row["subject_kind"] in ("rank", "host")]
    missed = f", nor {listed([f'delays {where}' for where in unseen])}" if unseen else ""
    larger = " or ".join(sizes)
    return f"A fault would have been found if it cost more than {larger}. This does not show {_ALIKE}{missed}."


def _where(row: Row) -> str:
    return f"{_SUBJECTS.get(row['subject_kind'], row['subject_kind'])} {_PATTERNS.get(row['pattern'], row['pattern'])}"


def _trust(context: Context) -> str:
    trust, job = context.trust, context.job
    parts = []
    if trust.coverage.ranks and not trust.coverage.is_whole:
        parts.append(f"{trust.coverage.of_all} ranks recorded")
    if trust.steps_inferred_from:
        parts.append(f"steps inferred from {trust.steps_inferred_from}")
    if trust.unaligned:
        parts.append(f"{plural(len(trust.unaligned), 'clock')} not aligned")
    elif trust.largest_residual_ns is not None:
        parts.append(f"clocks within {duration(trust.largest_residual_ns)}")
    if trust.matched_share is not None:
        parts.append(f"{percent(trust.matched_share)} of communication matched")
    if trust.unexplained is not None:
        parts.append(f"{percent(trust.unexplained)} of the delay unexplained")
    if trust.lost_events:
        parts.append(f"{plural(trust.lost_events, 'event')} of {plural(trust.events, 'event')} not stored")
    if unused := sum(source.files - source.used_files for source in job.sources):
        parts.append(f"{plural(unused, 'file')} not used")
    return f"{capital('; '.join(parts))}." if parts else ""


SECTION = Plugin(12, "How sure", "", _build)
