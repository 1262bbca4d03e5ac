"""Texts into exact quantities. In: what a pattern captured. Out: integers in the unit of their column.

Idea: decimals are shifted as text, so nothing is rounded through a float; what is no number becomes None.
Not handled: exponents.
"""

from collections.abc import Callable

Read = Callable[[str], object]

_DATATYPES = (
    ("int8", 1), ("uint8", 1), ("int32", 4), ("uint32", 4), ("int64", 8), ("uint64", 8), ("float16", 2), ("float32", 4),
    ("float64", 8), ("bfloat16", 2), ("float8_e4m3", 1), ("float8_e5m2", 1),
)  # fmt: skip
"""Name and bytes of the datatype with each number: bfloat16 since 2.10, float8 since 2.24; the others always."""

_REDUCTIONS = ("sum", "prod", "max", "min", "avg")
_LARGEST = 2**63 - 1


def shifted(text: str, digits: int) -> int | None:
    """A decimal number times a power of ten, cut behind the unit; None for what is no number of reasonable size.

    Args:
        text: such as `0.46` or `-12`.
        digits: power of ten, such as 9 for seconds to ns.
    """
    whole, _, fraction = text.strip().partition(".")
    negative = whole.startswith("-")
    number = whole.removeprefix("-") + fraction[:digits].ljust(digits, "0")
    if not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    return -int(number) if negative else int(number)


def integer(text: str) -> int | None:
    """A decimal integer; None where it is none, or too large for a column."""
    return shifted(text, 0) if "." not in text else None


def seconds(text: str) -> int | None:
    """Seconds to ns."""
    return shifted(text, 9)


def milliseconds(text: str) -> int | None:
    """Milliseconds to ns."""
    return shifted(text, 6)


def microseconds(text: str) -> int | None:
    """Microseconds to ns."""
    return shifted(text, 3)


def gigabytes(text: str) -> int | None:
    """GB/s to bytes a second."""
    return shifted(text, 9)


def megabits(text: str) -> int | None:
    """Mbit/s to bytes a second."""
    number = integer(text)
    return None if number is None else number * 125_000


def address(text: str) -> int | None:
    """A pointer as printf's %p writes it; `(nil)` is 0."""
    if text == "(nil)":
        return 0
    digits = text.removeprefix("0x")
    if not 0 < len(digits) <= 16 or not digits.isalnum():
        return None
    try:
        return int(digits, 16)
    except ValueError:
        return None


def hexadecimal(text: str) -> int | None:
    """A hexadecimal integer of at most 63 bits, with or without 0x."""
    number = address(text)
    return None if number is None or number > _LARGEST else number


def comm_hash(text: str) -> str | None:
    """A commId, without leading zeros."""
    number = address(text)
    return None if number is None else hex(number)


def pci_address(text: str) -> str | None:
    """A busId (hex digits without punctuation) as PCI address: b9000 is 0000:b9:00.0."""
    number = address(text)
    if number is None:
        return None
    return f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}"


def datatype(text: str) -> str:
    """Name of a datatype number; the text itself where unknown."""
    number = integer(text)
    return text if number is None or not 0 <= number < len(_DATATYPES) else _DATATYPES[number][0]


def datatype_bytes(text: str) -> int | None:
    """Bytes of an element of a datatype number; None where unknown."""
    number = integer(text)
    return None if number is None or not 0 <= number < len(_DATATYPES) else _DATATYPES[number][1]


def reduction(text: str) -> str:
    """Name of a reduction number; numbers from 5 on are made by the user."""
    number = integer(text)
    return "user" if number is None or not 0 <= number < len(_REDUCTIONS) else _REDUCTIONS[number]


def value_of_setting(text: str) -> str:
    """Value of an environment variable, without the full stop that NCCL puts behind integers."""
    bare = text.removesuffix(".")
    return bare if bare.lstrip("-").isdigit() else text


def peer_address(text: str) -> str:
    """Address of a peer without its port: 10.0.0.1<51161> is 10.0.0.1."""
    return text.partition("<")[0]
