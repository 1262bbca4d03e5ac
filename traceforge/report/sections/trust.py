"""How far the data can be trusted: clocks, matched collectives, kept events, what stays unexplained, issues.

Reads align.clock, timeline.collective, attribute.delay and meta.issue. States are said in words beside their colour.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf

from traceforge.report.blocks import Block, Missing, Note, Section, Table, TableColumn, TableFigure, Tile, Tiles, number
from traceforge.report.context import Context
from traceforge.report.formatting import (
    capital,
    cautious_percent,
    count,
    crossed,
    duration,
    duration_range,
    listed,
    named_ranks,
    percent,
    plural,
    rank_list,
    spaced,
)
from traceforge.report.machine_readable import MOST_ENTRIES, share, whole
from traceforge.report.plugin import Plugin
from traceforge.report.trust import Clock
from traceforge.thresholds import report as thresholds

_STATUS_WORDS = {
    "reference": "reference",
    "fitted": "fitted on collectives",
    "shared_clock": "shares its host's clock",
    "bounded": "bounded only",
    "unaligned": "not aligned",
}
_MOST_HOSTS = 8


def _build(context: Context) -> Section | Missing:
    tiles = [_ranks_tile, _clock_tile, _matching_tile, _events_tile, _unexplained_tile]
    names = ["matching", "clocks", "events", "unexplained"]
    blocks: list[Block] = [Tiles([tile(context) for tile in tiles], names)]
    if len(context.trust.clocks) > 1:
        blocks += _clock_blocks(context)
    blocks.append(_issue_figure(context) if context.trust.issues else Note("No row was skipped, repaired or guessed."))
    return Section(blocks)


def _ranks_tile(context: Context) -> Tile:
    coverage = context.trust.coverage
    if not coverage.ranks:
        return Tile("—", "Ranks recorded", "No timeline of any rank.", "caution")
    text = "every rank from first to last event"
    if coverage.truncated_ranks:
        text = f"{plural(coverage.truncated_ranks, 'file')} truncated; iterations after that are not judged"
    elif not coverage.is_whole:
        text = "what the others did is not known"
    if coverage.is_split is False:
        text += f"; waiting and transfer not told apart in {percent(coverage.unsplit_share or 0)} of the time"
    if coverage.layout:
        text = f"{crossed(coverage.layout)}; {text}"
    state = "good" if coverage.is_whole and coverage.is_split is not False else "caution"
    return Tile("1 of ?" if coverage.job_ranks is None else coverage.of_all, "Ranks recorded", text, state)


def _clock_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.clocks:
        return Tile("—", "Clocks", "No clock was compared.", "plain")
    if len(trust.clocks) == 1:
        what = "One rank needs no alignment." if trust.coverage.is_whole else "Not measured: one rank was recorded."
        return Tile("—", "Clocks", what, "plain")
    if trust.unaligned:
        text = f"{plural(len(trust.unaligned), 'rank')} of {len(trust.clocks)} could not be placed on the common clock."
        return Tile("not aligned", "Clocks", text, "bad")
    if trust.largest_residual_ns is None:
        return Tile("—", "Clocks", "No residual is known.", "caution")
    is_bounded = any(clock.status == "bounded" for clock in trust.clocks)
    kind = "known within bounds only" if is_bounded else "largest residual"
    text = f"{kind}; waits under {duration(trust.resolution_ns)} support no finding"
    return Tile(f"±{duration(trust.largest_residual_ns)}", "Clocks", text, "caution" if is_bounded else "good")


def _matching_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.collectives and len(context.job.ranks) == 1:
        return Tile("—", "Communication matched", "One rank has no peer to match with.", "plain")
    if not trust.collectives:
        return Tile("—", "Communication matched", "No collective was matched across ranks.", "caution")
    whole = f"{count(trust.complete)} of {count(trust.collectives)} collectives have every member's part"
    if trust.matched_share is None:
        return Tile("not measured", "Communication matched", f"one member of each was recorded; {whole}", "caution")
    state = _state(trust.matched_share, thresholds.GOOD_MATCHED_SHARE, thresholds.FAIR_MATCHED_SHARE)
    if trust.complete < trust.collectives and state == "good":
        state = "caution"
    return Tile(
        cautious_percent(trust.matched_share),
        "Communication matched",
        f"of collective calls, sends and receives; {whole}",
        state,
    )


def _events_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.events:
        return Tile("—", "Events kept", "No event was read.", "caution")
    kept = 1 - trust.lost_events / trust.events
    text = f"of {count(trust.events)} events; {count(trust.lost_events)} not stored"
    state = _state(kept, thresholds.GOOD_KEPT_SHARE, thresholds.FAIR_KEPT_SHARE)
    # How many events a file holds that cannot be read nobody knows.
    if failed := _failed_files(context):
        text += f"; {plural(failed, 'file')} could not be read"
        state = "caution" if state == "good" else state
    return Tile(cautious_percent(kept), "Events kept", text, state)


def _failed_files(context: Context) -> int:
    return sum(issue.count for issue in context.trust.issues if issue.code == "file_failed")


def _unexplained_tile(context: Context) -> Tile:
    unexplained = context.trust.unexplained
    if unexplained is None:
        return Tile("—", "Unexplained", "No delay was measured.", "plain")
    state = "good" if unexplained <= thresholds.MOST_UNEXPLAINED_SHARE else "caution"
    return Tile(percent(unexplained), "Unexplained", "share of the delay without a cause", state)


def _state(share: float, good: float, caution: float) -> str:
    return "good" if share >= good else "caution" if share >= caution else "bad"


def _clock_blocks(context: Context) -> list[Block]:
    clocks = context.trust.clocks
    by_host: dict[str | None, list[Clock]] = {}
    for clock in clocks:
        by_host.setdefault(clock.host, []).append(clock)
    hosts = sorted(by_host.values(), key=lambda members: -_worst_ns(members))
    table = Table.of(hosts, _CLOCK_COLUMNS, _MOST_HOSTS)
    context.rows("clock_hosts")  # what the rows of hosts are printed beside
    blocks: list[Block] = [TableFigure("clocks", _clock_caption(context), table, ["clock_hosts", "clocks"])]
    if len(by_host) < len(clocks):
        singles, fold = [[clock] for clock in clocks], f"Clocks of the {plural(len(clocks), 'rank')}"
        blocks.append(Table.of(singles, _CLOCK_COLUMNS, context.limits.table_rows, fold, ["clocks"]))
    return blocks


def _worst_ns(clocks: Sequence[Clock]) -> float:
    """The largest residual, ns; a clock that could not be placed counts as worst of all."""
    return max(inf if clock.status == "unaligned" else clock.residual_ns or 0.0 for clock in clocks)


def _status(clock: Clock) -> str:
    return _STATUS_WORDS.get(clock.status, clock.status)


def _drift(clocks: Sequence[Clock]) -> str:
    drift = clocks[0].drift_ppb
    return "—" if len(clocks) > 1 or drift is None else f"{drift / 1000:.2f}".replace("-", "\N{MINUS SIGN}")


def _known(clocks: Sequence[Clock], name: str) -> list[int]:
    return [value for clock in clocks if (value := getattr(clock, name)) is not None]


def _clock_caption(context: Context) -> str:
    trust = context.trust
    if trust.unaligned:
        its = "its" if len(trust.unaligned) == 1 else "their"
        ranks = capital(named_ranks(trust.unaligned))
        return f"{ranks} could not be aligned to the common clock; {its} lateness is not counted."
    if trust.largest_residual_ns is None:
        return "No clock residual is known, so lateness has no error estimate."
    worst = max(trust.clocks, key=lambda clock: (clock.residual_ns or 0, -clock.rank))
    place = f"rank {worst.rank}" + (f" on {worst.host}" if worst.host else "")
    return f"The least certain clock is on {place}, known to within {duration(worst.residual_ns)}."


def _span(values_ns: Sequence[float | None]) -> str:
    known = [value for value in values_ns if value is not None]
    if not known or min(known) == max(known):
        return duration(known[0] if known else None)
    return duration_range(min(known), max(known)) or "—"


def _issue_figure(context: Context) -> TableFigure:
    issues = context.trust.issues
    lost = sum(issue.lost_events for issue in issues)
    kinds = listed([spaced(issue.code) for issue in issues], 2)
    stored = f"{plural(lost, 'event')} not stored" if lost else "every event is stored"
    if failed := _failed_files(context):
        stored += f", but {plural(failed, 'file')} could not be read"
    caption = f"Data issues: {count(len(issues))} ({kinds}); {stored}."
    return TableFigure("issues", caption, Table.of(issues, _ISSUE_COLUMNS, context.limits.table_rows), ["issues"])


def _summarise(context: Context) -> dict[str, object]:
    trust = context.trust
    return {
        "trust": {
            "clocks": dict(sorted(Counter(clock.status for clock in trust.clocks).items())),
            "largest_residual_ns": whole(trust.largest_residual_ns),
            "ranks": trust.coverage.ranks,
            "ranks_of_job": trust.coverage.job_ranks,
            "ranks_truncated": trust.coverage.truncated_ranks,
            "collectives": trust.collectives,
            "collectives_complete": trust.complete,
            "calls_matched": share(trust.matched_share),
            "waiting_measured": trust.coverage.is_split,
            "events": trust.events,
            "events_lost": trust.lost_events,
            "unexplained": share(trust.unexplained),
        },
        "issues": [
            {"code": issue.code, "severity": issue.severity, "count": issue.count, "lost_events": issue.lost_events}
            for issue in trust.issues[:MOST_ENTRIES]
        ],
    }


_CLOCK_COLUMNS = (
    TableColumn("host", lambda clocks: clocks[0].host or "unknown"),
    TableColumn("ranks", lambda clocks: rank_list([clock.rank for clock in clocks])),
    TableColumn("clock", lambda clocks: ", ".join(dict.fromkeys(_status(clock) for clock in clocks))),
    number("offset", lambda clocks: _span([clock.offset_ns for clock in clocks])),
    number("drift, ppm", _drift),
    number("residual", lambda clocks: duration(max(_known(clocks, "residual_ns"), default=None))),
    number("anchors", lambda clocks: count(min(anchors)) if (anchors := _known(clocks, "anchors")) else "—"),
)
_ISSUE_COLUMNS = (
    TableColumn("severity", lambda issue: issue.severity),
    TableColumn("code", lambda issue: issue.code, code=True),
    TableColumn("what", lambda issue: issue.detail, wide=True),
    number("count", lambda issue: count(issue.count)),
    number("events lost", lambda issue: count(issue.lost_events)),
    number("files", lambda issue: count(issue.files) if issue.files else "—"),
    TableColumn("first at", lambda issue: issue.first_at or "—", wide=True),
)

SECTION = Plugin(120, "How far to trust this", "Data quality", _build, _summarise)
