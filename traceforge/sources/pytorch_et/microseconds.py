"""Times as written, exactly. In: JSON tokens in us. Out: nanoseconds as integers, no float on the way.

Idea: the digits of a decimal number are its nanoseconds once three of them stand behind the point; further digits round
half away from zero. Seen: integers, and floats as Python writes them. Not handled: times beyond about 146 years.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from msgspec import Raw

from traceforge.reading.issue_log import IssueLog

_LIMIT_NS = 2**62
_ABSENT = (b"", b"null")
_LONGEST_WHOLE = 15
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_UP)


def to_nanoseconds(tokens: Sequence[Raw], issues: IssueLog) -> list[int | None]:
    """Times in ns; None where a token is absent or no time.

    Args:
        tokens: JSON values in us; empty where absent.
        issues: counts tokens that are no times.
    """
    return [_nanoseconds(bytes(token), issues) for token in tokens]


def _nanoseconds(token: bytes, issues: IssueLog) -> int | None:
    if len(token) <= _LONGEST_WHOLE and token.isdigit():
        return int(token) * 1000
    if token in _ABSENT:
        return None
    try:
        exact = _CONTEXT.multiply(_CONTEXT.create_decimal(token.strip(b'"').decode()), Decimal(1000))
    except (ArithmeticError, ValueError):
        issues.add("wrong_type")
        return None
    if not abs(exact) <= _LIMIT_NS:
        issues.add("out_of_range")
        return None
    return int(exact.to_integral_value(ROUND_HALF_UP))
