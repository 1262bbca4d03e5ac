"""The grid of what-ifs, on a job that once went wrong; and how it judges."""

import pytest

from tests.accuracy.edited_jobs import runs
from tests.accuracy.what_ifs import Case, cases_of, table


def test_transfers_that_newly_stand_behind_one_another_are_told_within_the_interval() -> None:
    # given all-reduces of gradients that compute hides; with compute in 0.3 of its time they stand in a queue
    family = "tensor and data parallel"
    (edited,) = (one for one in runs(family, 1) if one.edit.startswith("scale_compute"))

    (case,) = cases_of([edited])

    assert case.edit == "scale_compute:factor=0.3"
    assert case.truth == pytest.approx(1.5811, abs=1e-3)
    assert abs(case.error) < 0.003
    assert case.is_inside


def test_the_table_counts_what_is_inside_by_edit_and_by_job() -> None:
    cases = [
        Case("sharded", "fix_rank:rank=0", truth=1.10, ratio=1.11, low=1.09, high=1.12),
        Case("sharded", "fix_rank:rank=1", truth=1.10, ratio=1.21, low=1.15, high=1.25),
        Case("pipeline", "tree:step_us=-1", truth=1.0, ratio=None),
    ]

    assert table(cases) == [
        "| fix_rank | 2 | 0 | 1 of 2 | 5.45 % | 10.0 % | 2.74 % |",
        "| tree | 1 | 1 | | | | |",
        "| sharded | 2 | 0 | 1 of 2 | 5.45 % | 10.0 % | 2.74 % |",
        "| pipeline | 1 | 1 | | | | |",
        "| **all** | 3 | 1 | 1 of 2 | 5.45 % | 10.0 % | 2.74 % |",
    ]
