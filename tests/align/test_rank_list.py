"""Lists of ranks as traces write them: read once each, and only believed where they tell all members."""

import pytest

from tests.given import Trace, built, rows_of, store_of
from traceforge.align.rank_list import ranks_of

FIRST_OF_64 = ", ".join(map(str, range(29)))  # as many as PyTorch writes before the dots
EVENS = ", ".join(str(2 * place) for place in range(29))

# Text, size, first rank and stride as stated -> members.
LISTS = [
    ("[0, 1]", 2, 0, 1, [0, 1]),
    ("[3, 1]", None, None, None, [3, 1]),
    (f"[{FIRST_OF_64}, ..., 63]", 64, 0, 1, list(range(64))),
    # Start and stride are not always there, but 34 ranks have only the room between 28 and 63.
    (f"[{FIRST_OF_64}, ..., 63]", 64, None, None, list(range(64))),
    (f"[{EVENS}, ..., 126]", 64, 0, 2, list(range(0, 128, 2))),
    # PyTorch 2.3 and earlier.
    (f"[{FIRST_OF_64}, 29, ...]", 64, 0, 1, list(range(64))),
]

UNKNOWN = [
    ("", None, None, None),
    ("[]", 2, 0, 1),
    ("[0, 1]", 64, 0, 1),
    (f"[{FIRST_OF_64}, ..., 63]", None, 0, 1),
    # The even ranks may be followed by others.
    (f"[{EVENS}, ..., 126]", 64, None, None),
    (f"[{EVENS}, ..., 126]", 64, 0, -1),
    (f"[{EVENS}, ..., 127]", 64, 0, 2),
    (f"[{EVENS}, ..., 126]", 64, 1, 2),
    (f"[{FIRST_OF_64}, 29, ...]", 64, None, None),
    (f"[{FIRST_OF_64}, ..., 999999998]", 999_999_999, 0, 1),
    (f"[{FIRST_OF_64}, 29, ...]", 1_000_000, 0, 2**31 - 1),
]


@pytest.mark.parametrize(("written", "size", "first", "stride", "ranks"), LISTS)
def test_a_list_tells_its_members(
    written: str, size: int | None, first: int | None, stride: int | None, ranks: list[int]
) -> None:
    assert ranks_of(written, size, first, stride) == ranks


@pytest.mark.parametrize(("written", "size", "first", "stride"), UNKNOWN)
def test_a_list_that_does_not_tell_all_members_tells_none(
    written: str, size: int | None, first: int | None, stride: int | None
) -> None:
    assert ranks_of(written, size, first, stride) is None


def _calls(rank: int, written: str, size: int, **stated: int) -> Trace:
    """Two all-reduces of one rank, which write the list so."""
    trace = Trace(rank).collective(10 + rank, 30, group="dp", ranks=[rank])
    trace.collective(50 + rank, 60, group="dp", ranks=[rank])
    for row in trace.collectives:
        row |= {"process_group_ranks": written, "group_size": size, **stated}
    return trace


def test_calls_with_a_shortened_list_join_the_group_that_it_stands_for() -> None:
    shortened = f"[{FIRST_OF_64}, ..., 63]"
    stated = {"global_rank_start": 0, "global_rank_stride": 1}

    store = built(store_of(*(_calls(rank, shortened, 64, **stated) for rank in range(2))), "align")

    groups = rows_of(store, "SELECT name, ranks, size, origin FROM align.communicator")
    assert groups == [("dp", list(range(64)), 64, "stated")]
    assert rows_of(store, "SELECT COUNT(*) FROM align.match") == [(4,)]


def test_however_many_calls_write_it_a_list_is_stored_once() -> None:
    store = built(store_of(*(_calls(rank, "[0, 1]", 2) for rank in range(2))), "align")

    assert rows_of(store, "SELECT ranks FROM align.rank_list") == [([0, 1],)]
    assert rows_of(store, "SELECT DISTINCT rank_list_id FROM align.call") == [(0,)]
    assert rows_of(store, "SELECT DISTINCT rank_list_id FROM align.payload") == [(0,)]
    assert rows_of(store, "SELECT LEN(ranks), size FROM align.communicator") == [(2, 2)]


def test_a_list_that_does_not_tell_all_members_is_not_the_groups() -> None:
    # Nothing else names the members: the whole job is assumed, which has as many.
    store = built(
        store_of(*(_calls(rank, "[0, 2, ..., 62]", 32) for rank in range(2))), "align.communicator", "align.payload"
    )

    assert rows_of(store, "SELECT size, origin FROM align.communicator") == [(32, "assumed")]
    assert rows_of(store, "SELECT DISTINCT rank_list_id, group_size FROM align.payload") == [(None, 32)]
