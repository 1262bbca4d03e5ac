"""Numbers and names as a reader meets them. In: ns, shares, names from traces. Out: short, harmless text.

Rounding of quantities is `traceforge.units`; here are ranges, signs, lists and the cleaning of names. Names come from
files that anybody may have written: control, invisible and direction-changing characters become U+FFFD, and long
names lose their middle. HTML escaping is the template's work, not this module's. Quantities remember the number they
were rounded from, which the page carries beside them, so that anybody can compare it with what the SQL gives.
"""

import re
import unicodedata
from collections.abc import Sequence

from traceforge.thresholds.attribute import LEAST_SHOWN_P_VALUE
from traceforge.units import format_bytes, format_ns, format_share

_MINUS = "\N{MINUS SIGN}"
_JOINED = "\N{NO-BREAK SPACE}"
_HARMFUL_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))

MODE_NAMES = {
    "synchronization_amplification": "Synchronisation amplification",
    "fabric_contention": "Fabric contention",
    "gpu_locality": "GPU locality",
    "runtime_control_plane": "Runtime and control plane",
    "unexplained": "Unexplained",
}


class ShownNumber(str):
    """A number as it is read, with the number it was rounded from.

    Attributes:
        value: the number, in the unit of the tables: ns, bytes, bytes/s, a share 0..1, a ratio, or a count.
        unit: `ns`, `bytes`, `bytes_per_s`, `share`, `ratio`, `count`, `gpu_hours` or `money`.
    """

    __slots__ = ("unit", "value")

    value: float
    unit: str

    def __new__(cls, text: str, value: float, unit: str) -> "ShownNumber":
        """The text of a value in a unit."""
        made = super().__new__(cls, text)
        made.value = value
        made.unit = unit
        return made

    def __getnewargs__(self) -> tuple[str, float, str]:  # type: ignore[override]  # so that copies are quantities too
        """What a copy is made of."""
        return str(self), self.value, self.unit


class LinkedText(str):
    """A text of a table that leads somewhere on the page.

    Attributes:
        href: the address.
    """

    __slots__ = ("href",)

    href: str

    def __new__(cls, text: str, href: str) -> "LinkedText":
        """The text with its address."""
        made = super().__new__(cls, text)
        made.href = href
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # so that copies lead there too
        """What a copy is made of."""
        return str(self), self.href


def clean(text: object, limit: int = 160) -> str:
    """A text from a trace as one line without control characters, its middle cut beyond `limit` characters."""
    raw = str(text)
    ends = raw if len(raw) <= 8 * limit else raw[: 4 * limit] + raw[-4 * limit :]
    line = " ".join(ends.split())
    # What is printable throughout holds nothing of the harmful categories, and nearly every name is.
    safe = line if line.isprintable() else "".join(map(_harmless, line))
    if len(safe) <= limit:
        return safe
    half = (limit - 1) // 2
    return f"{safe[:half]}…{safe[-half:]}"


def _harmless(sign: str) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) in _HARMFUL_CATEGORIES else sign


def mode_name(mode: str) -> str:
    """The name of a failure mode; an unknown one reads as it is written."""
    return MODE_NAMES.get(mode) or spaced(mode)


def spaced(identifier: object) -> str:
    """An identifier such as `slow_compute` as words."""
    return clean(identifier).replace("_", " ")


def capital(text: str) -> str:
    """The text with its first letter raised and the others left alone."""
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """The text as it stands inside a sentence: `Slow compute` begins small, `GPU clock` does not."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def duration(duration_ns: float | None) -> str:
    """A duration in ns with its unit, `—` where there is none."""
    if duration_ns is None:
        return "—"
    text = _joined(format_ns(abs(duration_ns)).replace(",", "\N{NARROW NO-BREAK SPACE}"))
    return ShownNumber(_MINUS + text if duration_ns < 0 else text, duration_ns, "ns")


def size(size_bytes: float | None) -> str:
    """A size in bytes with its unit, `—` where there is none."""
    return "—" if size_bytes is None else ShownNumber(_joined(format_bytes(size_bytes)), size_bytes, "bytes")


def rate(bytes_per_s: float | None) -> str:
    """A bandwidth in bytes/s with its unit, `—` where there is none."""
    return (
        "—"
        if bytes_per_s is None
        else ShownNumber(f"{_joined(format_bytes(bytes_per_s))}/s", bytes_per_s, "bytes_per_s")
    )


def signed(duration_ns: float) -> str:
    """A difference of durations in ns with its sign, such as `+8.25 ms`."""
    return f"+{duration(duration_ns)}" if duration_ns > 0 else duration(duration_ns)


def duration_range(low_ns: float | None, high_ns: float | None) -> str | None:
    """Two durations in the unit of the larger one, such as `35.0 to 45.2 ms`; None where one is missing."""
    if low_ns is None or high_ns is None:
        return None
    largest = max(abs(low_ns), abs(high_ns))
    factor, unit = next(((f, u) for f, u in _TIME_STEPS if largest >= f), (1, "ns"))
    return f"{_plain(low_ns / factor)} to {_plain(high_ns / factor)}{_JOINED}{unit}"


def gpu_hours(hours: float) -> str:
    """GPU-hours to three significant digits, without the unit."""
    return ShownNumber(significant(hours), hours, "gpu_hours")


def tflops(flops_per_s: float | None) -> str:
    """Achieved arithmetic in TFLOP/s without its unit; a dash where it is not known."""
    if flops_per_s is None:
        return "—"
    tera = flops_per_s / 1e12
    return f"{tera:#.2g}" if tera < 1 else significant(tera)


def money(amount: float, currency: str) -> str:
    """An amount of money to three significant digits; whole above a hundred."""
    return ShownNumber(f"{significant(amount)}{_JOINED}{currency}".rstrip(_JOINED), amount, "money")


def significant(value: float) -> str:
    """A number to three significant digits; its thousands are set apart."""
    rounded = float(f"{value:.3g}")
    is_tiny = 0 < abs(rounded) < 0.1  # two decimals would leave one digit of it, or none
    shown = value if abs(rounded) < 1 else rounded  # two decimals of three would be rounded twice
    text = f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}" if is_tiny else _plain(shown)
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", _MINUS)


def percent(share: float | None) -> str:
    """A share 0..1 as per cent, `—` where there is none."""
    if share is None:
        return "—"
    text = _joined(format_share(abs(share)))
    return ShownNumber(_MINUS + text if share < 0 and float(text[:-2]) else text, share, "share")


def cautious_percent(share: float) -> str:
    """Per cent that reads 100 only when nothing at all is missing."""
    return percent(share) if share in (0.0, 1.0) else _joined(f"{min(99.9, 100 * share):.1f} %")


def probability(p_value: float) -> str:
    """A probability as it stands in a sentence, such as `p = 0.03`; tiny ones only as an upper end."""
    least = LEAST_SHOWN_P_VALUE
    return f"p < {least:.4f}" if p_value < least else f"p = {p_value:.2g}"


def change(ratio: float | None) -> str:
    """A ratio as the change it means: 1.031 is `+3.1 %`, 1.187 is `+19 %`; as many digits as a share has."""
    if ratio is None:
        return "—"
    percentage = 100 * (ratio - 1)
    size = f"{abs(percentage):,.0f}" if abs(percentage) >= 10 else f"{abs(percentage):.1f}"
    text = size.replace(",", "\N{NARROW NO-BREAK SPACE}") + f"{_JOINED}%"
    sign = "±" if text.startswith("0.0") else "+" if percentage > 0 else _MINUS
    return ShownNumber(sign + text, ratio, "ratio")


def count(number: int) -> str:
    """A whole number with its thousands set apart by a narrow space."""
    return ShownNumber(f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"), number, "count")


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def listed(words: Sequence[str], limit: int = 5) -> str:
    """`a, b and c`; beyond `limit` entries the rest is counted."""
    shown = list(words[:limit])
    if len(words) > limit:
        return f"{', '.join(shown)} and {count(len(words) - limit)} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def span(first: int, last: int) -> str:
    """A run of whole numbers, such as ranks 4 to 7, as short as can be."""
    return str(first) if first == last else f"{first}\N{EN DASH}{last}"


def rank_list(ranks: Sequence[int]) -> str:
    """Ranks as runs, such as 0 to 7, 12, 14 to 15; cut after 12 runs."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    texts = [span(first, last) for first, last in runs]
    return ", ".join(texts[:12]) + (", …" if len(texts) > 12 else "")


def named_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 3, 5–7`."""
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {rank_list(ranks)}"


def _joined(text: str) -> str:
    """Number and unit on one line, wherever the line is broken."""
    return text.replace(" ", _JOINED)


def _plain(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{abs(value):.{digits}f}"
    return _MINUS + text if value < 0 and float(text) != 0 else text


def minus_signs(text: str) -> str:
    """A text of the database with a true minus before its negative numbers."""
    return re.sub(r"(?<![\w.-])-(?=\d)", _MINUS, text)


def crossed(layout: str) -> str:
    """A parallel layout such as `pp 4 x dp 2` with a true multiplication sign."""
    return layout.replace(" x ", " \N{MULTIPLICATION SIGN} ")


def plain(lines: Sequence[str]) -> list[str]:
    """Lines for a terminal: without the special spaces of the page, which terminals draw in their own ways."""
    return [" ".join(re.split("[\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]", line)) for line in lines]
