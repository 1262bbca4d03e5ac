"""Calls that share all of their keys are one group, whatever the keys are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceforge.operation.call_groups import _as_one

LARGEST = 2**31 - 2


@given(st.lists(st.tuples(*[st.sampled_from([-1, 0, 1, 2, LARGEST])] * 4), min_size=1))
def test_rows_have_one_number_where_all_of_theirs_are_equal(rows: list[tuple[int, ...]]) -> None:
    code = _as_one([np.array(column) for column in zip(*rows, strict=True)])

    assert len(set(zip(code.tolist(), rows, strict=True))) == len(set(code.tolist())) == len(set(rows))
