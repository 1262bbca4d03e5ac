"""The timeline's data are those of the tables: time by phase, delay by owner, arrivals, and each finding's moment."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.conftest import HOSTILE
from tests.report.tables import MS, Job, store_of
from traceforge.redaction import Redaction
from traceforge.report import Report
from traceforge.report.context import Context, Limits
from traceforge.report.timeline.payload import read_timeline
from traceforge.store.database import Store

from .reading import embedded, spent


@pytest.fixture(scope="module")
def job() -> Iterator[Store]:
    """Four ranks on two hosts, eight iterations; rank 2 is 8 ms late from iteration 3 on."""
    with store_of(Job()) as store:
        yield store


def test_every_rank_spends_what_the_tables_say_to_the_ns(job: Store) -> None:
    found = read_timeline(Context(job, 1, {}, None))

    assert found is not None
    asked = job.query("SELECT iteration, rank, phase, duration_ns FROM timeline.phase WHERE duration_ns > 0").rows()
    drawn = {
        (number, rank, phase): steps * found.axis.step_ns
        for number in found.axis.numbers
        for rank in range(4)
        for phase, steps in spent(found.page, number, rank).items()
    }
    # the story's phases last whole µs, so that rounding to steps changes nothing
    assert drawn == {(number, rank, phase): lasting for number, rank, phase, lasting in asked}
    assert found.runs.slot_ns is None


def test_the_strip_holds_the_ledger(job: Store) -> None:
    page = embedded_of(job)
    asked = job.query(
        "SELECT iteration, rank, delay_ns / 1000 FROM attribute.delay WHERE delay_ns > 0 ORDER BY ALL"
    ).rows()

    names = [name for name, *_ in page["owners"]["names"]]
    cells = {(number, names[owner]): us for number, owner, us in page["owners"]["cells"]}
    assert sum(cells.values()) == pytest.approx(sum(us for *_, us in asked), abs=len(asked))
    assert cells[5, "Rank 2: slow compute"] == round({row[:2]: row[2] for row in asked}[5, 2])
    assert names[0] == "Rank 2: slow compute"
    assert names[-1] == "Unexplained"


def test_the_excess_runs_from_the_median_arrival_of_the_others_to_the_culprits_own(job: Store) -> None:
    page = embedded_of(job)
    arrived = dict(job.query("SELECT rank, arrival_ns FROM timeline.arrival WHERE iteration = 3").rows())
    begin = job.query("SELECT start_ns FROM timeline.iteration WHERE iteration = 3").item()
    shift = page["offsets"][list(page["iterations"]).index(3)]

    moment = page["moments"][0]

    others = sorted(at for rank, at in arrived.items() if rank != 2)
    assert moment["span"] == [shift + (at - begin) // 1_000 for at in (others[1], arrived[2])]
    assert (moment["iteration"], moment["rank"], moment["sure"]) == (3, 2, True)
    label, group, end, last, ranks, at = page["collectives"][moment["link"]]
    assert (label, group, last, ranks) == ("all_reduce 100\N{NO-BREAK SPACE}MB", "mesh_dp (4 ranks)", 2, [0, 1, 2, 3])
    assert at == [shift + (arrived[rank] - begin) // 1_000 for rank in ranks]
    assert end == max(at) + 20 * MS // 1_000


def test_of_slow_transfers_the_longest_one_is_outlined_on_all_its_ranks(job: Store) -> None:
    with store_of(Job()) as store:
        store.execute("UPDATE attribute.finding SET moment_rank = NULL WHERE finding_id = 0")
        page = embedded_of(store)
    moment = page["moments"][0]
    assert (moment["rank"], moment["ranks"]) == (None, (0, 1, 2, 3))
    assert moment["span"][1] - moment["span"][0] == 20 * MS // 1_000
    assert moment["label"].endswith("of transfer")


def test_a_hint_makes_no_rank_a_culprit(job: Store) -> None:
    # findings: rank 2 high, rank 1 medium, rank 3 low
    page = embedded_of(job)
    assert page["culprits"] == [1, 2]
    assert [moment["sure"] for moment in page["moments"]] == [True, True, False]


def test_with_too_many_runs_the_moments_stay_exact_and_the_rest_is_thinned() -> None:
    with store_of(Job(pieces=40)) as store:
        exact = read_timeline(Context(store, 1, {}, None))
        thin = read_timeline(Context(store, 1, {}, None, Limits(runs=2_000)))
    assert exact is not None
    assert thin is not None
    assert thin.runs.slot_ns is not None
    assert thin.runs.count < exact.runs.count
    assert spent(thin.page, 3, 2) == spent(exact.page, 3, 2)
    assert sum(spent(thin.page, 7, 1).values()) == sum(spent(exact.page, 7, 1).values())


def test_a_run_without_iterations_has_no_timeline() -> None:
    with store_of(Job(iterations=0, late_rank=None)) as store:
        assert read_timeline(Context(store, 1, {}, None)) is None


def test_ranks_are_grouped_by_axes_that_say_more_than_their_numbers() -> None:
    # given four ranks in two stages of two, and an axis on which each rank stands alone
    with store_of(Job()) as store:
        places = [(rank, "pp", rank // 2) for rank in range(4)] + [(rank, "tp", rank) for rank in range(4)]
        store.execute("DELETE FROM timeline.mesh")
        for rank, axis, coordinate in places:
            store.execute("INSERT INTO timeline.mesh VALUES (1, ?, ?, ?)", [rank, axis, coordinate])

        assert embedded_of(store)["axes"] == [("pp", ["stage 0", "stage 1"], [0, 0, 1, 1])]


def test_names_that_attack_the_page_travel_as_letters_and_digits(hostile_report: Report) -> None:
    page = embedded(hostile_report.html)
    assert any(HOSTILE[:20] in host for host in page["hosts"])
    script = hostile_report.html.partition('id="data-timeline">')[2].partition("</script>")[0]
    assert script.startswith('{"deflate":"')
    assert not set(script) & set("<>&")


def test_redacted_names_are_not_inside_the_compressed_text() -> None:
    with store_of(Job(host="goldfinch", communicator="goldfinch-ring")) as store:
        found = read_timeline(Context(store, 1, {}, None, redaction=Redaction.of(store)))
    assert found is not None
    text = json.dumps(found.page)
    assert "host-1" in text
    assert "goldfinch0" not in text


def embedded_of(store: Store) -> Any:
    found = read_timeline(Context(store, 1, {}, None))
    assert found is not None
    return found.page
