"""Files that cannot be of one run become runs of their own, each with a name; none is left out without a word."""

import polars as pl
import pytest

from tests.given import MS, Trace, built, data_parallel_job, rows_of, store_of
from tests.graph.recordings import add_execution_trace, operation
from traceforge import api
from traceforge.align.runs import divided, split_runs
from traceforge.align.windows import window_numbers
from traceforge.cli.files_used import files_used, note_other_runs
from traceforge.store.database import Store

RUNS = """
SELECT r.run_name, LIST(s.path ORDER BY s.path) FROM meta.run AS r JOIN meta.source AS s USING (run_id)
GROUP BY r.run_id, r.run_name ORDER BY r.run_id
"""
HOUR = 3_600_000 * MS


def _at(path: str, rank: int | None, start_ns: int) -> Trace:
    return Trace(rank, path=path).step(0, start_ns, start_ns + 10 * MS).kernel(start_ns, start_ns + 5 * MS)


def _split(*traces: Trace) -> Store:
    store = store_of(*traces)
    split_runs(store, 0)
    return store


def test_windows_of_one_rank_are_runs_in_order_of_time() -> None:
    # a profiler whose schedule repeats: both ranks, an hour apart
    store = _split(*(_at(f"r{rank}w{n}", rank, 1 + n * HOUR) for rank in (0, 1) for n in (0, 1)))

    assert rows_of(store, RUNS) == [("story", ["r0w0", "r1w0"]), ("story [window 2]", ["r0w1", "r1w1"])]
    assert rows_of(store, "SELECT code, count FROM meta.issue") == [("runs_divided", 2)]


def test_windows_end_where_a_rank_begins_anew_however_soon_and_however_clocks_differ() -> None:
    # given windows of 10 ms each, 5 ms apart, on ranks 0 and 1, in ms
    def numbers(*files: tuple[int, int]) -> list[int]:
        return window_numbers([(rank, start * MS, (start + 10) * MS) for rank, start in files])

    # then the second file of a rank is of the second window; one that a rank lacks is its own
    assert numbers((0, 0), (1, 2), (0, 15), (1, 17)) == [0, 0, 1, 1]
    assert numbers((0, 0), (0, 15), (1, 17)) == [0, 1, 1]
    assert numbers((0, 0), (0, 15), (1, 17), (1, 32)) == [0, 1, 1, 2]
    # and where rank 1's clock is an hour ahead, files are counted
    assert numbers((0, 0), (0, 15), (1, 3_600_000), (1, 3_600_015)) == [0, 1, 0, 1]
    # and copies that were recorded at one time stay together
    assert numbers((0, 0), (0, 1), (1, 2), (0, 15)) == [0, 0, 0, 1]


def test_the_run_with_most_ranks_keeps_the_name() -> None:
    store = _split(_at("early", 0, 1), _at("late0", 0, HOUR), _at("late1", 1, HOUR))

    assert rows_of(store, RUNS) == [("story", ["late0", "late1"]), ("story [window 1]", ["early"])]


def test_files_that_an_earlier_job_left_on_a_host_are_a_run_of_their_own() -> None:
    # given ranks 2 and 3 of a job of four, and an hour later, over its first files, a job of two, on one host
    now = 2 * 10**18
    store = store_of(*(_at(f"rank{rank}", rank, now + (HOUR if rank < 2 else 0)) for rank in range(4)))
    store.execute("UPDATE raw.profile SET world_size = CASE WHEN source_id < 2 THEN 2 ELSE 4 END")

    split_runs(store, 0)

    # then the later job is whole, and comes first
    assert rows_of(store, RUNS) == [("story", ["rank0", "rank1"]), ("story [window 1]", ["rank2", "rank3"])]
    assert rows_of(store, "SELECT world_size FROM meta.run ORDER BY run_id") == [(2,), (4,)]


def test_files_of_other_times_stay_together_where_clocks_may_differ() -> None:
    # given an hour between two hosts, between files that state none, or between clocks that count from a boot
    now = 2 * 10**18
    of_hosts, unstated, booted = ([_at("rank0", 0, at), _at("rank1", 1, at + HOUR)] for at in (now, now, 1))
    of_hosts[1].host = "node1"
    for trace in unstated:
        trace.host = None

    for traces in (of_hosts, unstated, booted):
        assert len(rows_of(_split(*traces), RUNS)) == 1


def test_jobs_of_one_time_in_folders_of_their_own_are_runs_by_folder() -> None:
    store = _split(*(_at(f"job/{name}/rank{rank}.json", rank, 1) for name in ("a", "b") for rank in (0, 1)))

    assert rows_of(store, RUNS) == [
        ("story", ["job/a/rank0.json", "job/a/rank1.json"]),
        ("story [b]", ["job/b/rank0.json", "job/b/rank1.json"]),
    ]


def test_jobs_of_one_time_and_folder_are_runs_by_host_where_each_has_all_ranks() -> None:
    # given two ranks of either host, which PyTorch's handler names by host and process
    jobs = [(f"job/{host}_{70 + rank}.1700000000000000000.pt.trace.json", rank) for host in "ab" for rank in (0, 1)]
    of_host = [_at(path, rank, 1) for path, rank in jobs]
    for trace, (path, _) in zip(of_host, jobs, strict=True):
        trace.host = path[4]
    first, second = [path for path, _ in jobs[:2]], [path for path, _ in jobs[2:]]

    assert rows_of(_split(*of_host), RUNS) == [("story", first), ("story [job, host b]", second)]
    # and of one rank each, what a name calls a host may be none: one file is left out, as a copy is
    assert len(rows_of(_split(of_host[0], of_host[2]), RUNS)) == 1
    # and where a rank is of one host alone, they are of one job, of which some files are copies
    of_host[3].rank = 2
    assert rows_of(_split(*of_host), RUNS) == [("story", [path for path, _ in jobs])]


@pytest.mark.parametrize("second_device", [1, 0])
def test_windows_of_files_without_a_rank_are_runs_where_each_tells_its_ranks_apart(second_device: int) -> None:
    # given a profiler whose schedule repeats, an hour apart, in two processes of a host, with nothing else but devices
    starts = [1, 1 + HOUR]
    names = [[f"a_{process}.17000000{n}0.pt.trace.json" for process in (70, 71)] for n in range(len(starts))]
    traces = [
        Trace(None, path=name, host="a").event("kernel", "gemm", start, start + 5 * MS, device=device)
        for start, window in zip(starts, names, strict=True)
        for name, device in zip(window, (0, second_device), strict=True)
    ]

    found = rows_of(_split(*traces), RUNS)
    if second_device:
        assert found == [("story", names[0]), ("story [window 2]", names[1])]
    else:
        # of processes on one device that do not communicate each is alone
        assert len(found) == len(traces)


def _runs(*said: dict[str, object]) -> list[tuple[str, list[int]]]:
    """Runs of files of one host that overlap: what tells each from others, and the places of its files."""
    files = [{"source_id": n, "host": "a", "raw_first_ns": 1, "raw_last_ns": HOUR, "communicates": True, **one}
             for n, one in enumerate(said)]  # fmt: skip
    kinds = dict.fromkeys(
        ("rank", "process", "stated_ranks", "world_size", "job_size", "first_device", "last_device", "job"), pl.Int64
    )
    overrides = {
        **kinds,
        "job": pl.String,
        "communicators": pl.List(pl.String),
        "rank_origin": pl.String,
        "member_lists": pl.List(pl.String),
    }
    frame = pl.DataFrame(files, schema_overrides=overrides)
    missing = [pl.lit(None, kind).alias(name) for name, kind in overrides.items() if name not in frame.columns]
    return [(run.label, list(run.files)) for run in divided(frame.with_columns(missing))]


def test_windows_of_names_that_count_the_ranks_of_each_host_are_runs_of_all_hosts() -> None:
    # given a profiler whose schedule repeats on two hosts of two ranks, which name each file by host and local rank
    said = [
        {"path": f"job/node{host}/w{window}_rank{rank}.json", "rank": rank, "rank_origin": "file_name",
         "stated_ranks": 4, "host": f"node{host}", "raw_first_ns": 2 * window * HOUR + 1,
         "raw_last_ns": (2 * window + 1) * HOUR}
        for window in (0, 1) for host in (0, 1) for rank in (0, 1)
    ]  # fmt: skip

    assert _runs(*said) == [("window 1", [0, 1, 2, 3]), ("window 2", [4, 5, 6, 7])]


def test_windows_of_names_that_hold_places_on_parallel_axes_are_runs_of_all_ranks() -> None:
    # given what SGLang writes of its two phases, an hour apart, without a rank inside
    said = [{"path": f"1753.{n}-TP-{tp}-{phase}.trace.json.gz", "raw_first_ns": at, "raw_last_ns": at + HOUR}
            for n, (phase, at) in enumerate((("EXTEND", 1), ("DECODE", 2 * HOUR))) for tp in (0, 1)]  # fmt: skip

    assert _runs(*said) == [("window 1", [0, 1]), ("window 2", [2, 3])]


def test_of_two_launches_the_later_keeps_the_name_but_for_one_of_fewer_ranks() -> None:
    # given what PyTorch's handler wrote on two days, the second time of both ranks or one
    now = 1_767_268_800 * 10**9

    def of_days(later_ranks: int) -> list[tuple[str, list[int]]]:
        ranks = ((0, range(2)), (24 * HOUR, range(later_ranks)))
        return _runs(*(
            {"path": f"a_{7 + rank + day // HOUR}.17.pt.trace.json", "rank": rank, "raw_first_ns": now + day,
             "raw_last_ns": now + day + 1}
            for day, own in ranks for rank in own
        ))  # fmt: skip

    assert of_days(2) == [("window 2", [2, 3]), ("earlier job of 2026-01-01 12:00 UTC, window 1", [0, 1])]
    assert of_days(1) == [("window 1", [0, 1]), ("later job of 2026-01-02 12:00 UTC, window 2", [2])]


def test_replicas_of_an_engine_that_count_ranks_anew_are_runs_of_their_own() -> None:
    said = [{"path": f"dp{dp}_pp0_tp{tp}_rank{tp}.17.json", "rank": tp, "rank_origin": "metadata", "stated_ranks": 2}
            for dp in (0, 1) for tp in (0, 1)]  # fmt: skip

    assert _runs(*said) == [("DP 0", [0, 1]), ("DP 1", [2, 3])]


def test_jobs_of_one_rank_each_in_one_folder_are_runs_by_process() -> None:
    # given a sweep: every file states rank 0 of 1, the process is in the handler's name
    sweep = [{"path": f"sweep/a_{70 + n}.170000000000.pt.trace.json", "rank": 0, "stated_ranks": 1} for n in range(3)]

    assert _runs(*sweep) == [(f"sweep, process {70 + n}", [n]) for n in range(3)]
    # and where two tools recorded one process, or a size is not stated, one run has both
    assert _runs(*({**one, "process": 7} for one in sweep[:2])) == [("sweep", [0, 1])]
    assert _runs(*({**one, "stated_ranks": None} for one in sweep[:2])) == [("sweep", [0, 1])]


def _at_once(*processes: int, ranks: tuple[int, ...]) -> list[tuple[str, list[int]]]:
    """Runs of files of one host and time, of a process and rank each, called as PyTorch's handler calls them."""
    return _runs(*({"path": f"log/a_{process}.170000000000.pt.trace.json", "rank": rank}
                   for process, rank in zip(processes, ranks, strict=True)))  # fmt: skip


def test_jobs_of_one_size_and_time_on_one_host_are_told_by_the_numbers_of_their_processes() -> None:
    # given ranks 0 and 1 of two launches, each of which starts its processes one after another
    assert _at_once(998, 1003, 999, 1002, ranks=(0, 1, 1, 0)) == [
        ("log, processes 998 to 999", [0, 2]),
        ("log, processes 1002 to 1003", [1, 3]),
    ]
    # and a copy of a rank's file goes with its process
    assert _at_once(7, 8, 8, 20, 21, ranks=(0, 1, 1, 0, 1))[0] == ("log, processes 7 to 8", [0, 1, 2])
    # and processes that were started by turns, of unlike ranks, or under two ranks tell nothing
    assert _at_once(1, 2, 3, 4, ranks=(0, 0, 1, 1)) == [("log", [0, 1, 2, 3])]
    assert _at_once(1, 2, 3, 4, ranks=(0, 1, 0, 2)) == [("log", [0, 1, 2, 3])]
    assert _at_once(1, 2, 2, 3, ranks=(1, 0, 1, 0)) == [("log", [0, 1, 2, 3])]
    # nor do two files of one rank alone, which may be of a helper of it
    assert _at_once(1, 2, ranks=(0, 0)) == [("log", [0, 1])]


def _sized(*sizes: int | None, ranks: tuple[int, ...], **more: object) -> list[dict[str, object]]:
    stated = {"rank_origin": "metadata", **more}
    return [{"path": f"{n}.json", "rank": rank, "job_size": size, "stated_ranks": size, **stated}
            for n, (size, rank) in enumerate(zip(sizes, ranks, strict=True))]  # fmt: skip


def test_jobs_of_one_time_that_state_different_sizes_are_runs_of_their_own() -> None:
    # given two ranks of a job of two beside four of four, on one host
    assert _runs(*_sized(2, 2, 4, 4, 4, 4, ranks=(0, 1, 0, 1, 2, 3))) == [
        ("job of 4 ranks", [2, 3, 4, 5]),
        ("job of 2 ranks", [0, 1]),
    ]
    # and a file that states no size is of the only job that lacks its rank, else of the largest
    assert _runs(*_sized(2, None, 4, 4, 4, None, ranks=(0, 1, 0, 1, 2, 3)))[0] == ("job of 4 ranks", [2, 3, 4, 5])
    assert _runs(*_sized(2, 2, 4, 4, None, None, ranks=(0, 1, 0, 1, 2, 3)))[0] == ("job of 4 ranks", [2, 3, 4, 5])
    # and one size, stated by some, divides nothing; nor does one that calls of more ranks deny
    assert _runs(*_sized(2, None, ranks=(0, 1))) == [("files", [0, 1])]
    assert _runs(*_sized(4, 4, ranks=(0, 1)), *_sized(1, 1, ranks=(2, 3), stated_ranks=4))[0][0] == "files"


def test_ranks_of_another_job_are_told_by_its_size_where_no_rank_repeats() -> None:
    # given ranks 0 and 1 of two, and rank 2 of eight
    store = store_of(*(_at(f"rank{rank}", rank, 1) for rank in range(3)))
    store.execute("UPDATE raw.profile SET world_size = IF(source_id = 2, 8, 2)")

    split_runs(store, 0)

    assert rows_of(store, RUNS) == [("story", ["rank0", "rank1"]), ("story [job of 8 ranks]", ["rank2"])]
    assert rows_of(store, "SELECT world_size FROM meta.run ORDER BY run_id") == [(2,), (8,)]


def test_reports_of_nsight_are_not_divided_by_the_largest_communicator_that_each_saw_begin() -> None:
    # given the same, and a rank that repeats, so that files are looked at one by one
    store = store_of(*(_at(f"{'ab'[copy]}/rank{rank}", rank, 1) for copy in (0, 1) for rank in range(3)))
    store.execute("UPDATE raw.profile SET world_size = IF(source_id % 3 = 2, 8, 2)")
    store.execute("UPDATE meta.source SET kind = 'nsys'")

    split_runs(store, 0)

    assert {tuple(files) for _, files in rows_of(store, RUNS) if isinstance(files, list)} == {
        tuple(f"{folder}/rank{rank}" for rank in range(3)) for folder in "ab"
    }


def test_a_file_without_a_rank_is_analysed_alone() -> None:
    store = built(_split(_at("rank0", 0, 1), _at("rank1", 1, 1), _at("x/stray.json", None, 1)), "align")

    assert rows_of(store, RUNS) == [("story", ["rank0", "rank1"]), ("story [file stray.json]", ["x/stray.json"])]
    assert rows_of(store, "SELECT run_id, rank FROM align.rank ORDER BY ALL") == [(0, 0), (0, 1), (1, 0)]
    assert rows_of(store, "SELECT DISTINCT is_used, reason FROM align.file") == [(True, None)]


def test_a_job_of_one_file_a_rank_and_files_told_apart_by_devices_stay_one_run() -> None:
    one = _split(_at("rank0", 0, 1), _at("rank1", 1, HOUR))
    assert len(rows_of(one, RUNS)) == 1

    devices = [
        Trace(None, path=name).event("kernel", "gemm", 1, 9, device=device) for name, device in (("a", 0), ("b", 1))
    ]
    assert len(rows_of(_split(*devices), RUNS)) == 1


def test_reports_of_several_devices_are_runs_by_report() -> None:
    # given two reports of one host, each with devices 0 and 1, and nothing that states a rank
    parts = [
        Trace(None, path=f"job/{name}.sqlite/device {device}").event("kernel", "gemm", start, start + 8, device=device)
        for name, start in (("after", HOUR), ("before", 1))
        for device in (0, 1)
    ]

    store = built(_split(*parts), "align")

    assert rows_of(store, RUNS) == [
        ("story", ["job/after.sqlite/device 0", "job/after.sqlite/device 1"]),
        ("story [before.sqlite]", ["job/before.sqlite/device 0", "job/before.sqlite/device 1"]),
    ]
    assert rows_of(store, "SELECT run_id, rank FROM align.rank ORDER BY ALL") == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_files_of_one_device_without_a_rank_are_runs_of_their_own() -> None:
    # given two rankless files of one folder that used the same device, so that nothing says which rank each is
    files = [Trace(None, path=f"job/{n}").event("kernel", "gemm", n, n + 8, device=0) for n in (1, 2)]

    assert [len(paths) for _, paths in rows_of(_split(*files), RUNS)] == [1, 1]  # type: ignore[arg-type]


def test_dividing_again_changes_nothing_and_takes_up_what_is_new() -> None:
    store = _split(*(_at(f"w{n}", 0, 1 + n * HOUR) for n in (0, 1)))
    before = rows_of(store, RUNS)

    split_runs(store, 0)

    assert rows_of(store, RUNS) == before
    assert rows_of(store, "SELECT code, count FROM meta.issue") == [("runs_divided", 1)]
    assert api.run_id(store, None) == 0


def test_what_is_used_is_said_first_with_the_reasons_and_the_other_runs() -> None:
    # given two ranks, a copy of rank 1 beside it, and a window of rank 0 an hour later
    first, second = data_parallel_job([[5 * MS, 5 * MS]] * 3)
    copy = data_parallel_job([[5 * MS, 5 * MS]] * 3)[1]
    first.path, second.path, copy.path = "rank0.json", "rank1.json", "rank1 (1).json"
    store = built(_split(first, second, copy, _at("later.json", 0, HOUR)), "align")

    assert files_used(store, 0) == [
        "2 of 4 files used",
        "  left out: rank1 (1).json: another file is used for rank 1",
        "  other run: 1 file of run `story [window 2]`: see it with --run",
    ]
    assert files_used(store, 0, in_all_runs=True)[0] == "3 of 4 files used in 2 runs"


def test_an_answer_about_one_of_several_runs_says_which_unless_it_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = built(_split(_at("rank0.json", 0, 1), _at("later.json", 0, HOUR)), "align")

    note_other_runs(store, 0, None, "--run-b")
    assert capsys.readouterr().err == "this is about run `story`; --run-b takes `story [window 2]`\n"

    note_other_runs(store, 0, None, "--baseline-run", lead="the baseline is")
    assert capsys.readouterr().err == "the baseline is run `story`; --baseline-run takes `story [window 2]`\n"

    note_other_runs(store, 0, "story")
    note_other_runs(built(_split(_at("rank0", 0, 1), _at("rank1", 1, 1)), "align"), 0, None)
    assert capsys.readouterr().err == ""


def test_where_every_file_is_used_nothing_is_said() -> None:
    assert files_used(built(_split(_at("rank0", 0, 1), _at("rank1", 1, 1)), "align"), 0) == []


def test_execution_traces_of_two_workloads_are_two_runs() -> None:
    # no timeline: folder a holds ranks 0 and 1, folder b another rank 0
    store = store_of()
    for path, rank in (("a/0.et", 0), ("a/1.et", 1), ("b/0.et", 0)):
        source_id = add_execution_trace(store, [operation("aten::mm", 1)], rank=rank)
        store.execute("UPDATE meta.source SET path = ? WHERE source_id = ?", [path, source_id])
    split_runs(store, 0)

    assert rows_of(store, RUNS) == [("story", ["a/0.et", "a/1.et"]), ("story [b]", ["b/0.et"])]
    assert rows_of(store, "SELECT code, count FROM meta.issue") == [("runs_divided", 1)]
