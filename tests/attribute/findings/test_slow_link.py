"""Which link slow messages point at.

stage 0      stage 1      stage 2
rank 0  ->   rank 1  ->   rank 2     node0, node1, node2
rank 3  ->   rank 4  ->   rank 5     node0, node1, node2
"""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pytest

from tests.attribute.findings.runs import judged_run
from traceforge.attribute.findings.slow_link import slow_link

HOSTS = ["node0", "node1", "node2"] * 2
LINKS = [(0, 1), (1, 2), (3, 4), (4, 5)]
SLOW = [5, 6, 7]


def messages(more_ns: Mapping[tuple[int, int], int]) -> pl.DataFrame:
    """Four messages of 11 or 12 an iteration and link, and more in iterations 5 to 7 on some links."""
    return pl.DataFrame(
        [
            (n, low, high, size, 10 + size + (more_ns.get((low, high), 0) if n in SLOW else 0))
            for n in range(12)
            for low, high in LINKS
            for size in (1, 1, 2, 2)
        ],
        schema=["iteration", "low", "high", "size_bytes", "transfer_ns"],
        orient="row",
    )


def named(more_ns: Mapping[tuple[int, int], int], delay_ns: float = 100.0) -> tuple[str, str, tuple[int, ...]] | None:
    run = replace(judged_run(12, 6, hosts=HOSTS), messages=messages(more_ns))
    found = slow_link(run, SLOW, delay_ns)
    return found and (found.kind, found.name, found.places)


@pytest.mark.parametrize(
    ("more_ns", "expected"),
    [
        ({(1, 2): 30}, ("link", "1, 2", (1, 2))),
        ({(1, 2): 30, (4, 5): 30}, ("link", "node1, node2", (1, 2, 4, 5))),  # both links between these hosts
        ({(0, 1): 30, (1, 2): 30}, None),  # two links of rank 1, and not the others of its host
        (dict.fromkeys(LINKS, 30), None),  # all
        ({}, None),
    ],
)
def test_a_link_is_named_if_nearly_all_that_messages_lose_is_on_it(
    more_ns: Mapping[tuple[int, int], int], expected: tuple[str, str, tuple[int, ...]] | None
) -> None:
    assert named(more_ns) == expected


def test_messages_that_lose_less_than_transfers_cost_do_not_explain_them() -> None:
    # given 4 messages x 3 iterations x 30 = 360 more, where slow transfers cost 1,000: collectives lost the rest
    assert named({(1, 2): 30}, delay_ns=1_000) is None


def test_a_run_without_messages_has_no_such_link() -> None:
    assert slow_link(judged_run(12, 6, hosts=HOSTS), SLOW, 100) is None
