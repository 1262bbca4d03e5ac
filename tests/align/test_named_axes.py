"""Names that hold a place on each parallel axis tell the ranks of one job; those that fill no grid do not."""

import polars as pl
import pytest

from traceforge.align.named_axes import by_axes, places

SGLANG = "1753000000.1-TP-{}-DP-{}-PP-{}-DECODE.trace.json.gz"
VLLM = "dp{}_pp{}_tp{}_dcp0_ep0_rank0.17676879633531144{}.pt.trace.json.gz"


def files(names: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"path": [f"job/{name}" for name in names]})


def ranks(names: list[str]) -> list[int] | None:
    found = by_axes(files(names))
    return None if found is None else found.to_list()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([SGLANG.format(tp, 0, 0) for tp in (1, 0)], [1, 0], id="tensor parallel"),
        pytest.param([SGLANG.format(tp, tp // 2, 0) for tp in range(4)], [0, 1, 2, 3], id="DP that follows from TP"),
        pytest.param([SGLANG.format(tp, 0, pp) for tp in (0, 1) for pp in (0, 1)], [0, 2, 1, 3], id="TP before PP"),
        pytest.param([SGLANG.format(tp, dp, 0) for tp in (0, 1) for dp in (0, 1)], [0, 2, 1, 3], id="TP before DP"),
        pytest.param(
            [VLLM.format(dp, pp, tp, dp) for dp in (0, 1) for pp in (0, 1) for tp in (0, 1)],
            [0, 1, 2, 3, 4, 5, 6, 7],
            id="of vLLM, which counts PP before DP",
        ),
    ],
)
def test_ranks_are_counted_along_tensor_parallel_places_first(names: list[str], expected: list[int]) -> None:
    assert ranks(names) == expected


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([SGLANG.format(tp, 0, 0) for tp in (0, 2)], id="with a hole"),
        pytest.param([SGLANG.format(0, dp, pp) for dp in (0, 1) for pp in (0, 1)], id="of an order that is not known"),
        pytest.param([SGLANG.format(0, 0, 0)] * 2, id="of one place"),
        pytest.param(["TP-0-DP-0.json", "TP-1.json"], id="of different axes"),
        pytest.param(["http-0.json", "http-1.json"], id="that end a word by chance"),
    ],
)
def test_no_rank_is_read_from_places(names: list[str]) -> None:
    assert ranks(names) is None


def test_files_of_one_place_are_told_to_be_of_one() -> None:
    # given the traces of two phases on each of two ranks
    names = [f"1753.1-TP-{tp}-{phase}.trace.json.gz" for phase in ("EXTEND", "DECODE") for tp in (1, 0)]

    found = places(files(names))

    assert found is not None
    assert found.to_list() == [1, 0, 1, 0]
