"""What the section on the fabric says of logs, and that their text stays text."""

import re
from pathlib import Path

import pytest

from tests.fabric.dumps import recorders
from tests.fabric.finding_stories import no_gdr, pair
from tests.fabric.logs import Process, add_dumps, add_logs, fabric_of
from tests.fabric.test_paths import two_hosts
from tests.given import built, data_parallel_job, store_of
from traceforge.api import STAGES
from traceforge.report import Report, build_report
from traceforge.store.database import Store

from .browser import Page
from .conftest import HOSTILE


def report_on(processes: list[Process]) -> Report:
    with fabric_of(processes, asked=" ".join(STAGES)) as store:
        return build_report(store, run_id=0, versions={"traceforge": "0.1.0"}, command=None)


@pytest.fixture(scope="module")
def without_gdr() -> Report:
    return report_on(no_gdr())


@pytest.fixture(scope="module")
def on_two_hosts() -> Report:
    return report_on(two_hosts())


@pytest.fixture(scope="module")
def hanging() -> Report:
    return hang_report()


def words_of(report: Report, section: str) -> str:
    body = report.html.partition(f'<section id="{section}"')[2].partition("</section>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_logs_alone_get_a_verdict_that_promises_no_delay(without_gdr: Report) -> None:
    verdict = without_gdr.summary["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["kind"] == "cannot_be_known"
    assert verdict["headline"].startswith("The logs show a problem: GPU Direct RDMA is off")
    assert "what it costs cannot be known from this" in without_gdr.html.replace("\N{NO-BREAK SPACE}", " ")
    assert "Problems in the logs" in without_gdr.html
    # and what it says to mend comes before what it takes to measure
    repair, _, measure = verdict["next_step"].partition(" What it costs only a timeline shows: ")
    assert "NCCL_NET_GDR_LEVEL" in repair or "nvidia_peermem" in repair
    assert measure.startswith("record a timeline")
    assert without_gdr.summary["findings"] == []


def _summary(*processes: Process) -> tuple[str, object]:
    """The tile of communicators, and what machines get."""
    report = report_on(list(processes))
    tile = re.search(r" Communicators (.*?) NCCL version", words_of(report, "fabric"))
    assert tile is not None
    fabric = report.summary["fabric"]
    assert isinstance(fabric, dict)
    return tile[1].replace("\N{NO-BREAK SPACE}", " "), fabric["communicators"]


def test_calls_alone_do_not_tell_how_many_communicators_there_are() -> None:
    # given calls of three processes, each with a pointer of its own: they may be of one communicator, or of three
    calls = [Process(rank).calls(comm=0xA0 + rank, size=4) for rank in range(3)]

    assert _summary(*calls) == ("not known at least 1: no line names them all; the largest has 4", None)


def test_connections_alone_do_not_tell_how_many_communicators_there_are() -> None:
    late = [Process(rank).says("Connected all trees").sends(1 - rank, "P2P/CUMEM") for rank in range(2)]

    assert _summary(*late) == ("not known at least 1: no line names them all; their sizes are not known", None)


def test_a_log_may_name_no_communicator_at_all() -> None:
    assert _summary(Process(0).says("Using network IB")) == ("0 no line names one", 0)


def test_calls_of_one_process_on_two_pointers_are_of_two_communicators() -> None:
    assert _summary(Process(0).calls(comm=0xA0).calls(comm=0xB0)) == ("2 0 with all ranks; the largest has 2", 2)


def test_machines_get_the_findings_with_their_place(without_gdr: Report) -> None:
    fabric = without_gdr.summary["fabric"]

    assert isinstance(fabric, dict)
    (finding,) = fabric["findings"]
    assert (finding["code"], finding["severity"], finding["basis"]) == ("gdr_off", "problem", "configuration evidence")
    assert finding["path"] == "nccl0.log"
    assert finding["line"] > 0


def hang_report(*, without: int | None = None, hang: bool = True) -> Report:
    ranks = recorders({"0": [0, 1, 2]})
    for rank in ranks[: 2 if hang else 0]:
        rank.got("0", 9, 8).calls("0", 9, "all_reduce<b>")
    store = Store(None, is_kept=False)
    add_dumps(store, *(rank.dump() for rank in ranks if rank.rank != without))
    with built(store, *STAGES) as joined:
        return build_report(joined, run_id=0, versions={"traceforge": "0.1.0"}, command=None)


def test_dumps_of_a_hang_alone_get_a_verdict_that_names_who_is_waited_for(hanging: Report) -> None:
    verdict = hanging.summary["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["kind"], verdict["confidence"]) == ("finding", "high")
    assert verdict["headline"].startswith("Rank 2 never made the call that 2 ranks wait in: all_reduce<b> 9")
    assert "Look at the stacks of rank 2" in verdict["next_step"]
    assert "all_reduce<b>" not in hanging.html
    # and the stacks that it asks for come with the command that prints them
    assert "xargs -n 1 py-spy dump" in words_of(hanging, "verdict")


def test_a_dump_without_calls_counts_as_used_as_the_verdict_rests_on_it(hanging: Report) -> None:
    # given three ranks, of which rank 2 has entered no call and says how far it came
    assert "all of the job" in hanging.html
    assert "not used" not in hanging.html


def test_dumps_without_the_one_that_matters_say_whose_is_missing() -> None:
    verdict = hang_report(without=2).summary["verdict"]

    assert isinstance(verdict, dict)
    assert verdict["kind"] == "cannot_be_known"
    assert "rank 2 of 3 ranks has no dump" in verdict["headline"]


def test_dumps_in_which_no_call_waits_say_that_nothing_hangs() -> None:
    verdict = hang_report(hang=False).summary["verdict"]

    assert isinstance(verdict, dict)
    assert (verdict["kind"], verdict["confidence"]) == ("nothing_significant", "high")
    assert verdict["headline"].startswith("Nothing hangs in a collective")


def test_a_finding_is_shown_with_its_file_and_line_and_as_no_measurement(without_gdr: Report) -> None:
    words = words_of(without_gdr, "fabric")

    assert "GPU Direct RDMA is off for all 2 network connections" in words
    assert re.search(r"nccl0\.log, line \d+", words)
    assert "none of it is a measured delay" in words


def test_only_the_worst_problems_of_the_logs_are_open() -> None:
    # given a log that shows five findings: a problem, a notice and three further problems
    with fabric_of(no_gdr(), asked=" ".join(STAGES)) as store:
        store.execute(
            "INSERT INTO fabric.finding SELECT f.* REPLACE (finding_id + n AS finding_id, IF(n = 1, 'notice', severity)"
            " AS severity) FROM fabric.finding AS f, RANGE(1, 5) AS more(n)"
        )
        html = build_report(store, run_id=0, versions={"traceforge": "0.1.0"}, command=None).html

    # then the two problems among the first three are open, and the others are a line each
    fabric = html.partition('<section id="fabric"')[2].partition("</section>")[0]
    open_cards = re.findall(r'<article class="card".*?</article>', fabric, flags=re.DOTALL)
    assert ["(problem, " in card for card in open_cards] == [True, True]
    assert len(re.findall('<details class="card hint"', fabric)) == 3


def test_ranks_nics_and_rings_are_told_in_words(on_two_hosts: Report) -> None:
    words = words_of(on_two_hosts, "fabric")

    assert "4 ranks of 2 hosts use 4 NICs, one per rank." in words
    assert "runs 1 ring through 4 ranks; the first crosses the network 2 times." in words
    # none of those that share the load evenly is called the busiest
    assert "Each of the 4 NICs in use carries 50 % of its host" in words
    assert "mlx5_2 (IB/2) carries none" in words
    assert "network, GPU Direct RDMA" in words


def test_ranks_whose_hosts_no_log_names_are_not_said_to_share_a_node() -> None:
    # given the log of one of two hosts: a ring and a tree over four ranks, and none of the ranks 2 and 3
    trees = "1/-1/-1->0->2", "-1/-1/-1->1->0"
    here = [
        Process(rank, device=rank).says("Channel 00/01 :    0   1   2   3", f"Trees [0] {tree}").init(size=4)
        for rank, tree in enumerate(trees)
    ]

    words = words_of(report_on(here), "fabric")

    assert "runs 1 ring through 4 ranks." in words
    assert "without leaving a node" not in words
    assert "0 2 \N{EM DASH} 1 \N{EM DASH}" in words  # channel, ranks, no root, most children, links between hosts


def test_a_run_without_logs_says_how_to_record_them(late_report: Report) -> None:
    words = words_of(late_report, "fabric")

    assert "There is no NCCL log among the files" in words
    assert "NCCL_DEBUG=INFO" in words


def test_text_from_a_log_opens_no_element() -> None:
    first, second = pair()
    report = report_on([first.says(f"NCCL_BUFFSIZE set by environment to {HOSTILE}"),
                        second.says("NCCL_BUFFSIZE set by environment to 1")])  # fmt: skip

    assert "NCCL_BUFFSIZE differs" in words_of(report, "fabric")
    assert "<img src=x" not in report.html
    assert "</script><script>window" not in report.html


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_the_section_is_drawn_in_a_browser_within_its_window(
    page: Page, on_two_hosts: Report, tmp_path: Path, width: int
) -> None:
    page.open(on_two_hosts.html, tmp_path, width=width)
    page.draw_all()

    assert page.complaints() == []
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")


def test_a_collective_of_the_timeline_is_shown_with_its_algorithm_path_and_nics() -> None:
    store = store_of(*data_parallel_job([[100, 100]] * 4))
    choice = "AllReduce: 4000 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}"
    processes = pair()
    for process in processes * 4:
        process.calls(elements=1_000).says(choice)
    add_logs(store, processes)

    with built(store, *STAGES) as joined:
        words = words_of(build_report(joined, run_id=0, versions={"traceforge": "0.1.0"}, command=None), "fabric")

    assert "Paths of the timeline's collectives" in words.replace("&#39;", "'")
    assert re.search(r"all_reduce .{0,40} ring simple 8 network, GPU Direct RDMA mlx5_0", words)


def test_progress_in_groups_shows_who_is_behind_and_by_how_much(hanging: Report) -> None:
    words = words_of(hanging, "hang")

    # The verdict names who is missing; the section says the rest.
    assert "Rank 2 never made the call" in words_of(hanging, "verdict")
    assert "step at train.py:7" in words
    assert re.search(r"0_GROUP \(ranks 0\u20132\) 0 9 not recorded 8 1 ", words)
    assert re.search(r"2 holds up 0 \(9 behind\) not recorded 0 \(8 behind\) 0 ", words)


def test_a_run_without_dumps_has_no_section_on_hangs(late_report: Report) -> None:
    assert words_of(late_report, "hang") == ""
