"""What PyTorch's exceptions say of NCCL, in the output of a job in which nobody set NCCL_DEBUG."""

from pathlib import Path
from typing import Any

import pytest

from traceforge.files import read_head
from traceforge.records import Batch, ReadOptions
from traceforge.sources.nccl_log import SOURCE

ERROR = "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
SYSTEM = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."
REMOTE = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."

OLD = (
    "RuntimeError: NCCL error in: /torch/lib/c10d/ProcessGroupNCCL.cpp:518, unhandled system error, NCCL version 2.4.8"
)
WATCHDOG = (
    "[rank3]:[E ProcessGroupNCCL.cpp:616] [PG ID 0 PG GUID 0 Rank 3] Collective WorkNCCL(SeqNum=2, OpType=ALLREDUCE, "
    "Timeout(ms)=1000000) raised the following async exception: NCCL error: unhandled system error (run with "
    "NCCL_DEBUG=INFO for details), NCCL version 2.25.1"
)
EARLY_WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:542] [Rank 16] Collective WorkNCCL(SeqNum=89, OpType=ALLREDUCE) raised the following "
    "async exception: NCCL error: remote process exited or there was a network error"
)


def exceptions(folder: Path, *lines: str) -> list[dict[str, Any]]:
    path = folder / "job.out"
    path.write_text("\n".join(lines) + "\n")
    batches: list[Batch] = []
    SOURCE.read(path, batches.append, ReadOptions())
    return [row for batch in batches if batch.table.endswith("nccl_exception") for row in batch.rows.to_dicts()]


LABELS = {
    "docker compose": "worker-1  | ",
    "a hosts' label": "worker-1: ",
    "mpirun --tag-output": "[1,0]<stderr>:",
    "Kubernetes": "2026-03-03T12:11:3{}.123456789Z ",
    "files of Kubernetes": "2026-03-03T12:11:3{}.123456789Z stderr F ",
}


@pytest.mark.parametrize("launcher", LABELS)
def test_what_a_launcher_puts_before_each_line_hides_no_words(tmp_path: Path, launcher: str) -> None:
    lines = (f"{ERROR}:3699, unhandled system error, NCCL version 2.27.3", SYSTEM, "Last error:", "Call to bind failed")

    found = exceptions(tmp_path, *(LABELS[launcher].format(number) + line for number, line in enumerate(lines)))

    assert [(row["result"], row["text"]) for row in found] == [("ncclSystemError", "Call to bind failed")]


def test_lines_of_another_label_are_no_words(tmp_path: Path) -> None:
    found = exceptions(
        tmp_path,
        f"worker-1: {ERROR}:3699, unhandled system error, NCCL version 2.27.3",
        "worker-2: loss 2.30",
        f"worker-1: {SYSTEM}",
        "worker-1: Last error:",
        "worker-2: loss 2.25",
        "worker-1: Call to bind failed",
    )

    assert [(row["result"], row["text"]) for row in found] == [("ncclSystemError", "Call to bind failed")]


def test_ranks_that_write_at_once_are_told_apart(tmp_path: Path) -> None:
    # given the ends of two tracebacks, line by line in turns, each rank's with its number in front
    found = exceptions(
        tmp_path,
        "[rank1]: Traceback (most recent call last):",
        f"[rank1]: {ERROR}:3699, remote process exited or there was a network error, NCCL version 2.27.3",
        f"[rank0]: {ERROR}:3690, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3",
        f"[rank1]: {REMOTE}",
        f"[rank0]: {SYSTEM}",
        "[rank0]: Last error:",
        "[rank1]: Last error:",
        "step 110 loss 2.30",
        "[rank0]: Call to ibv_reg_mr failed",
        "[rank1]: socketProgress: Connection closed by remote peer node1<50012>",
        "[rank0]:[W101 12:08:33.945328381 ProcessGroupNCCL.cpp:1538] Warning: process group has NOT been destroyed",
    )

    columns = ("rank", "meaning", "result", "nccl_version", "text")
    assert {tuple(row[name] for name in columns) for row in found} == {
        (0, "unhandled system error", "ncclSystemError", "2.27.3", "Call to ibv_reg_mr failed"),
        (1, "remote process exited or there was a network error", "ncclRemoteError", "2.27.3",
         "socketProgress: Connection closed by remote peer node1<50012>"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # PyTorch 1, without ranks
        (
            [OLD],
            (None, "unhandled system error", None, "2.4.8", None),
        ),
        # the watchdog, and an error of which NCCL left no words
        (
            [WATCHDOG, SYSTEM, "Last error:", "", "Exception raised from checkForNCCLErrorsInternal at NCCL.cpp:1"],
            (3, "unhandled system error", "ncclSystemError", "2.25.1", None),
        ),
        # the watchdog of PyTorch 2.1
        (
            [EARLY_WATCHDOG, REMOTE],
            (16, "remote process exited or there was a network error", "ncclRemoteError", None, None),
        ),
        # words in the same line
        (
            [f"1: {ERROR}:1691, invalid usage, NCCL version 2.19.3",
             "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
             "Last error: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"],
            (None, "invalid usage", "ncclInvalidUsage", "2.19.3",
             "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"),
        ),
        # a launcher's column in front, and a line that was cut
        (
            [f": [rank18]: {ERROR}:317, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NC"],
            (18, "unhandled cuda error", None, None, None),
        ),
    ],
)  # fmt: skip
def test_each_version_of_pytorch_is_read(
    tmp_path: Path, lines: list[str], expected: tuple[int | None, str, str | None, str | None, str | None]
) -> None:
    (row,) = exceptions(tmp_path, *lines)

    assert tuple(row[name] for name in ("rank", "meaning", "result", "nccl_version", "text")) == expected
    assert SOURCE.recognises(read_head(tmp_path / "job.out"))


def test_what_stands_far_behind_is_of_something_else(tmp_path: Path) -> None:
    # given last words 600 lines after an exception that had none
    found = exceptions(tmp_path, f"{ERROR}:1691, internal error", *["epoch"] * 600, "Last error:", "out of disk")

    assert [(row["meaning"], row["text"]) for row in found] == [("internal error", None)]


def test_a_line_that_only_speaks_of_an_error_begins_none(tmp_path: Path) -> None:
    assert exceptions(tmp_path, "retrying after an NCCL error", "[rank0]: NCCL error, see above", "Last error: x") == []


def test_source_code_that_words_such_errors_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "ProcessGroupNCCL.cpp"
    path.write_text('std::string err = "NCCL error in: " + std::string(__FILE__) + ":" + std::to_string(__LINE__);\n')

    assert not SOURCE.recognises(read_head(path))
