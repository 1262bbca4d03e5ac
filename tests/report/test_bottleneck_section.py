"""The section on where the whole step goes, of one rank and of several."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.given import MS, Trace, built, data_parallel_job, store_of
from traceforge import api
from traceforge.api import STAGES
from traceforge.report.operation_sums import summed
from traceforge.report.sections.operations import columns_of, told
from traceforge.store.database import Store


def section_of(store: Store) -> str:
    html = api.report(store).html
    found = [re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL) for name in ("bottleneck", "operations")]
    return "".join(one[0] for one in found if one is not None)


def test_one_rank_shows_its_whole_step_and_its_largest_operations() -> None:
    # Half of each step the device waits for a launch.
    trace = Trace().step(0, 0, 20 * MS).host_work("aten::mm", 0, 1 * MS).kernel(0, 10 * MS, "volta_sgemm_128x64_tn")
    trace.host_work("python", 10 * MS, 20 * MS, "user_annotation").kernel(20 * MS - 10, 20 * MS)

    section = section_of(built(store_of(trace, world_size=1), *STAGES))

    assert "Launches come late" in section or "Unexplained" in section
    assert "aten::mm" in section
    assert "volta_sgemm_128x64_tn" in section
    assert "What bounds each rank" not in section


def test_several_ranks_are_named_one_by_one() -> None:
    section = section_of(built(store_of(*data_parallel_job([[20 * MS, 40 * MS]] * 4)), *STAGES))

    assert "What bounds each rank" in section
    assert "Waiting for later ranks" in section


def test_names_of_operations_are_shown_as_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    trace = Trace().step(0, 0, 20 * MS).host_work(hostile, 0, 1 * MS).kernel(0, 10 * MS)

    section = section_of(built(store_of(trace, world_size=1), *STAGES))

    assert "<img" not in section
    assert "&lt;img" in section


def test_a_sample_has_the_sentence_in_its_summary(sample_database: Callable[..., Path]) -> None:
    with Store(sample_database("healthy"), read_only=True) as store:
        bound = api.summary(store)["bound"]

    assert isinstance(bound, dict)
    assert "The host computes" in bound["sentence"]


def words_of(store: Store) -> str:
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", api.report(store).html.replace("<wbr>", ""), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", shown).replace("\u00a0", " ").split())


def test_a_recording_without_steps_has_no_mean_iteration() -> None:
    # given a rank whose trace marks no step
    trace = Trace().host_work("aten::mm", 0, 1 * MS).kernel(0, 10 * MS).kernel(20 * MS - 10, 20 * MS)

    words, _, _ = words_of(built(store_of(trace, world_size=1), *STAGES)).partition("Queries as executed")

    # then all is said of the time recorded
    assert "Iterations none marked" in words
    assert "Where the time recorded goes" in words
    assert "Together they are the time recorded." in words
    assert "A mean iteration" not in words
    assert "Where a mean step goes" not in words
    assert "1 input file " in words


def test_kernels_are_added_up_by_their_whole_names() -> None:
    # given two kernels whose names differ only where a table cuts them, in one step of 20 ms
    name = "void vectorized_elementwise_kernel_of_{}_and_of_a_very_long_functor_of_copies"
    trace = Trace().step(0, 0, 20 * MS)
    trace.unlaunched_kernel(0, 8 * MS, name.format("float16")).unlaunched_kernel(
        10 * MS, 19 * MS, name.format("half32")
    )

    words = words_of(built(store_of(trace, world_size=1), *STAGES))

    # then the larger is the largest, and not their sum
    assert re.search(r"Most time goes to [^ ]*…[^ ]*, 9.00 ms of an iteration", words)
    assert "17.0 ms of an iteration" not in words


def test_what_several_kernels_of_an_operation_take_is_told_with_their_number() -> None:
    # given an operation with two kernels, neither of which is the largest row of the table
    rows = [_operation("aten::cat", 18.5), _operation("aten::addmm", 10.7), _operation("aten::addmm", 10.3)]

    found = summed(rows, lambda row: str(row["operation"]))

    assert [(row["name"], row["duration_ns"], row["rows"]) for row in found] == [
        ("aten::addmm", 21.0, 2), ("aten::cat", 18.5, 1),
    ]  # fmt: skip
    assert [told(row) for row in found] == [
        "aten::addmm, 21\N{NO-BREAK SPACE}ns (2 rows)",
        "aten::cat, 18\N{NO-BREAK SPACE}ns",
    ]


def test_where_the_operation_of_most_time_is_unknown_kernels_stand_first() -> None:
    # given a kernel that a captured graph launched, and a small one of a known operation
    rows = [_operation("", 99.0), _operation("aten::copy_", 1.0)]

    assert [column.title for column in columns_of(rows)][:1] == ["kernel"]
    assert [column.title for column in columns_of(rows[1:])][:1] == ["operation"]


def _operation(name: str, duration_ns: float) -> dict[str, object]:
    return {"operation": name, "duration_ns": duration_ns, "share": 0.1}
