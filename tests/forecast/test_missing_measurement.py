"""What must be measured before a curve can be drawn, by name."""

import pytest

from tests.given import MS, built, data_parallel_job, store_of


def needs_of(iterations: int, *, ranks: int = 2, world_size: int | None = None) -> dict[str, str]:
    traces = data_parallel_job([[100 * MS] * ranks] * iterations, transfer_ns=10 * MS) if ranks else []
    with built(store_of(*traces, world_size=world_size), "forecast.missing_measurement") as store:
        return {row["item"]: row["why"] for row in store.query("FROM forecast.missing_measurement").to_dicts()}


def test_one_scale_asks_for_others() -> None:
    needs = needs_of(12)

    assert set(needs) == {
        "The same job at two or more other scales than 2 ranks",
        "Batch size per rank, element type, algorithm and NCCL version of each run",
    }
    assert "One scale is one point" in needs["The same job at two or more other scales than 2 ranks"]


def test_few_iterations_ask_for_more() -> None:
    assert needs_of(4)["At least 10 judged iterations per run"].startswith("This run has 4;")


@pytest.mark.parametrize(
    ("ranks", "world_size", "item"),
    [
        (1, None, "The same job at two or more other scales than one rank"),
        (2, 64, "The same job at two or more other scales than 64 ranks"),
        (0, None, "The same job at three or more scales"),
    ],
)
def test_the_scale_is_named_in_words_that_fit(ranks: int, world_size: int | None, item: str) -> None:
    assert item in needs_of(1, ranks=ranks, world_size=world_size)
