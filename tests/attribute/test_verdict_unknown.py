"""Where recordings cannot tell, the verdict says so, says why, and accuses nobody."""

import json
from pathlib import Path

from tests.attribute.jobs import verdict_of
from tests.given import US, Trace, add_facts, built, data_parallel_job, rows_of
from tests.stories import told
from traceforge.store.database import Store


def test_who_waits_is_not_known_from_the_few_calls_that_have_a_partner() -> None:
    # given three ranks with a reduction in each of twelve iterations, and three sends before it whose receiver no trace
    # names
    traces = []
    for rank in range(3):
        trace = Trace(rank)
        for i in range(12):
            start = 110 * US * i
            trace.step(i, start, start + 110 * US).kernel(start, start + 50 * US)
            for at in (50, 60, 70):
                trace.collective(start + at * US, start + (at + 5) * US, op="send", elements=1_000)
            late = 20 * US if rank == 1 and i % 4 == 0 else 0
            trace.collective(start + 80 * US + late, start + 108 * US)
        traces.append(trace)

    with told(*traces) as store:
        (verdict,) = store.query("FROM attribute.verdict").to_dicts()
        findings = rows_of(store, "SELECT subject, confidence FROM attribute.finding")

    assert verdict["kind"] == "cannot_be_known"
    assert str(verdict["headline"]).startswith("Most calls of communication cannot be matched between ranks")
    assert findings == [("1", "low")]


def test_what_bounds_devices_is_said_also_where_ranks_cannot_be_compared() -> None:
    # given two ranks that never communicate; each device computes for 50 of 100 us and waits for launches
    traces = []
    for rank in range(2):
        trace = Trace(rank)
        for i, start in enumerate(range(0, 1_200 * US, 100 * US)):
            trace.step(i, start, start + 100 * US).kernel(start + 45 * US, start + 95 * US, launch_ns=start + 44 * US)
        traces.append(trace)

    verdict = verdict_of(*traces)

    assert str(verdict["headline"]).startswith("No communication between ranks was recorded")
    assert str(verdict["explanation"]).startswith("Where the time goes: ")
    assert "The device is busy 50 % of the step" in str(verdict["explanation"])
    assert "doctor" in str(verdict["next_step"])


def test_one_rank_tells_what_bounds_it_and_nothing_of_waiting() -> None:
    verdict = verdict_of(*data_parallel_job([[100 * US]] * 4))

    assert verdict["kind"] == "cannot_be_known"
    assert str(verdict["headline"]).startswith("Bound by its kernels: the device computes 100 %")
    assert "who waits for whom cannot be known" in str(verdict["explanation"])
    assert "What is said of its own step needs no other rank." in str(verdict["explanation"])
    assert "on all ranks" in str(verdict["next_step"])


def test_of_one_rank_of_which_only_steps_are_recorded_nothing_is_said_to_be_known() -> None:
    verdict = verdict_of(Trace().step(0, 0, 100 * US).step(1, 100 * US, 200 * US).step(2, 200 * US, 300 * US))

    assert str(verdict["headline"]).startswith("Nothing is known in each 100 µs step: no kernel")
    assert "who waits for whom cannot be known" in str(verdict["explanation"])
    assert "known all the same" not in str(verdict["explanation"])


def test_ranks_that_were_not_seen_to_communicate_tell_nothing_of_waiting() -> None:
    # given two ranks that compute for 100 and 60 us, without any collective
    traces = [Trace(rank).step(0, 0, 100 * US).kernel(0, end) for rank, end in enumerate((100 * US, 60 * US))]

    verdict = verdict_of(*traces)

    assert verdict["kind"] == "cannot_be_known"
    assert str(verdict["headline"]).startswith("No communication between ranks was recorded")


def test_collectives_without_certain_partners_tell_nothing_of_waiting() -> None:
    # given two ranks whose all-reduces differ in size
    traces = []
    for rank, elements in enumerate((1_000, 2_000)):
        trace = Trace(rank)
        for i in range(4):
            start = 110 * US * i
            trace.step(i, start, start + 110 * US).kernel(start, start + 100 * US)
            trace.collective(start + 100 * US, start + 110 * US, elements=elements)
        traces.append(trace)

    verdict = verdict_of(*traces)

    assert verdict["kind"] == "cannot_be_known"
    assert "cannot be matched with certainty" in str(verdict["headline"])


def test_ranks_without_a_common_iteration_cannot_be_compared() -> None:
    # given rank 0 that recorded steps 0 and 1, and rank 1 that recorded steps 5 and 6
    first, later = data_parallel_job([[100, 60]] * 2), data_parallel_job([[100, 60]] * 2, first_step=5)

    verdict = verdict_of(first[0], later[1])

    assert verdict["kind"] == "cannot_be_known"
    assert "No iteration was recorded in the same form by all ranks" in str(verdict["headline"])


def test_traces_without_steps_are_not_said_to_hold_iterations_of_other_forms() -> None:
    # given ranks that communicate and mark no step
    traces = data_parallel_job([[100, 60]] * 2)
    for trace in traces:
        trace.events = [event for event in trace.events if "ProfilerStep" not in str(event["name"])]

    verdict = verdict_of(*traces)

    assert verdict["kind"] == "cannot_be_known"
    assert str(verdict["headline"]).startswith("No step is marked")


def test_files_without_events_tell_nothing() -> None:
    with told() as store:
        rows = rows_of(store, "SELECT kind, headline FROM attribute.verdict")

    assert rows == [("cannot_be_known", "No file of this run holds a timeline.")]


def without_collectives(trace: Trace) -> Trace:
    """The trace as it would be had communication not been recorded."""
    trace.events = [event for event in trace.events if "nccl" not in str(event["name"])]
    trace.collectives = []
    return trace


def test_a_rank_that_cannot_be_placed_in_time_is_not_accused() -> None:
    # given rank 2, on a host of its own whose clock is 5 ms off, without a collective that would tie it
    #   rank 0   |compute 100·|t|
    #   rank 1   |60···|w 40··|t|
    #   rank 2   .   .   .   .   .   |70···|    (as its own clock has it)
    work, clocks = [[100 * US, 60 * US, 70 * US]] * 12, [0, 0, 5_000 * US]
    traces = data_parallel_job(work, transfer_ns=10 * US, clock_ns=clocks, hosts=["node0", "node0", "node1"])

    with told(*traces[:2], without_collectives(traces[2])) as store:
        accused = rows_of(store, "SELECT DISTINCT rank FROM attribute.delay WHERE rank = 2")
        verdicts = rows_of(store, "SELECT kind FROM attribute.verdict")

    # then it is charged with nothing, and the run is not called healthy
    assert accused == []
    assert verdicts == [("cannot_be_known",)]


def test_a_rank_whose_collectives_were_not_recorded_is_not_accused() -> None:
    # given rank 2 on the same host, whose clock is known, and who seems to idle where the others wait and transfer
    #   rank 0   |compute 100·|t|
    #   rank 1   |60···|w 40··|t|
    #   rank 2   |70····|idle···|
    traces = data_parallel_job([[100 * US, 60 * US, 70 * US]] * 12, transfer_ns=10 * US)

    with told(*traces[:2], without_collectives(traces[2])) as store:
        assert rows_of(store, "SELECT DISTINCT rank FROM attribute.delay WHERE rank = 2") == []


def test_what_was_read_of_a_run_without_times_is_named(tmp_path: Path) -> None:
    for host in "ab":
        (tmp_path / f"{host}.xml").write_text('<system version="1"><cpu numaid="0" arch="x86_64"/></system>')
    telemetry = "timestamp, index, clocks.sm [MHz]\n2026/03/03 12:00:00.000, 0, 1410 MHz\n"
    (tmp_path / "nvidia-smi.a.csv").write_text(telemetry)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        ((explanation,),) = rows_of(built(store, "attribute.verdict"), "SELECT explanation FROM attribute.verdict")

    assert str(explanation).startswith(
        "Read: 2 files of machines' topology (raw.nccl_topology_node) and 1 file of devices' telemetry "
        "(raw.telemetry_sample), which tell no times of ranks. "
    )


def inspected(rank: int, number: int, taken_us: int) -> str:
    """A line of NCCL's Inspector: one rank of two."""
    whole = {
        "header": {"id": "0xfeed", "rank": rank, "n_ranks": 2},
        "metadata": {"inspector_output_format_version": "v4.0"},
        "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_exec_time_us": taken_us},
    }
    return json.dumps(whole)


def explanation_of(folder: Path) -> str:
    with Store(None, is_kept=False) as store:
        add_facts(store, folder)
        ((explanation,),) = rows_of(built(store, "attribute.verdict"), "SELECT explanation FROM attribute.verdict")
    return str(explanation)


def test_who_came_last_to_what_the_inspector_timed_is_told(tmp_path: Path) -> None:
    # given three calls, to two of which rank 1 comes 200 us behind rank 0, and to one 100 us before it
    (tmp_path / "0.log").write_text("\n".join(inspected(0, n, 300 if n else 100) for n in range(3)) + "\n")
    (tmp_path / "1.log").write_text("\n".join(inspected(1, n, 100 if n else 200) for n in range(3)) + "\n")

    assert explanation_of(tmp_path).startswith(
        "NCCL's Inspector timed 3 collectives: in communicator 0xfeed the last rank came 200 µs behind the first "
        "(median), most often rank 1 within it, in 2 of 3 calls. "
    )


def test_a_rank_that_always_comes_last_by_milliseconds_leads_the_verdict(tmp_path: Path) -> None:
    # given 20 calls in which rank 0 waits 5 ms for rank 1
    (tmp_path / "0.log").write_text("\n".join(inspected(0, n, 5_100) for n in range(20)) + "\n")
    (tmp_path / "1.log").write_text("\n".join(inspected(1, n, 100) for n in range(20)) + "\n")

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        ((headline, kind),) = rows_of(built(store, "attribute.verdict"), "SELECT headline, kind FROM attribute.verdict")

    assert kind == "cannot_be_known"
    assert headline == (
        "Rank 1 comes last to 20 of 20 collectives of communicator 0xfeed, by NCCL's Inspector 5.00 ms behind the "
        "first (median): the others wait for it."
    )


def test_of_one_rank_s_inspector_nobody_is_told_to_be_last(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text(inspected(0, 7, 300) + "\n")

    assert explanation_of(tmp_path).startswith(
        "NCCL's Inspector timed 1 collective, none of them on all ranks of its communicator. "
    )
