"""How the collectives of a rank differ from those of its peers, in words."""

import pytest

from traceforge.graph.call_words import call_mismatch

ROW = {
    "rank": 2, "first_place": 4, "last_place": 4, "node_id": 17, "previous_node_id": 15, "peer_rank": 0,
    "peer_node_id": 16, "peer_count": 3, "found": "all_reduce", "expected": "broadcast",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"status": "differs"}, "rank 2 has all_reduce (node 17) where others have broadcast"),
        ({"status": "differs", "peer_count": 1}, "rank 2 has all_reduce (node 17) where rank 0 has broadcast"),
        ({"status": "extra"}, "rank 2 makes call 4, all_reduce (node 17), which others do not"),
        (
            {"status": "missing", "node_id": None, "last_place": 6},
            (
                "rank 2 lacks one of the equal calls 4 to 6, behind its node 15, where others make broadcast "
                "(node 16 of rank 0); then all go on alike"
            ),
        ),
    ],
)
def test_a_rank_differs_by_another_call_one_more_or_one_less(changed: dict[str, object], said: str) -> None:
    assert call_mismatch(ROW | changed) == said
