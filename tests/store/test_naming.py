"""Whose trace a file is: what it says itself, else its name, else its folder."""

from pathlib import Path

import pytest

from traceforge.errors import UsageError
from traceforge.records import SourceSummary
from traceforge.store.naming import host_in_name, identify, rank_pattern


def _silent(**said: object) -> SourceSummary:
    said = {"kind": "kineto", "rank": None, "host": None, "world_size": None, **said}
    return SourceSummary(event_count=1, stored_count=1, **said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("traces/rank3.json.gz", 3),
        ("traces/rank_3.json", 3),
        ("traces/trace-rank-12.pt.trace.json", 12),
        ("traces/global_rank7.json", 7),
        ("traces/deepseek-r1_rank3.json", 3),
        ("deepseek-r1/r3.json", 3),
        ("traces/run-r3.json.gz", 3),
        ("traces/worker0.1698955063.pt.trace.json.gz", 0),
        ("traces/step_5_r2.json", 2),
        ("traces/RANK_004.json", 4),
        ("traces/primus-megatron-exp[llama2-70b-run1]-rank[3].1759996800.pt.trace.json.gz", 3),
        ("traces/lora_r64_rank[3].pt.trace.json", 3),
        ("traces/hosts_worker[0-7]_rank3.json", 3),
        ("traces/crank[7]_rank3.json", 3),
        ("traces/dp0_pp0_tp1_dcp0_ep1_rank1.1772953200.pt.trace.json.gz", 1),
    ],
)
def test_a_file_name_tells_the_rank(path: str, rank: int) -> None:
    identity = identify(Path(path), _silent())

    assert (identity.rank, identity.rank_origin) == (rank, "file_name")


@pytest.mark.parametrize(
    "path", ["run/rank5/trace.json", "r5/trace.json", "run/global_rank_5/node7_4711.pt.trace.json"]
)
def test_else_the_folder_tells_the_rank(path: str) -> None:
    identity = identify(Path(path), _silent())

    assert (identity.rank, identity.rank_origin) == (5, "folder_name")


@pytest.mark.parametrize(
    "path", ["run/rank5/plugins/profile/2026_11_27/node7.xplane.pb", "rank1/run/global_rank_5/day/node7.xplane.pb"]
)
def test_else_the_nearest_folder_above_that_is_named_as_a_rank_does(path: str) -> None:
    identity = identify(Path(path), _silent())

    assert (identity.rank, identity.rank_origin) == (5, "folder_name")


@pytest.mark.parametrize(
    "path",
    [
        *("deepseek-r1/trace.0.json", "deepseek-r1_et_0.json", "train_r2/trace.json"),
        *("run/trace.json", "run/frank3.json", "run/4711.json", "run/rank.json", "exp-r[16]/run_r[1e-4].json"),
        *("run_r2/day/trace.json", "best_of_rank3/day/trace.json", "rank3_of_4/day/trace.json"),
    ],
)
def test_a_name_without_a_rank_leaves_it_unknown(path: str) -> None:
    identity = identify(Path(path), _silent())

    assert (identity.rank, identity.rank_origin) == (None, "unknown")


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("_dump_13", 13),
        ("nccl_trace_rank_7", 7),
        ("comm_lib_trace_rank_7.json", 7),
        ("12", 12),
        ("rank2_of_job_4.pkl.gz", 4),
    ],
)
def test_a_flight_recorder_dump_ends_with_its_rank_whatever_stands_before(name: str, rank: int) -> None:
    identity = identify(Path("run/rank5") / name, _silent(kind="flight_recorder"))

    assert (identity.rank, identity.rank_origin) == (rank, "file_name")


def test_the_number_at_the_end_of_other_files_is_no_rank() -> None:
    assert identify(Path("_dump_13"), _silent()).rank is None


def test_what_the_file_says_outweighs_its_name() -> None:
    identity = identify(Path("rank3.json"), _silent(rank=6))

    assert (identity.rank, identity.rank_origin) == (6, "metadata")


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("node7_4711.1698955063.pt.trace.json.gz", "node7"),
        ("node7_4711.pt.trace.json", "node7"),
        ("ip-10-0-0-1_9.1698955063123456789.pt.trace.json", "ip-10-0-0-1"),
        ("my_gpu_box_4711.1698955063.pt.trace.json", "my_gpu_box"),
    ],
)
def test_names_that_pytorchs_own_handler_writes_tell_the_host(name: str, host: str) -> None:
    # torch.profiler.tensorboard_trace_handler: {hostname}_{pid}.{time in ns}.pt.trace.json[.gz]
    assert host_in_name(name) == host


@pytest.mark.parametrize(
    "name",
    ["rank3.json", "trace.json", "worker0.1698955063.pt.trace.json", "rank_0.1698955063.pt.trace.json",
     "worker_12.1698955063.pt.trace.json.gz", "Global_Rank_3.pt.trace.json"],
)  # fmt: skip
def test_a_worker_name_that_only_counts_ranks_is_no_host(name: str) -> None:
    # Ranks on many nodes would else seem to share one host named `rank`, and with it one clock.
    assert host_in_name(name) is None


def test_the_host_that_the_file_states_outweighs_its_name() -> None:
    identity = identify(Path("node7_4711.1698955063.pt.trace.json"), _silent(host="node8"))

    assert identity.host == "node8"


@pytest.mark.parametrize(
    ("pattern", "path", "rank", "origin"),
    [
        (r"gpu(\d+)", "run/node1-gpu5.json", 5, "rank_regex"),
        (r"(?P<host>node\d+)-gpu(?P<rank>\d+)", "run/node1-gpu5.json", 5, "rank_regex"),
        (r"^run/(\d+)/", "run/07/worker3.json", 7, "rank_regex"),
        (r"gpu(\d+)", "run/worker3.json", None, "unknown"),
        (r"gpu(\w+)", "run/gpux.json", None, "unknown"),
    ],
)
def test_a_pattern_of_the_user_replaces_guesses_from_names(
    pattern: str, path: str, rank: int | None, origin: str
) -> None:
    identity = identify(Path(path), _silent(), rank_pattern(pattern))

    assert (identity.rank, identity.rank_origin) == (rank, origin)


def test_what_the_file_says_outweighs_the_pattern() -> None:
    assert identify(Path("gpu5.json"), _silent(rank=6), rank_pattern(r"gpu(\d+)")).rank == 6


@pytest.mark.parametrize("pattern", ["(", "gpu", r"(\d)(\d)"])
def test_a_pattern_that_cannot_name_a_rank_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="--rank-regex"):
        rank_pattern(pattern)
