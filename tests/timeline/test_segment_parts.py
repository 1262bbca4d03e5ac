"""A rank with many events is divided in time: its segments are the same as those of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.timeline.layers import Intervals, union
from traceforge.timeline.segment import RankLayers, Segments, segments, segments_in_parts
from traceforge.vocabulary import vocabulary

NAMES = ("transfer", "wait", "unsplit", "communication", "copy", "input", "compute", "launch", "operation")
PHASES = (
    ("compute", ("compute",)), ("transfer", ("transfer",)), ("wait", ("wait",)), ("communication", ("unsplit",)),
    ("copy", ("copy",)), ("input", ("input",)), ("runtime", ("launch", "operation")),
)  # fmt: skip
stretches = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12)


def layers_of(parts: dict[str, list[tuple[int, int]]]) -> RankLayers:
    found: dict[str, Intervals] = {}
    for name in dict.fromkeys((*NAMES, *(one.name for one in vocabulary().activities))):
        own = np.array(parts.get(name, []), np.int64).reshape(-1, 2)
        found[name] = union(own[:, 0], own[:, 0] + own[:, 1])
    return RankLayers(found, PHASES, "idle")


def listed(part: Segments) -> list[tuple[int, ...]]:
    columns = (part.window, part.phase, part.activity, part.start_ns, part.duration_ns, part.hidden_ns)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, stretches)), st.integers(2, 9))
def test_parts_joined_are_the_whole(parts: dict[str, list[tuple[int, int]]], most_edges: int) -> None:
    layers = layers_of(parts)
    starts, ends = np.array([3, 30, 50]), np.array([25, 50, 70])

    divided = [row for part in segments_in_parts(layers, starts, ends, most_edges) for row in listed(part)]

    assert divided == listed(segments(layers, starts, ends))


@pytest.mark.parametrize("most_edges", [2, 1000])
def test_a_stretch_that_is_cut_is_one_again_with_all_it_hides(most_edges: int) -> None:
    # given compute from 0 to 40 over ten transfers of 2 ns each
    layers = layers_of({"compute": [(0, 40)], "communication": [(4 * n, 2) for n in range(10)]})

    (part,) = (one for one in segments_in_parts(layers, np.array([0]), np.array([40]), most_edges) if len(one.window))

    assert (part.start_ns.tolist(), part.duration_ns.tolist(), part.hidden_ns.tolist()) == ([0], [40], [20])


def test_a_rank_of_many_events_is_handed_over_in_parts() -> None:
    layers = layers_of({"operation": [(2 * n, 1) for n in range(100)]})

    parts = list(segments_in_parts(layers, np.array([0]), np.array([200]), 20))

    assert 10 <= len(parts) <= 12
    assert max(len(one.window) for one in parts) <= 30
