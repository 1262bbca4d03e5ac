"""Hosts by rack: drawn where racks are stated, in the page's words and in the timeline; never where they are not."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.report.tables import Job, borrowed
from traceforge.redaction import Redaction
from traceforge.report import build_report
from traceforge.report.context import Context
from traceforge.report.timeline.payload import read_timeline
from traceforge.store.database import Store

# eight ranks on four hosts; rank 2, on node1, computes 8 ms longer in 5 of the 7 iterations that count
JOB = Job(8, late_rank=2, ranks_per_host=2)


@pytest.fixture
def job() -> Iterator[Store]:
    with borrowed(JOB) as store:
        store.execute("INSERT INTO timeline.role SELECT run_id, rank, 0, NULL FROM align.rank")
        yield store


def stated(store: Store, **rack_of: str) -> None:
    for host, rack in rack_of.items():
        store.execute("INSERT INTO align.rack VALUES (1, ?, ?)", [host, rack])


def section_of(store: Store) -> str:
    page = build_report(store, run_id=1, versions={}, command=None).html
    start = page.find('id="racks"')
    text = re.sub(r"<[^>]+>", " ", page[start : page.find("<section", start)]) if start >= 0 else ""
    return " ".join(text.split()).replace("\N{NO-BREAK SPACE}", " ")


def test_the_rack_of_the_slow_host_comes_first_and_the_host_is_named(job: Store) -> None:
    stated(job, node0="r1", node1="r1", node2="r2", node3="r2")

    section = section_of(job)

    found = re.search(r"Ranks in rack r1 work ([\d.]+) ms longer an iteration than those in rack r2", section)
    # 8 ms in 5 of 7 iterations on one of the rack's four ranks, and scatter below 1 ms
    assert found
    assert float(found[1]) == pytest.approx(8 * 5 / 7 / 4, abs=0.5)
    assert "the largest difference between 2 racks; its host node1 makes most of that." in section
    assert "They are drawn, not tested" in section


def test_racks_that_nobody_stated_or_that_are_one_are_not_drawn(job: Store) -> None:
    assert section_of(job) == ""
    stated(job, node0="r1", node1="r1")
    assert section_of(job) == ""


def test_the_timeline_knows_the_rack_of_each_host(job: Store) -> None:
    stated(job, node0="r1", node1="r1", node3="r2")

    found = read_timeline(Context(job, 1, {}, None))

    assert found is not None
    assert json.loads(json.dumps(found.page["racks"])) == ["r1", "r1", None, "r2"]


def test_redacted_pages_name_no_rack(job: Store) -> None:
    stated(job, node0="hall7-north", node1="hall7-north", node2="hall7-south", node3="hall7-south")

    page = build_report(job, run_id=1, versions={}, command=None, redaction=Redaction.of(job)).html

    assert "hall7" not in page
    assert "rack-1" in page
