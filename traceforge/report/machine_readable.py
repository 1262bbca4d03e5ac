"""Values of the summary and of JSON documents. In: numbers of any precision. Out: numbers that compare between runs."""

MOST_ENTRIES = 20
"""Entries of a list."""

_DECIMALS = 4


def whole(value: float | None) -> int | None:
    """A duration as whole ns."""
    return None if value is None else round(value)


def share(value: float | None) -> float | None:
    """A share or a ratio with four decimals."""
    return None if value is None else round(float(value), _DECIMALS)
