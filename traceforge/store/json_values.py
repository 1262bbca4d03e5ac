"""Values of an answer as JSON has them. In: what DuckDB gives. Out: numbers, texts, lists and objects."""

import math


def json_value(value: object) -> object:
    """A value as JSON has it; what JSON lacks (infinity, NaN, dates) as DuckDB writes it, a text."""
    from decimal import Decimal

    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
