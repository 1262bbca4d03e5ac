"""What communication moves, of arguments that nobody would write: they cost their own row its size, and no other."""

import json

import pytest

from tests.given import Trace, built, rows_of, store_of

SIZES = "SELECT event_id, dtype, size_bytes FROM align.payload ORDER BY event_id"
# deeper than a decoder of JSON follows
NESTED = "[" * 100_000 + "]" * 100_000


def odd_then_plain(args: str) -> Trace:
    """Two calls of gloo, the first with other arguments than its own; the second moves 1,000 floats."""
    trace = Trace().gloo(0, 9).gloo(20, 29)
    trace.arguments[0]["args"] = args
    return trace


@pytest.mark.parametrize(
    ("args", "dtype", "size_bytes"),
    [
        (f'{{"Input Dims": {NESTED}, "Input type": ["float"]}}', None, None),
        (f'{{"a": {NESTED}}}', None, None),
        ('{"Input Dims": [[1000', None, None),
        ('{"Input Dims": "1000", "Input type": ["float"]}', None, None),
        ('{"Input Dims": [[[10, 100]]], "Input type": ["float"]}', "float", None),
        (json.dumps({"Input Dims": [[2**40, 2**40]], "Input type": ["Double"]}), "double", None),
        ('{"Input Dims": [[10, "x"], [6]], "Input type": ["float", "float"]}', "float", 24),
    ],
    ids=["nested", "nested elsewhere", "cut", "text", "lists of lists", "too large", "partly odd"],
)
def test_odd_shapes_leave_the_size_open_and_the_next_call_as_it_is(
    args: str, dtype: str | None, size_bytes: int | None
) -> None:
    trace = odd_then_plain(args)
    first, second = (argument["event_id"] for argument in trace.arguments)

    store = built(store_of(trace), "align.payload")

    assert rows_of(store, SIZES) == [(first, dtype, size_bytes), (second, "float", 4_000)]


def test_nested_arguments_of_a_message_leave_its_peer_open() -> None:
    # given two sends of one record each, the first with arguments that no decoder follows
    trace = Trace().collective(0, 9, op="send", group_rank=1).collective(20, 29, op="send", group_rank=1)
    first, second = (collective["event_id"] for collective in trace.collectives)
    trace.arguments += [
        {"event_id": first, "args": f'{{"Dst Rank": 5, "a": {NESTED}}}'},
        {"event_id": second, "args": '{"Dst Rank": 5}'},
    ]

    store = built(store_of(trace), "align.payload")

    peers = rows_of(store, "SELECT event_id, peer FROM align.payload ORDER BY event_id")
    assert peers == [(first, None), (second, 5)]
