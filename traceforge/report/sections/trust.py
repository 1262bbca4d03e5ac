"""How far the data can be trusted: clocks, matched collectives, kept events, what stays unexplained, issues.

Reads align.clock, timeline.collective, attribute.delay and meta.issue. States are said in words beside their colour.
"""

from collections.abc import Sequence
from math import inf

from traceforge.report.blocks import Block, Column, Missing, Note, Plugin, Section, Table, TableFigure, Tile, Tiles
from traceforge.report.context import Context
from traceforge.report.trust import Clock, Issue
from traceforge.report.words import count, duration, duration_range, percent, plural, rank_list

_STATUS_WORDS = {
    "reference": "reference",
    "fitted": "fitted on collectives",
    "shared_clock": "shares its host's clock",
    "bounded": "bounded only",
    "unaligned": "not aligned",
}
_MOST_UNEXPLAINED = 0.25
_MOST_HOSTS = 8


def _build(context: Context) -> Section | Missing:
    tiles = [_clock_tile(context), _matching_tile(context), _events_tile(context), _unexplained_tile(context)]
    blocks: list[Block] = [Tiles(tiles, ["clocks", "matching", "events", "unexplained"])]
    if context.trust.clocks:
        blocks += _clock_blocks(context)
    blocks.append(_issue_figure(context) if context.trust.issues else Note("No row was skipped, repaired or guessed."))
    return Section(blocks)


def _clock_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.clocks:
        return Tile("—", "Clocks", "No clock was compared.", "plain")
    if trust.unaligned:
        text = f"{plural(len(trust.unaligned), 'rank')} of {len(trust.clocks)} could not be placed on the common clock."
        return Tile("not aligned", "Clocks", text, "bad")
    if trust.largest_residual_ns is None:
        return Tile("—", "Clocks", "One rank needs no alignment.", "plain")
    is_bounded = any(clock.status == "bounded" for clock in trust.clocks)
    kind = "known within bounds only" if is_bounded else "largest residual"
    text = f"{kind}; waits under {duration(trust.resolution_ns)} support no finding"
    return Tile(f"±{duration(trust.largest_residual_ns)}", "Clocks", text, "caution" if is_bounded else "good")


def _matching_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.collectives:
        return Tile("—", "Collectives matched", "No collective was matched across ranks.", "caution")
    text = f"of the calls; {count(trust.complete)} of {count(trust.collectives)} collectives have every member's part"
    return Tile(_cautious_percent(trust.matched), "Collectives matched", text, _state(trust.matched, 0.99, 0.8))


def _events_tile(context: Context) -> Tile:
    trust = context.trust
    if not trust.events:
        return Tile("—", "Events kept", "No event was read.", "caution")
    share = 1 - trust.lost_events / trust.events
    text = f"of {count(trust.events)} events; {count(trust.lost_events)} not stored"
    return Tile(_cautious_percent(share), "Events kept", text, _state(share, 0.999, 0.9))


def _unexplained_tile(context: Context) -> Tile:
    share = context.trust.unexplained
    if share is None:
        return Tile("—", "Unexplained", "There is no delay to explain.", "plain")
    state = "good" if share <= _MOST_UNEXPLAINED else "caution"
    return Tile(percent(share), "Unexplained", "part of the delay that no cause owns", state)


def _cautious_percent(share: float) -> str:
    """Per cent that reads 100 only when nothing at all is missing."""
    return "100 %" if share == 1 else f"{min(99.9, 100 * share):.1f} %"


def _state(share: float, good: float, caution: float) -> str:
    return "good" if share >= good else "caution" if share >= caution else "bad"


def _clock_blocks(context: Context) -> list[Block]:
    clocks = context.trust.clocks
    by_host: dict[str | None, list[Clock]] = {}
    for clock in clocks:
        by_host.setdefault(clock.host, []).append(clock)
    hosts = sorted(by_host.items(), key=lambda item: -_worst_ns(item[1]))
    rows = [_clock_row(host, members) for host, members in hosts[:_MOST_HOSTS]]
    table = Table(_CLOCK_COLUMNS, rows, max(0, len(hosts) - _MOST_HOSTS))
    context.rows("clock_hosts")  # what the rows of hosts are printed beside
    blocks: list[Block] = [TableFigure("clocks", _clock_caption(context), table, ["clock_hosts", "clocks"])]
    if len(by_host) < len(clocks):
        limit = context.limits.table_rows
        singles = [_clock_row(clock.host, [clock]) for clock in clocks[:limit]]
        fold = f"Clocks of all {len(clocks)} ranks"
        blocks.append(Table(_CLOCK_COLUMNS, singles, max(0, len(clocks) - limit), fold, ["clocks"]))
    return blocks


def _worst_ns(clocks: Sequence[Clock]) -> float:
    """The largest residual, ns; a clock that could not be placed counts as worst of all."""
    return max(inf if clock.status == "unaligned" else clock.residual_ns or 0.0 for clock in clocks)


_CLOCK_COLUMNS = [
    Column("host"),
    Column("ranks"),
    Column("clock"),
    Column("offset", numeric=True),
    Column("drift, ppm", numeric=True),
    Column("residual", numeric=True),
    Column("anchors", numeric=True),
]


def _clock_caption(context: Context) -> str:
    trust = context.trust
    if trust.unaligned:
        ranks = rank_list(trust.unaligned)
        return f"Ranks {ranks} stand on no common clock; their lateness is left out everywhere below."
    if trust.largest_residual_ns is None:
        return "No residual is known, so lateness between ranks carries no error."
    worst = max(trust.clocks, key=lambda clock: (clock.residual_ns or 0, -clock.rank))
    place = f"rank {worst.rank}" + (f" on {worst.host}" if worst.host else "")
    return f"The least certain clock is that of {place}, known to within {duration(worst.residual_ns)}."


def _clock_row(host: str | None, clocks: Sequence[Clock]) -> list[str]:
    first = clocks[0]
    statuses = list(dict.fromkeys(_STATUS_WORDS.get(clock.status, clock.status) for clock in clocks))
    residuals = [clock.residual_ns for clock in clocks if clock.residual_ns is not None]
    anchors = [clock.anchors for clock in clocks if clock.anchors is not None]
    several = len(clocks) > 1
    return [
        host or "unknown",
        rank_list([clock.rank for clock in clocks]),
        ", ".join(statuses),
        _span([clock.offset_ns for clock in clocks]),
        "—" if several or first.drift_ppb is None else f"{first.drift_ppb / 1000:.2f}",
        duration(max(residuals)) if residuals else "—",
        count(min(anchors)) if anchors else "—",
    ]


def _span(values_ns: Sequence[float | None]) -> str:
    known = [value for value in values_ns if value is not None]
    if not known or min(known) == max(known):
        return duration(known[0] if known else None)
    return duration_range(min(known), max(known)) or "—"


def _issue_figure(context: Context) -> TableFigure:
    issues = context.trust.issues
    lost = sum(issue.lost_events for issue in issues)
    noted = plural(len(issues), "kind")
    caption = f"{noted} of row skipped, repaired or guessed on the way; {plural(lost, 'event')} not stored."
    columns = [
        Column("severity"),
        Column("code", code=True),
        Column("what", wide=True),
        Column("count", numeric=True),
        Column("events lost", numeric=True),
        Column("files", numeric=True),
        Column("first at", wide=True),
    ]
    limit = context.limits.table_rows
    table = Table(columns, [_issue_row(issue) for issue in issues[:limit]], max(0, len(issues) - limit))
    return TableFigure("issues", caption, table, ["issues"])


def _issue_row(issue: Issue) -> list[str]:
    numbers = [count(issue.count), count(issue.lost_events), count(issue.files)]
    return [issue.severity, issue.code, issue.detail, *numbers, issue.first_at or "—"]


SECTION = Plugin("How far to trust this", "Trust", _build)
