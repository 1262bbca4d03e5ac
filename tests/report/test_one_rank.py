"""The page of one rank: nothing on it compares ranks, and a file that could not be read is no green light."""

import re

import pytest

from traceforge.report import build_report

from .tables import Job, store_of


@pytest.fixture(scope="module")
def words() -> str:
    """The page of a job of one rank, one file of which is damaged, as text."""
    with store_of(Job(ranks=1, late_rank=0)) as store:
        store.execute(
            "INSERT INTO meta.issue (run_id, source_id, stage, code, severity, count, lost_events, first_at, detail)"
            " SELECT run_id, NULL, 'ingest', 'file_failed', 'error', 1, 0, 'b.json', 'no JSON' FROM meta.run"
        )
        page = build_report(store, run_id=1, versions={}, command=None).html
    text = re.sub(r"<script.*?</script>|<[^>]+>", " ", page.partition("<main")[2], flags=re.DOTALL)
    return " ".join(text.split()).replace("\N{NO-BREAK SPACE}", " ")


def test_it_is_not_paced_as_nobody_waits_for_it(words: str) -> None:
    assert "No pacing policy was replayed: only rank 0 was recorded" in words


def test_its_collectives_are_not_said_to_be_joined_together(words: str) -> None:
    assert "its ranks arrive" not in words


def test_a_file_that_could_not_be_read_stands_beside_the_events_kept(words: str) -> None:
    assert "; 1 file could not be read" in words
    assert "but 1 file could not be read" in words


def test_a_call_is_named_beside_an_idle_device_only_where_it_fills_that_time() -> None:
    # given one rank whose device is idle for 7 x 10 us: late launches, of which calls to launch fill a fifth, and
    # waits for a copy, which a copying call fills
    with store_of(Job(ranks=1, late_rank=0)) as store:
        store.execute(
            "INSERT INTO attribute.bottleneck BY NAME "
            "SELECT run_id, NULL AS rank, 1 AS place, 'late_launch' AS bound, TRUE AS is_avoidable, "
            "10000 AS duration_ns_per_iteration, 1.0 AS share, 'measured' AS basis FROM meta.run"
        )
        for cause, call, filled in (
            ("late_launch", "cudaLaunchKernel", 2_000),
            ("copy_wait", "cudaMemcpyAsync", 9_000),
        ):
            store.execute(
                "INSERT INTO timeline.gap SELECT run_id, 0, iteration, 0, 10000, ?, 10000, NULL, ?, ? "
                "FROM operation.judged_iteration",
                [cause, call, filled],
            )
        shown = re.sub(r"<[^>]+>", " ", build_report(store, run_id=1, versions={}, command=None).html)

    assert "Copy wait, in cudaMemcpyAsync" in shown
    assert "Late launch" in shown
    assert "in cudaLaunchKernel" not in shown


@pytest.mark.parametrize(("filled_ns", "is_told"), [(8_000, True), (1_000, False)], ids=["long calls", "short calls"])
def test_a_host_stall_that_is_a_call_of_another_thread_names_the_call(filled_ns: int, is_told: bool) -> None:
    # given one rank, all of whose lost time is a host stall: in each iteration its training thread and its device stand
    # still for 10 us, for 8 (or 1) of which another thread is inside of a call
    with store_of(Job(ranks=1, late_rank=0)) as store:
        store.execute(
            "UPDATE attribute.delay SET mode = 'runtime_control_plane', cause = 'host_stall', delay_ns = 9000"
            " WHERE rank = 0"
        )
        store.execute("DELETE FROM timeline.segment")
        store.execute(
            "INSERT INTO timeline.segment BY NAME SELECT run_id, iteration, 0 AS rank, 'idle' AS phase, "
            "'unnamed' AS activity, 0 AS start_ns, 10000 AS duration_ns, 0 AS hidden_communication_ns "
            "FROM operation.judged_iteration WHERE iteration = 3"
        )
        store.execute(
            "INSERT INTO timeline.gap SELECT run_id, 0, iteration, 0, 10000, 'late_launch', 10000, NULL, "
            "'hipLaunchKernel', ? FROM operation.judged_iteration WHERE iteration = 3",
            [filled_ns],
        )
        page = build_report(store, run_id=1, versions={}, command=None).html

    told = re.findall(r"Host stall: the training thread[^<]*", page.replace("\N{NO-BREAK SPACE}", " "))
    said = (
        "Host stall: the training thread stands still, for 80 % of that time while another thread is inside of calls to"
    )
    assert told == ([f"{said} hipLaunchKernel."] if is_told else [])
