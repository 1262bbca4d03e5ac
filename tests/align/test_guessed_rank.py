"""Ranks that no file states: by name, by device, by process, in this order, and only where these tell files apart."""

import polars as pl
import pytest

from traceforge.align.guessed_rank import GuessedRanks, guessed_ranks, without_shared_names

SCHEMA = {
    "source_id": pl.Int32, "path": pl.String, "rank": pl.Int32, "host": pl.String, "first_device": pl.Int32,
    "last_device": pl.Int32, "raw_first_ns": pl.Int64, "raw_last_ns": pl.Int64, "process": pl.Int64,
    "communicates": pl.Boolean, "rank_origin": pl.String, "stated_ranks": pl.Int32,
}  # fmt: skip
EPOCH = 1_700_000_000_000_000_000


def files(*said: dict[str, object]) -> pl.DataFrame:
    """Files of one host and time, on device 0, that communicate; what is said differs."""
    plain = {"host": "n", "first_device": 0, "last_device": 0, "raw_first_ns": 10, "raw_last_ns": 90}
    rows = [{"path": "a", "communicates": True, **plain, "source_id": n, **one} for n, one in enumerate(said)]
    return pl.DataFrame(rows, schema=SCHEMA)


def guess(*said: dict[str, object]) -> tuple[str, list[int]] | None:
    found: GuessedRanks | None = guessed_ranks(files(*said))
    return None if found is None else (found.code, found.ranks.to_list())


def test_a_number_in_the_name_goes_before_the_device() -> None:
    # given reports named `report_%q{SLURM_PROCID}` of two hosts, whose devices count anew and are listed the other way
    names = [("b", 0, 2), ("b", 1, 3), ("a", 1, 1), ("a", 0, 0)]
    said = [{"path": f"job17/report_{n}.sqlite", "host": host, "first_device": d, "last_device": d}
            for host, d, n in names]  # fmt: skip

    assert guess(*said) == ("rank_from_name", [2, 3, 1, 0])


@pytest.mark.parametrize(
    ("devices", "stated", "ranks"),
    [
        pytest.param([0, 1, 0, 1], None, [0, 1, 2, 3], id="as devices say"),
        pytest.param([0, 0, 0, 0], None, [0, 1, 2, 3], id="as nothing denies"),
        pytest.param([1, 0, 1, 0], None, [1, 2, 3, 4], id="but devices say that rank 0 is missing"),
        pytest.param([0, 0, 0, 0], 5, [1, 2, 3, 4], id="but the job has one rank more"),
    ],
)
def test_reports_counted_from_1_are_ranks_from_0(devices: list[int], stated: int | None, ranks: list[int]) -> None:
    # given `report1.sqlite` to `report4.sqlite`, as Nsight Systems names them
    said = [{"path": f"report{n + 1}.sqlite", "process": 70 + n, "first_device": device, "last_device": device,
             "stated_ranks": stated}
            for n, device in enumerate(devices)]  # fmt: skip

    assert guess(*said) == ("rank_from_name", ranks)


def test_folders_that_are_called_by_a_number_hold_a_rank_each() -> None:
    said = [{"path": f"logs/attempt_0/{name}/trace.json.gz"} for name in ("2", "rank 1", "0")]

    assert guess(*said) == ("rank_from_name", [2, 1, 0])


def beside_named(*devices: int, **said: object) -> tuple[str, list[int]] | None:
    """Files of a job of four, of which the first two are called rank 0 and rank 1, and the others by nothing."""
    return guess(*(
        {"rank": n if n < 2 else None, "rank_origin": "file_name" if n < 2 else "unknown", "stated_ranks": 4,
         "first_device": device, "last_device": device, **said}
        for n, device in enumerate(devices)
    ))  # fmt: skip


def test_files_without_a_rank_beside_others_of_their_job_are_ranked_by_devices() -> None:
    assert beside_named(0, 1, 3, 2) == ("rank_from_device", [0, 1, 3, 2])
    # but not where the others' devices do not stand for ranks, or one is used twice
    assert beside_named(1, 0, 3, 2) is None
    assert beside_named(0, 1, 2, 2) is None
    # and not where these files are not the whole job
    assert beside_named(0, 1, 3) is None
    assert beside_named(0, 1, 3, 2, stated_ranks=8) is None


LOCAL_NAMES = [
    pytest.param("node{}_rank{}.json.gz", "file_name", id="in the file's name"),
    pytest.param("node{}/rank{}.json.gz", "file_name", id="in the file's name, hosts in the folder's"),
    pytest.param("node{}/rank_{}/trace.json", "folder_name", id="in the folder's name"),
    pytest.param("host{}_gpu{}.1700000000000047514.json", None, id="as a device"),
]


def local_files(pattern: str, origin: str | None, **stated: object) -> list[dict[str, object]]:
    """Two hosts, number 10 before number 2, of two ranks each, in a job of four ranks."""
    return [
        {"path": pattern.format(host, local), "rank": local if origin else None, "rank_origin": origin or "unknown",
         "stated_ranks": 4, **stated}
        for host in (10, 2) for local in (0, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(("pattern", "origin"), LOCAL_NAMES)
def test_names_that_count_ranks_of_each_host_are_those_of_one_job(pattern: str, origin: str | None) -> None:
    assert guess(*local_files(pattern, origin)) == ("rank_from_local_rank", [2, 3, 0, 1])


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param({"stated_ranks": 2}, id="of two jobs of two ranks"),
        pytest.param({"stated_ranks": None}, id="that state no size"),
        pytest.param({"rank_origin": "metadata"}, id="that state their ranks"),
        pytest.param({"raw_first_ns": 90}, id="of no time"),
    ],
)
def test_ranks_are_not_taken_for_local_ones_of_files(stated: dict[str, object]) -> None:
    assert guess(*local_files("node{}_rank{}.json.gz", "file_name", **stated)) is None


@pytest.mark.parametrize("origin", [None, "file_name"])
def test_places_on_parallel_axes_go_before_a_rank_that_names_repeat(origin: str | None) -> None:
    # given what vLLM writes of two replicas, each of which counts its own ranks, or none
    said = [{"path": f"dp{dp}_pp0_tp{tp}_dcp0_ep0_rank{tp}.17.json", "rank": tp if origin else None,
             "rank_origin": origin}
            for dp in (1, 0) for tp in (0, 1)]  # fmt: skip

    assert guess(*said) == ("rank_from_axes", [2, 3, 0, 1])


def test_hosts_of_unequal_numbers_of_ranks_are_not_put_together() -> None:
    # given three files of host 10 and one of host 2
    said = [*local_files("node{}_rank{}.json.gz", "file_name")[:3],
            {"path": "node10_rank2.json.gz", "rank": 2, "rank_origin": "file_name", "stated_ranks": 4}]  # fmt: skip

    assert guess(*said) is None


def test_the_handlers_names_hold_the_process() -> None:
    # given files of one device each, as their processes see it, on two hosts
    names = ("node1_299.1700000000000047514", "node0_820.1700000000000023757", "node0_811.1700000000000015838")
    said = [{"path": f"run/{name}.pt.trace.json.gz", "host": name[:5]} for name in names]

    assert guess(*said) == ("rank_from_process", [2, 1, 0])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([{"path": "r_0"}, {"path": "r_2"}], id="numbers with a gap"),
        pytest.param([{"path": "908_results"}, {"path": "909_results"}], id="what may be processes"),
        pytest.param([{"path": "r_0"}, {"path": "r_1", "communicates": False}], id="one that does not communicate"),
        pytest.param([{"path": "r_0"}, {"path": "r_1", "raw_first_ns": 91, "raw_last_ns": 99}], id="another time"),
        pytest.param([{"path": "r_0"}, {"path": "r_1", "raw_first_ns": None}], id="unknown times"),
        pytest.param([{"path": "r_0"}, {"path": "s_1"}, {"path": "s_1"}], id="a number twice"),
        pytest.param([{"path": "r_0"}, {"path": "r_1", "rank": 1}], id="a rank that is stated"),
        pytest.param([{"process": 8}, {"process": 8}], id="a process twice"),
        pytest.param([{"process": 8}, {"process": None}], id="an unknown process"),
        pytest.param([{"process": 8}, {"process": 9, "communicates": False}], id="a process that does not communicate"),
        pytest.param([{"process": 8}, {"process": 9, "raw_first_ns": 91}], id="a process of another time"),
        pytest.param([{"process": 8, "host": "m"}, {"process": 9, "host": None}], id="an unknown host"),
    ],
)
def test_nothing_is_guessed_of(said: list[dict[str, object]]) -> None:
    assert guess(*said) is None


def test_hosts_of_different_times_are_not_put_together_by_names() -> None:
    late = {"host": "m", "raw_first_ns": EPOCH + 100, "raw_last_ns": EPOCH + 200}
    early = {"raw_first_ns": EPOCH, "raw_last_ns": EPOCH + 50}

    assert guess({"path": "r_0", **early}, {"path": "r_1", **late}) is None


def test_a_number_that_is_the_processs_is_no_rank_but_orders_them() -> None:
    # given what rocprofv3 names by itself
    said = [{"path": f"{pid}_results.json", "process": pid} for pid in (909, 908)]

    assert guess(*said) == ("rank_from_process", [1, 0])


def test_ranks_of_a_later_host_do_not_begin_with_0() -> None:
    said = [{"path": f"report_{rank}.sqlite", "process": 7} for rank in (4, 5)]

    assert guess(*said) == ("rank_from_name", [4, 5])


def test_a_device_of_its_own_goes_before_the_process() -> None:
    said = [{"process": pid, "first_device": n, "last_device": n} for pid, n in ((8, 1), (9, 0))]

    assert guess(*said) == ("rank_from_device", [1, 0])


def test_processes_are_ranked_host_by_host() -> None:
    said = [{"host": host, "process": pid} for host, pid in (("n10", 1), ("n2", 9), ("n2", 7))]

    assert guess(*said) == ("rank_from_process", [2, 1, 0])


@pytest.mark.parametrize(("communicates", "left"), [(True, None), (False, 1)])
def test_a_report_named_by_its_host_gives_no_rank_to_processes_that_all_communicate(
    communicates: bool, left: int | None
) -> None:
    # given two processes on one device, of which the second may be a helper of the first
    told = [{"process": 7}, {"process": 8, "communicates": communicates}]
    named = files(*({"path": "rank1.sqlite/a process", "rank": 1, **one} for one in told))

    found = without_shared_names(named.with_columns(rank_origin=pl.lit("folder_name")))

    assert found["rank"].to_list() == [left, left]
