"""Two jobs of one host in one folder are two runs where their exports state it; what may be another's is nobody's."""

from pathlib import Path
from typing import Any

import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.nsys_exports import Export, call, export, kernel, nvtx, read
from traceforge.align.runs import split_runs
from traceforge.sources.nsys import NsysSource
from traceforge.store.database import Store

__all__ = ["export"]


def started(*arguments: str, environment: str = "") -> list[dict[str, Any]]:
    """How a report says what `nsys profile` started."""
    words = [{"name": f"PROCESS_0:ARGUMENT_{place}", "value": text} for place, text in enumerate(arguments)]
    return [*words, {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": environment}]


@pytest.mark.parametrize(
    ("one", "other", "runs"),
    [
        (started("--master_port=29500"), started("--master_port=29501"), ["MASTER_PORT 29500", "MASTER_PORT 29501"]),
        (started("--rdzv-id", "a"), started("--rdzv-id", "b"), ["TORCHELASTIC_RUN_ID a", "TORCHELASTIC_RUN_ID b"]),
        (started(environment='PBS_JOBID="7.pbs"'), started(environment='PBS_JOBID="8.pbs"'),
         ["PBS_JOBID 7.pbs", "PBS_JOBID 8.pbs"]),
        (started("--master_port=29500"), started("--master_port=29500"), []),
        (started("--master_port", "train.py; rm"), started("--master_port=29501"), []),
    ],
)  # fmt: skip
def test_reports_of_two_jobs_of_one_host_are_two_runs(
    export: Export,
    tmp_path: Path,
    one: list[dict[str, Any]],
    other: list[dict[str, Any]],
    runs: list[str],
) -> None:
    for name, said, device in (("one", one, 0), ("other", other, 2)):
        both = [kernel(1, 900, 7 + device + n, deviceId=device + n) for n in (0, 1)]
        export(f"{name}.sqlite", CUPTI_ACTIVITY_KIND_KERNEL=both, META_DATA_CAPTURE=said)

    with Store(None, is_kept=False) as store:
        split_runs(store, add_facts(store, tmp_path).run_id)
        built(store, "align.rank")
        found = rows_of(store, "SELECT run_name FROM meta.run ORDER BY run_id")
        ranks = rows_of(store, "SELECT run_id, rank FROM align.rank ORDER BY ALL")

    assert len(found) == max(len(runs), 1)
    assert all(str(found[1]).find(f"[{runs[1]}]") > 0 for _ in runs)
    assert ranks == ([(0, 0), (0, 1), (1, 2), (1, 3)] if runs else [(0, 0), (0, 1), (0, 2), (0, 3)])


def test_of_the_command_line_only_port_and_meeting_are_kept(export: Export) -> None:
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)],
        META_DATA_CAPTURE=started("--api-key=s3cret", "--master_port=29500", environment="KEY=s3cret;SLURM_JOB_ID=4"),
    )

    reading = read(path)

    (profile,) = reading.rows("profile")
    assert '"job": {"SLURM_JOB_ID": "4", "MASTER_PORT": "29500"}' in str(profile["metadata"])
    assert "s3cret" not in str([batch.rows.to_dicts() for batch in reading.batches])


def bare(start: int, device: int) -> dict[str, object]:
    return {"start": start, "end": start + 5, "deviceId": device, "streamId": 7, "correlationId": 5, "shortName": 1}


def test_a_kernel_that_names_no_process_is_launched_by_none_of_several(export: Export) -> None:
    # given processes 7 and 8, both with a launch of correlation 5, and kernels that name neither
    path = export(
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(100, 110, 7), call(100, 110, 8)],
        NVTX_EVENTS=[nvtx("aten::mm, op_id = 1", 90, 120)],
        CUPTI_ACTIVITY_KIND_KERNEL=[bare(150, 0), bare(150, 1)],
    )

    readings = [read(path, part) for part in NsysSource().parts(path)]

    assert [[event["category"] for event in reading.events] for reading in readings] == [["kernel"], ["kernel"]]
    assert [reading.issue("nsys_launches_not_told").count for reading in readings] == [1, 1]
    assert readings[0].issue("nsys_rows_of_no_rank").count == 3


def test_a_kernel_that_names_no_process_is_launched_by_the_only_one(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_RUNTIME=[call(100, 110)], CUPTI_ACTIVITY_KIND_KERNEL=[bare(150, 0), bare(150, 1)])

    readings = [read(path, part) for part in NsysSource().parts(path)]

    assert [[e["category"] for e in reading.events] for reading in readings] == [["cuda_runtime", "kernel"]] * 2
