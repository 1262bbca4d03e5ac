"""What the names of execution traces tell: which rank wrote a file, and which files are of one workload."""

import polars as pl

from traceforge.align.trace_ranks import ranks_by_number, workloads

SCHEMA = {"source_id": pl.Int64, "kind": pl.String, "path": pl.String, "rank": pl.Int64}


def _files(*paths: str, kind: str = "chakra", ranks: tuple[int, ...] = ()) -> pl.DataFrame:
    rows = [(place, kind, path, ranks[place] if ranks else None) for place, path in enumerate(paths)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _workloads(files: pl.DataFrame) -> list[tuple[str, list[int]]]:
    return [(one.label, list(one.files)) for one in workloads(files)]


def test_the_one_number_that_differs_is_the_rank() -> None:
    assert ranks_by_number(_files("job/resnet50.0.et", "job/resnet50.1.et")) == {0: 0, 1: 1}


def test_two_numbers_that_differ_tell_no_rank() -> None:
    assert ranks_by_number(_files("job/host3_pid17.et", "job/host4_pid18.et")) == {}


def test_a_number_that_a_name_holds_twice_is_the_rank() -> None:
    # given names of SGLang, where each rank of tensor parallelism has experts of its own
    names = [f"job/1764000000.5-TP-{rank}-EP-{rank}.trace.json.gz" for rank in (1, 0, 2)]

    assert ranks_by_number(_files(*names)) == {0: 1, 1: 0, 2: 2}
    assert ranks_by_number(_files("job/TP-00-EP-0.et", "job/TP-01-EP-1.et")) == {0: 0, 1: 1}
    # given steps, which count from another number
    assert ranks_by_number(_files("job/epoch1_step1.et", "job/epoch2_step2.et")) == {}


def test_names_in_one_folder_are_numbered_by_themselves() -> None:
    files = _files("job/resnet50.0.et", "job/resnet50.1.et", "job/llm.0.et", "job/llm.1.et")

    assert ranks_by_number(files) == {0: 0, 1: 1, 2: 0, 3: 1}
    assert _workloads(files) == [("resnet#.#.et", [0, 1]), ("llm.#.et", [2, 3])]


def test_a_rank_that_two_folders_hold_divides_them() -> None:
    # a: ranks 0, 1, 2; b: ranks 0, 1
    files = _files("set/a/x.0.et", "set/a/x.1.et", "set/a/x.2.et", "set/b/x.0.et", "set/b/x.1.et")

    assert _workloads(files) == [("a", [0, 1, 2]), ("b", [3, 4])]


def test_folders_of_other_ranks_are_one_workload() -> None:
    files = _files("host1/x.0.et", "host1/x.1.et", "host2/x.2.et", "host2/x.3.et")

    assert [files for _, files in _workloads(files)] == [[0, 1, 2, 3]]


def test_a_folder_a_rank_is_one_workload_whether_ranks_are_stated_or_not() -> None:
    paths = ("rank0/trace.et", "rank1/trace.et")

    assert [files for _, files in _workloads(_files(*paths, ranks=(0, 1)))] == [[0, 1]]
    assert [files for _, files in _workloads(_files(*paths))] == [[0, 1]]


def test_host_and_linked_traces_of_one_job_are_one_workload() -> None:
    host = _files("job/et/x_0.json", "job/et/x_1.json", kind="pytorch_et")
    linked = _files("job/chakra/x.0.et", "job/chakra/x.1.et").with_columns(pl.col("source_id") + 2)

    assert [files for _, files in _workloads(pl.concat([host, linked]))] == [[0, 1, 2, 3]]


def test_a_file_of_unknown_rank_is_not_put_to_a_job_whose_ranks_are_known() -> None:
    files = _files("a/x.0.et", "a/x.1.et", "b/other.et")

    assert _workloads(files) == [("a", [0, 1]), ("b", [2])]


def test_folders_of_one_name_get_labels_of_their_own() -> None:
    files = _files("one/et/x.0.et", "one/et/x.1.et", "two/et/x.0.et", "two/et/x.1.et")

    assert [label for label, _ in _workloads(files)] == ["et 1", "et 2"]
