"""The section on where the whole step goes, of one rank and of several."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.given import MS, Trace, built, data_parallel_job, store_of
from traceforge import api
from traceforge.store.database import Store


def section_of(store: Store) -> str:
    html = api.report(store).html
    found = [re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL) for name in ("bottleneck", "operations")]
    return "".join(one[0] for one in found if one is not None)


def test_one_rank_shows_its_whole_step_and_its_largest_operations() -> None:
    # Half of each step the device waits for a launch.
    trace = Trace().step(0, 0, 20 * MS).host_work("aten::mm", 0, 1 * MS).kernel(0, 10 * MS, "volta_sgemm_128x64_tn")
    trace.host_work("python", 10 * MS, 20 * MS, "user_annotation").kernel(20 * MS - 10, 20 * MS)

    section = section_of(built(store_of(trace, world_size=1), "forecast"))

    assert "Launches come late" in section or "Unexplained" in section
    assert "aten::mm" in section
    assert "volta_sgemm_128x64_tn" in section
    assert "What bounds each rank" not in section


def test_several_ranks_are_named_one_by_one() -> None:
    section = section_of(built(store_of(*data_parallel_job([[20 * MS, 40 * MS]] * 4)), "forecast"))

    assert "What bounds each rank" in section
    assert "Waiting for later ranks" in section


def test_names_of_operations_are_shown_as_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    trace = Trace().step(0, 0, 20 * MS).host_work(hostile, 0, 1 * MS).kernel(0, 10 * MS)

    section = section_of(built(store_of(trace, world_size=1), "forecast"))

    assert "<img" not in section
    assert "&lt;img" in section


def test_a_sample_has_the_sentence_in_its_summary(sample_database: Callable[..., Path]) -> None:
    with Store(sample_database("healthy"), read_only=True) as store:
        bound = api.summary(store)["bound"]

    assert isinstance(bound, dict)
    assert "The host computes" in bound["sentence"]
