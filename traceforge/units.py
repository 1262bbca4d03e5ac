"""Quantities as people read them. In: integers in base units (ns, bytes) and shares 0..1. Out: short text.

Rounding happens here and nowhere else: tables keep exact integers. Not handled: locales.
"""

from collections.abc import Sequence

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZE_STEPS = ((1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def format_ns(duration_ns: float) -> str:
    """A duration in ns as text with three significant digits, such as `1.25 ms`."""
    return _scaled(duration_ns, _TIME_STEPS, "ns")


def format_bytes(size_bytes: float) -> str:
    """A size in bytes as text with decimal prefixes (1 MB = 1e6 bytes)."""
    return _scaled(size_bytes, _SIZE_STEPS, "B")


def format_share(share: float) -> str:
    """A share 0..1 as per cent; small shares keep one decimal."""
    percent = 100 * share
    return f"{percent:.0f} %" if abs(percent) >= 10 else f"{percent:.1f} %"


def plural(number: int, noun: str) -> str:
    """`1 rank`, `2 ranks`, `1,024 ranks`."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def times(calls: float) -> str:
    """How often, on average: `never`, `less than once`, `once`, `2 times`."""
    rounded = f"{calls:,.0f}"
    return {"0": "less than once" if calls > 0 else "never", "1": "once"}.get(rounded, f"{rounded} times")


def _scaled(value: float, steps: tuple[tuple[int, str], ...], base_unit: str) -> str:
    for factor, unit in steps:
        # The unit is that of the rounded number: 999,999 ns are 1.00 ms, not 1000 µs.
        if abs(float(f"{value:.3g}")) >= factor:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{value:.0f} {base_unit}"


def _three_digits(value: float) -> str:
    rounded = abs(float(f"{value:.3g}"))
    if rounded >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if rounded >= 10 else f"{value:.2f}"
