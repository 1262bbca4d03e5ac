"""Who passes messages to whom: pipelines have a first stage, rings have none."""

from collections.abc import Mapping

import polars as pl
import pytest

from traceforge.timeline.message_paths import pipelines

Ways = Mapping[tuple[int, int], int]


def _messages(counts: Ways, *, together: bool = False) -> pl.DataFrame:
    """So many messages from one rank to another; all of one number in one call, or each in its own."""
    rows = [
        (0, n if together else 1000 * pair + n, source, destination, 1, 10 * n + pair)
        for pair, ((source, destination), count) in enumerate(counts.items())
        for n in range(count)
    ]
    names = ["communicator_id", "collective_id", "source_rank", "destination_rank", "iteration", "received_ns"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _found(counts: Ways, *, ranks: int, description: str = "", together: bool = False) -> list[tuple[int, ...]]:
    group = pl.DataFrame({"communicator_id": [0], "description": [description], "ranks": [list(range(ranks))]})
    return pipelines(group, _messages(counts, together=together), ranks)


@pytest.mark.parametrize(
    ("counts", "pipes"),
    [
        # forward and backward through three stages
        ({(0, 1): 8, (1, 2): 8, (2, 1): 8, (1, 0): 8}, [(0, 1, 2)]),
        # two chunks a stage: the last one sends the first chunk's results back to the first stage
        ({(0, 1): 16, (1, 2): 16, (2, 0): 8, (1, 0): 16, (2, 1): 16, (0, 2): 8}, [(0, 1, 2)]),
        # every rank sends to the next, the last one to the first as well
        ({(0, 1): 8, (1, 2): 8, (2, 0): 8}, []),
        # a ring both ways, of which the window cut one message off
        ({(0, 1): 40, (1, 2): 40, (2, 0): 39, (1, 0): 40, (2, 1): 40, (0, 2): 40}, []),
    ],
)
def test_where_all_pass_on_alike_and_the_last_to_the_first_there_is_no_pipeline(
    counts: Ways, pipes: list[tuple[int, ...]]
) -> None:
    assert _found(counts, ranks=3) == pipes


def test_a_pipeline_whose_messages_pass_two_groups_is_one() -> None:
    # given a group of stages 0 and 1, and messages between 1 and 2 in the group of all
    groups = pl.DataFrame({"communicator_id": [0, 1], "description": ["", ""], "ranks": [[0, 1], [0, 1, 2]]})
    first, second = (_messages(counts) for counts in ({(0, 1): 8, (1, 0): 8}, {(1, 2): 8, (2, 1): 8}))
    messages = pl.concat([first, second.with_columns(communicator_id=pl.lit(1, dtype=pl.Int64))])

    assert pipelines(groups, messages, 3) == [(0, 1, 2)]


def test_two_ranks_are_a_ring_if_each_call_of_theirs_sends_both_ways() -> None:
    both = {(0, 1): 8, (1, 0): 8}

    assert _found(both, ranks=2, together=True) == []
    assert _found(both, ranks=2) == [(0, 1)]


@pytest.mark.parametrize("description", ["CONTEXT_PARALLEL_GROUP", "mesh_cp"])
def test_ranks_that_share_a_context_are_no_pipeline(description: str) -> None:
    assert _found({(0, 1): 8, (1, 0): 8}, ranks=2, description=description) == []
    assert _found({(0, 1): 8, (1, 0): 8}, ranks=2, description="cpu_pipeline") == [(0, 1)]
