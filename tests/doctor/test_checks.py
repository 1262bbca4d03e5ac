"""What is missing is said with the setting that records it; what is there is called complete; nothing else is asked."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.doctor.examined import built_for_doctor
from tests.given import MS, Trace, add_facts, add_run, data_parallel_job, store_of
from tests.live.jobs import record_job
from traceforge.doctor import CHECKS, Examination, Status, examine
from traceforge.doctor.facts import Facts, read_facts
from traceforge.store.database import Store

Found = dict[str, dict[str, Examination]]


def examined(store: Store, run_id: int = 0) -> dict[str, Examination]:
    return {one.check.code: one for one in examine(store, run_id)}


def job(ranks: int = 4, iterations: int = 12) -> list[Trace]:
    return data_parallel_job([[50 * MS + rank for rank in range(ranks)] for _ in range(iterations)], transfer_ns=5 * MS)


def shifted_windows() -> list[Trace]:
    """Rank 0 records steps 0 to 5, and rank 1 steps 3 to 8."""
    first, second = data_parallel_job([[50 * MS, 50 * MS]] * 9, transfer_ns=5 * MS)
    first.events = [event for event in first.events if int(str(event["raw_start_ns"])) < 6 * 55 * MS]
    second.events = [event for event in second.events if int(str(event["raw_start_ns"])) >= 3 * 55 * MS]
    return [first, second]


@pytest.fixture(scope="module")
def found() -> Found:
    """What the checks find in each of several runs of one database, by the run's name."""
    jobs = {
        "whole": (4, job()),
        "two_of_eight": (8, job(ranks=2)),
        "one_of_four": (4, job(ranks=1)),
        "three_steps": (4, job(iterations=3)),
        "shifted": (2, shifted_windows()),
        "unmarked": (2, [Trace(rank).kernel(0, 50).collective(50, 60) for rank in range(2)]),
    }
    with Store(None, threads=1, is_kept=False) as store:
        runs = {name: add_run(store, *traces, run_name=name, world_size=size) for name, (size, traces) in jobs.items()}
        built_for_doctor(store)
        return {name: examined(store, run_id) for name, run_id in runs.items()}


@pytest.fixture
def whole(found: Found) -> dict[str, Examination]:
    return found["whole"]


def test_a_job_recorded_well_is_complete_in_what_counts(whole: dict[str, Examination]) -> None:
    for code in ("timeline", "rank_known", "all_ranks", "steps", "iterations", "common_window", "devices"):
        assert whole[code].status is Status.complete, whole[code].evidence
    for code in ("communication", "matching", "clocks", "sizes", "whole_files", "hosts"):
        assert whole[code].status is Status.complete, whole[code].evidence


def test_what_was_not_recorded_is_missing_with_its_setting(whole: dict[str, Examination]) -> None:
    for code, setting in (
        ("nccl_log", "NCCL_DEBUG=INFO"),
        ("nccl_choices", "TUNING"),
        ("process_groups", "group_desc"),
        ("execution_traces", "ExecutionTraceObserver"),
        ("telemetry", "nvidia-smi --query-gpu=timestamp"),
        ("shapes", "record_shapes=True"),
    ):
        assert whole[code].status is Status.missing, code
        assert setting in whole[code].check.setting


def test_users_of_another_backend_are_not_told_to_record_nccl() -> None:
    # given a job on devices whose traces state another library
    store = built_for_doctor(store_of(*job(ranks=2), world_size=2))
    store.execute("UPDATE raw.profile SET backend = 'hccl'")

    found = examined(store)

    for code in ("nccl_log", "nccl_choices"):
        assert found[code].status is Status.not_needed
        assert "hccl" in found[code].evidence


def test_a_few_calls_without_a_size_change_no_answer() -> None:
    # given 48 calls
    store = built_for_doctor(store_of(*job(), world_size=4))
    calls = store.value("SELECT COUNT(*) FROM align.call")
    sized = store.value("SELECT COUNT(size_bytes) FROM align.call")
    assert calls == sized == 48
    facts = read_facts(store, 0)

    verdicts = [_status_of("sizes", replace(facts, sized=count)) for count in (48, 46, 24, 0)]

    assert verdicts == [Status.complete, Status.complete, Status.partial, Status.missing]


def test_nobody_is_told_to_record_groups_of_kernels_that_no_version_of_pytorch_records() -> None:
    # given of each rank one call of NCCL that states its group, and kernels of an engine's own all-reduce
    kernel = "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)"
    traces = [Trace(rank).collective(50, 60, group="0", ranks=(0, 1)) for rank in range(2)]
    for trace in traces:
        trace.kernel(0, 20, "gemm").kernel(20, 30, kernel).kernel(30, 40, kernel)
    with store_of(*traces, world_size=2) as store:
        found = examined(built_for_doctor(store))

    assert found["process_groups"].status is Status.complete
    assert found["process_groups"].evidence == (
        "2 of 2 calls with a process group stated, beside 4 calls of libraries, or in CUDA graphs, "
        "that PyTorch does not record"
    )
    assert found["sizes"].status is Status.complete


def test_where_pytorch_records_no_call_nothing_is_asked_about_calls() -> None:
    kernel = "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)"
    traces = [Trace(rank).kernel(0, 20).kernel(20, 30, kernel) for rank in range(2)]
    with store_of(*traces, world_size=2) as store:
        found = examined(built_for_doctor(store))

    assert {found[code].status for code in ("process_groups", "sequence_numbers", "sizes")} == {Status.not_needed}


def test_shapes_are_not_asked_for_where_linked_execution_traces_state_them() -> None:
    store = built_for_doctor(store_of(*job(ranks=2), world_size=2))
    facts = read_facts(store, 0)

    verdicts = [_status_of("shapes", replace(facts, linked_ranks=count)) for count in (0, 1, 2)]

    assert verdicts == [Status.missing, Status.missing, Status.not_needed]


def _status_of(code: str, facts: Facts) -> Status:
    (check,) = (one for one in CHECKS if one.code == code)
    return check.look(facts).status


@pytest.mark.parametrize(
    ("code", "alone", "several"),
    [
        ("timeline", "1 profiler trace", "2 profiler traces"),
        ("steps", "1 step marked by the profiler", "2 steps marked by the profiler"),
        ("communication", "1 call of collectives", "2 calls of collectives"),
        ("sequence_numbers", "1 of 1 call with a sequence number", "2 of 2 calls with a sequence number"),
        ("nccl_log", "1 NCCL log with 1 connection", "2 NCCL logs with 2 connections"),
        ("nccl_choices", "1 choice of algorithm and protocol", "2 choices of algorithm and protocol"),
        ("execution_traces", "1 execution trace", "2 execution traces"),
        ("shapes", "1 of 1 rank recorded with shapes", "2 of 2 ranks recorded with shapes"),
        ("whole_files", "1 event lost (cut_off); see meta.issue", "2 events lost (cut_off); see meta.issue"),
    ],
)
def test_one_of_a_thing_is_told_in_the_singular(code: str, alone: str, several: str) -> None:
    with built_for_doctor(store_of(*job(ranks=2, iterations=2))) as store:
        facts = read_facts(store, 0)
    (check,) = (one for one in CHECKS if one.code == code)
    counts = (
        "timelines",
        "iterations",
        "calls",
        "recorded_calls",
        "sequenced",
        "nccl_logs",
        "nccl_links",
        "nccl_choices",
        "ranks",
    )
    counts += ("execution_traces", "linked_ranks", "shaped", "lost_events")

    said = [check.look(replace(facts, damage="cut_off", **dict.fromkeys(counts, n))).evidence for n in (1, 2)]

    assert said == [alone, several]


def test_a_file_that_lost_no_whole_event_is_not_told_to_have_lost_some() -> None:
    with built_for_doctor(store_of(*job(ranks=2, iterations=2))) as store:
        facts = read_facts(store, 0)
    (check,) = (one for one in CHECKS if one.code == "whole_files")

    assert check.look(replace(facts, damage="cut_off")).evidence == "cut or repaired (cut_off); see meta.issue"


def test_missing_ranks_are_named(found: Found) -> None:
    ranks = found["two_of_eight"]["all_ranks"]
    assert (ranks.status, ranks.evidence) == (Status.partial, "2 of 8 ranks; missing: 2, 3, 4, 5, 6, 7")


def test_one_rank_of_many_cannot_tell_who_waits(found: Found) -> None:
    alone = found["one_of_four"]
    assert alone["all_ranks"].status is Status.missing
    assert alone["matching"].status is Status.blocked
    assert alone["common_window"].status is Status.not_needed


def test_few_iterations_are_partial(found: Found) -> None:
    iterations = found["three_steps"]["iterations"]
    assert iterations.status is Status.partial
    assert iterations.evidence.startswith("3 iterations count")


def test_windows_that_do_not_overlap_are_told(found: Found) -> None:
    window = found["shifted"]["common_window"]
    assert window.status is Status.partial
    assert window.evidence == "6 of 9 iterations were not recorded by all ranks"


def test_unmarked_steps_are_told(found: Found) -> None:
    assert found["unmarked"]["steps"].status is Status.missing


@pytest.mark.parametrize(("name", "status"), [("train {}", Status.complete), ("train", Status.partial)])
def test_steps_that_an_annotation_counts_are_marked_and_those_that_it_repeats_guessed(
    name: str, status: Status
) -> None:
    traces = [Trace(rank) for rank in range(2)]
    for trace in traces:
        for n in range(4):
            start = 100 * n
            trace.host_work(name.format(n), start, start + 90, "user_annotation").kernel(start, start + 50)
            trace.collective(start + 50, start + 60)
    store = built_for_doctor(store_of(*traces))

    assert examined(store)["steps"].status is status


def test_files_without_a_rank_come_first_and_block_the_rest() -> None:
    # given a trace that states no rank, named so that nobody can guess it
    store = built_for_doctor(store_of(Trace(None, path="a.json").step(0, 0, 90).kernel(0, 50)))
    store.execute("UPDATE meta.source SET rank = NULL")
    store = built_for_doctor(store)
    store.execute("DELETE FROM align.rank")
    found = examined(store)
    assert found["rank_known"].status is Status.missing
    assert found["iterations"].status is Status.blocked
    assert found["communication"].status is Status.blocked


def test_an_empty_run_is_examined_without_a_fault() -> None:
    with Store(None, is_kept=False) as store:
        store.execute("INSERT INTO meta.run VALUES (0, 'empty', NULL)")
        found = examined(built_for_doctor(store))
    assert found["timeline"].status is Status.missing
    assert all(isinstance(one.evidence, str) and one.evidence for one in found.values())


def test_every_check_has_a_name_a_question_and_a_remedy() -> None:
    assert len({check.code for check in CHECKS}) == len(CHECKS) >= 15
    assert all(check.question.endswith("?") and check.remedy.endswith(".") for check in CHECKS)
    assert len(fields(Facts)) > 20


def test_what_a_recording_reads_of_its_own_device_is_telemetry(tmp_path: Path) -> None:
    # given two ranks that read the clocks of their devices once a step, and no file of another tool
    record_job(tmp_path, ranks=2, clocks_mhz=[1_755, 1_755])

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        facts = read_facts(built_for_doctor(store), 0)

    assert (facts.telemetry_files, facts.telemetry_ranks) == (2, 2)
