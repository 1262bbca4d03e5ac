"""The section on execution traces says what they are good for, in words."""

import pytest

from tests.given import built, store_of
from tests.graph.recordings import add_execution_trace, operation
from tests.graph.test_communication import call, job
from tests.graph.test_operations import rank_that_waits
from traceforge.report.blocks import Missing, Note, Paragraph, Section, TableFigure
from traceforge.report.context import Context
from traceforge.report.sections.execution_traces import _VOLUME_COLUMNS, SECTION, _shared_folder
from traceforge.report.sections.verdict import shows_mismatch
from traceforge.store.database import Store


def section(store: Store) -> Section | Missing:
    return SECTION.build(Context(store, 0, {}, None))


def texts(found: Section | Missing) -> list[str]:
    assert isinstance(found, Section)
    told = {TableFigure: "caption", Note: "text", Paragraph: "text"}
    return [plain(getattr(block, told[type(block)])) for block in found.blocks if type(block) in told]


def plain(text: str) -> str:
    """A text with ordinary blanks between numbers and units."""
    return text.replace("\u00a0", " ").replace("\u202f", " ")


@pytest.fixture
def linked() -> Store:
    store = store_of(rank_that_waits(0, 30_000), rank_that_waits(1, 80_000))
    names = ("aten::mm", "record_param_comms", "aten::item")
    for rank in range(2):
        add_execution_trace(store, [operation(name, place) for place, name in enumerate(names, 1)], rank=rank)
    return built(store)


def test_without_execution_traces_the_section_says_how_to_record_them() -> None:
    found = section(built(store_of(rank_that_waits(0, 30_000))))

    assert isinstance(found, Missing)
    assert "ExecutionTraceObserver" in found.how


def test_a_linked_trace_shows_its_method_and_its_replay(linked: Store) -> None:
    found = section(linked)

    assert isinstance(found, Section)
    (table,) = [block.table for block in found.blocks if isinstance(block, TableFigure)]
    assert [row[0] for row in table.rows] == ["0", "1"]
    assert [plain(cell) for cell in table.rows[0][2:5]] == ["operation handles", "100 %", "100 %"]
    assert "Both execution traces have times." in texts(found)[0]
    assert (
        "to the last, 110 µs were measured; replayed by its dependencies, that work takes 110 µs." in texts(found)[-1]
    )


def test_the_first_rank_that_differs_is_named() -> None:
    plain = [call(), call()]

    said = texts(section(built(job(plain, [plain[0], call(elements=5)], plain), "graph")))

    assert any(
        "do not issue the same collectives: rank 1 has all_reduce 20 bytes float (node 101) where" in text
        for text in said
    )
    assert any("All 3 execution traces show structure only" in text for text in said)


def test_what_moves_in_which_group_stands_before_the_graphs() -> None:
    # given three ranks of which each makes one all-reduce of 4 elements of 4 bytes (no times)
    found = section(built(job([call()], [call()], [call()]), "graph"))

    # then the volume is the first table: one group, 3 ranks, 3 calls
    assert isinstance(found, Section)
    first, *_ = [block for block in found.blocks if isinstance(block, TableFigure)]
    assert first.name == "et-volume"
    (row,) = first.table.rows
    assert [plain(cell) for cell in row[1:4]] == ["1", "3", "3"]
    assert plain(row[6]) == "100 %"


def test_groups_that_no_trace_names_are_not_counted_as_none() -> None:
    (groups,) = [column for column in _VOLUME_COLUMNS if column.title == "groups"]
    assert [groups.cell({"group_count": number}) for number in (0, 3)] == ["—", "3"]


def test_files_are_named_without_the_folder_that_all_share() -> None:
    assert _shared_folder(["job/et/rank0.json", "job/et/rank1.json"]) == "job/et/"
    assert _shared_folder(["job/et/rank1", "job/et/rank10", "job/late/rank2"]) == "job/"
    assert _shared_folder(["/a/rank0", "b/rank1"]) == ""
    assert _shared_folder(["job/rank0"]) == ""


def test_a_message_that_is_not_received_is_told() -> None:
    pair = {"source_rank": 0, "destination_rank": 1}
    sent = [call("send", size, **pair) for size in (1, 2, 3)]
    received = [call("recv", size, **pair) for size in (1, 3)]

    said = texts(section(built(job(sent, received), "graph")))

    what = "rank 0 sends message 1 (node 101), which rank 1 does not receive"
    assert f"From rank 0 to rank 1, sends and receives do not match: {what}; 3 sent, 2 received." in said


@pytest.mark.parametrize(("received", "expected"), [((1, 3), True), ((1, 2, 3), False), ((1, 2), False)])
def test_calls_that_do_not_match_are_known_for_certain(received: tuple[int, ...], expected: bool) -> None:
    pair = {"source_rank": 0, "destination_rank": 1}
    calls = [call("send", size, **pair) for size in (1, 2, 3)], [call("recv", size, **pair) for size in received]

    assert shows_mismatch(Context(job(*calls), 0, {}, None)) is expected
