"""Whether two runs lie on one curve, and if not, in which field they differ."""

import pytest

from traceforge.forecast.comparison import differences, unknown_fields
from traceforge.forecast.scale_point import ScalePoint

ALIKE: dict[str, str | float] = {
    "batch": 32, "compute_ns": 80e6, "dtype": "bfloat16", "algorithm": "ring", "nccl_version": "2.27.5",
    "size_bytes": 2e8, "operations": "all_reduce",
}  # fmt: skip


def point(**facts: str | float) -> ScalePoint:
    return ScalePoint("other", 8, 100.0, facts={**ALIKE, **facts})


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"batch": 64}, "batch per rank"),
        ({"compute_ns": 160e6}, "batch per rank"),
        ({"dtype": "float32"}, "element type"),
        ({"algorithm": "tree"}, "algorithm"),
        ({"nccl_version": "2.21.5"}, "NCCL version"),
        ({"size_bytes": 4e8}, "message sizes"),
        ({"operations": "all_gather, reduce_scatter"}, "message sizes"),
    ],
)
def test_a_run_that_differs_is_refused_by_the_fields_name(facts: dict[str, str | float], field: str) -> None:
    (found,) = differences(point(), point(**facts))

    assert found.field == field
    assert found.name == "other"


def test_noise_is_no_difference() -> None:
    assert differences(point(), point(compute_ns=88e6, size_bytes=2.1e8)) == []


def test_what_is_not_known_is_listed_and_not_refused() -> None:
    bare = ScalePoint("bare", 4, 50.0, facts={"dtype": "bfloat16"})

    assert differences(point(), bare) == []
    assert unknown_fields([point(), bare]) == ["batch per rank", "algorithm", "NCCL version", "message sizes"]
    assert unknown_fields([point(), point()]) == []


def test_compute_time_tells_of_the_batch_where_none_is_stated() -> None:
    points = [ScalePoint(name, 4, 50.0, facts={"compute_ns": 80e6}) for name in "ab"]

    assert "batch per rank" not in unknown_fields(points)
