"""PyTorch's record of a call as columns. In: attributes and input values of a node. Out: columns of its row.

Idea: attributes (since 1.1.0) count; what they leave out is read from the places of the inputs. A wait states a group
of size one, which is not its call's: it keeps only its sequence number.
Not handled: lists of splits that PyTorch shortened (NULL).
"""

from collections.abc import Mapping

from traceforge.reading.numbers import integer_of, text_of
from traceforge.sources.pytorch_et.decode import value_of
from traceforge.sources.pytorch_et.positional import Call, call_of, integers_in

_WAIT = "wait"
_LIMIT = 2**63
_NO_CALL = Call(None, None, None, None, None, "", None, None, None, None, None, None)


def record_columns(attributes: Mapping[str, object], values: object) -> dict[str, object]:
    """Columns of raw.chakra_communication.

    Args:
        attributes: of the node, by name.
        values: its inputs.
    """
    call = call_of(values) or _NO_CALL
    name = text_of(attributes.get("collective_name")) or call.name or None
    if name == _WAIT:
        return {
            "collective_name": name,
            "is_wait": True,
            "sequence": call.sequence,
            "group_rank": None,
            "process_group_description": None,
        }
    return {
        "collective_name": name,
        "is_wait": False,
        "sequence": call.sequence,
        "process_group_name": text_of(attributes.get("pg_name")) or call.group_name,
        "process_group_description": text_of(attributes.get("pg_desc")) or call.group_description,
        "process_group_handle": call.group_handle,
        "group_rank": call.group_rank,
        "group_size": _integer(attributes, "pg_size", call.group_size),
        "global_rank_start": _integer(attributes, "global_rank_start", call.global_rank_start),
        "global_rank_stride": _integer(attributes, "global_rank_stride", call.global_rank_stride),
        "in_elements": _integer(attributes, "in_msg_nelems", None),
        "out_elements": _integer(attributes, "out_msg_nelems", None),
        "dtype": text_of(attributes.get("dtype")),
        "in_split_sizes": _splits(attributes.get("in_split_size"), call.in_splits),
        "out_split_sizes": _splits(attributes.get("out_split_size"), call.out_splits),
        "is_asynchronous": _truth(attributes.get("is_asynchronized_op"), call.is_asynchronous),
    }


def _integer(attributes: Mapping[str, object], name: str, otherwise: int | None) -> int | None:
    number = integer_of(attributes.get(name))
    return number if number is not None and -_LIMIT <= number < _LIMIT else otherwise


def _splits(value: object, otherwise: list[int] | None) -> list[int] | None:
    """A list of splits, which the attribute holds as text."""
    listed = value_of(value.encode()) if isinstance(value, str) else value
    stated = integers_in(listed)
    return otherwise if stated is None else stated


def _truth(value: object, otherwise: bool | None) -> bool | None:
    number = integer_of(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return otherwise if number is None else number != 0
