"""Time stamps in front of records. In: the text before host:pid:tid. Out: ns, and where the stamp begins.

Idea: NCCL_DEBUG_TIMESTAMP_FORMAT may be anything strftime knows, so the forms of dates, times, fractions and zones are
tables that combine freely; no digit passes through a float. Stamps of launchers (kubectl, ts) look the same; those of
Kubernetes' own files have the stream and whether the line is whole behind them ("stdout F").
Not handled: a date behind its time, week numbers, names of months in other languages, rolling over midnight where there
is no date. Slashed dates are month first (%D) unless that cannot be. Seen: NCCL 2.26 to 2.30.
"""

import re
from calendar import timegm
from dataclasses import dataclass

_SECOND_NS = 1_000_000_000
_FITTING = range(-(2**63), 2**63)
_LONGEST = 64
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "|".join(_MONTHS)

# strftime form: pattern. Later ones are tried where earlier ones do not match.
_DATES = {
    "%Y-%m-%d": r"(?P<Y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)",
    "%Y/%m/%d": r"(?P<Y2>\d{4})/(?P<m2>\d\d)/(?P<d2>\d\d)",
    "%Y.%m.%d": r"(?P<Y3>\d{4})\.(?P<m3>\d\d)\.(?P<d3>\d\d)",
    "%Y%m%d": r"(?P<Y4>\d{4})(?P<m4>\d\d)(?P<d4>\d\d)",
    "%m/%d/%Y": r"(?P<m5>\d\d)/(?P<d5>\d\d)/(?P<Y5>\d{4})",
    "%m/%d/%y": r"(?P<m6>\d\d)/(?P<d6>\d\d)/(?P<y6>\d\d)",
    "%b %e": rf"(?:[A-Z][a-z]{{2}},? )?(?P<b7>{_MONTH}) +(?P<d7>\d\d?)",
    "%d %b %Y": rf"(?:[A-Z][a-z]{{2}},? )?(?P<d8>\d\d?)[ -](?P<b8>{_MONTH})[a-z]*[ -](?P<Y8>\d{{4}})",
}
_TIME = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,:](?P<f>\d{1,9}))?(?: ?(?P<p>[AP]M))?"
_ZONE = r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d))?(?: (?P<Ylast>\d{4}))?"
_EPOCH = r"(?P<s>\d{10})(?:[.,](?P<sf>\d{1,9}))?|(?P<ms>\d{13})|(?P<us>\d{16})|(?P<ns>\d{19})"
_STAMP = re.compile(
    r"(?P<open>[\[(<{]?)(?:(?:(?P<date>" + "|".join(_DATES.values()) + r")[ T_:-]+)?"
    rf"(?P<time>{_TIME}){_ZONE}|(?<![\d.])(?:{_EPOCH}))(?P<tail>(?: std(?:out|err) [FP])?[^\w.]{{0,6}})$"
)
_UNITS_NS = {"s": _SECOND_NS, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time stamp.

    Attributes:
        time_ns: ns since 1970, or since what the form leaves out (midnight, or the start of 1970).
        start: where it begins in the text.
        form: its form in strftime letters, such as `%Y-%m-%d %H:%M:%S.%6f`.
        resolution_ns: smallest step the form can show.
        fraction: where the digits of the fraction begin and end in the text; None where there are none.
    """

    time_ns: int
    start: int
    form: str
    resolution_ns: int
    fraction: tuple[int, int] | None


def read_stamp(text: str) -> Stamp | None:
    """The time stamp at the end of a text, or None."""
    match = _STAMP.search(text, max(0, len(text) - _LONGEST))
    if match is None:
        return None
    stamp = _stamp(match)
    return stamp if stamp is not None and stamp.time_ns in _FITTING else None


def _stamp(match: re.Match[str]) -> Stamp | None:
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    if "time" not in found:
        return _epoch_stamp(match, found)
    day_ns, clock_ns = _day_ns(found), _clock_ns(found)
    if day_ns is None or clock_ns is None:
        return None
    digits = found.get("f", "")
    return Stamp(
        time_ns=day_ns + clock_ns + int(digits.ljust(9, "0")) - _zone_ns(found.get("z")),
        start=match.start(),
        form=_form(match, found),
        resolution_ns=10 ** (9 - len(digits)),
        fraction=match.span("f") if digits else None,
    )


def _day_ns(found: dict[str, str]) -> int | None:
    date = {name[0]: value for name, value in found.items() if name[0] in "Yymdb" and name[1:].isdigit()}
    if not date:
        return 0
    month = _MONTHS.index(date["b"]) + 1 if "b" in date else int(date["m"])
    day = int(date["d"])
    if month > 12 and "/" in found["date"]:
        month, day = day, month
    year = int(date.get("Y") or found.get("Ylast") or (f"20{date['y']}" if "y" in date else 1970))
    if not (1 <= month <= 12 and 1 <= day <= 31 and 1970 <= year <= 2200):
        return None
    return timegm((year, month, day, 0, 0, 0)) * _SECOND_NS


def _clock_ns(found: dict[str, str]) -> int | None:
    hour, minute, second = int(found["H"]), int(found["M"]), int(found["S"])
    if hour > 23 or minute > 59 or second > 60:
        return None
    if "p" in found:
        hour = hour % 12 + (12 if found["p"] == "PM" else 0)
    return ((hour * 60 + minute) * 60 + second) * _SECOND_NS


def _zone_ns(zone: str | None) -> int:
    if zone is None or not zone[-1].isdigit():
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (minutes if zone[0] == "+" else -minutes) * 60 * _SECOND_NS


def _epoch_stamp(match: re.Match[str], found: dict[str, str]) -> Stamp:
    unit = next(name for name in ("s", "ms", "us", "ns") if name in found)
    digits = found.get("sf", "")
    unit_ns = 10 ** (9 - len(digits)) if digits else _UNITS_NS[unit]
    form = {"s": "%s", "ms": "%s%3f", "us": "%s%6f", "ns": "%s%9f"}[unit] + (f".%{len(digits)}f" if digits else "")
    return Stamp(
        time_ns=int(found[unit]) * _UNITS_NS[unit] + int(digits.ljust(9, "0") if digits else 0),
        start=match.start(),
        form=found["open"] + form + found["tail"].rstrip(),
        resolution_ns=unit_ns,
        fraction=match.span("sf") if digits else None,
    )


def _form(match: re.Match[str], found: dict[str, str]) -> str:
    form = found["open"]
    if "date" in found:
        date_end, time_start = match.end("date"), match.start("time")
        form += next(name for name, pattern in _DATES.items() if re.fullmatch(pattern, found["date"]))
        form += match.string[date_end:time_start]
    form += "%I:%M:%S" if "p" in found else "%H:%M:%S"
    if "f" in found:
        form += match.string[match.start("f") - 1] + f"%{len(found['f'])}f"
    form += " %p" if "p" in found else ""
    form += "%z" if "z" in found else ""
    form += " %Y" if "Ylast" in found else ""
    return form + found["tail"].rstrip()
