"""Logs of a job that was started again are told apart by their communicators and GPUs."""

from collections.abc import Sequence

import polars as pl

from traceforge.align.log_attempts import other_attempts

SCHEMA = {"source_id": pl.Int32, "comm_hash": pl.String, "gpu": pl.String, "pid": pl.Int64, "latest_ns": pl.Int64}


def attempts(*rows: tuple[int, str, str, int, int | None], recorded: Sequence[int] = ()) -> list[list[int]]:
    return other_attempts(pl.DataFrame(rows, schema=SCHEMA, orient="row"), pl.Series(recorded, dtype=pl.Int64))


def test_what_shares_a_gpu_and_no_communicator_is_of_an_earlier_attempt() -> None:
    # given two attempts of two ranks, of which the one with the lower process numbers ended last
    found = attempts(
        (0, "x", "a 1b", 900, 50), (1, "x", "a 2b", 901, 55), (2, "y", "a 1b", 40, 90), (3, "y", "a 2b", 41, 95)
    )

    assert found == [[0, 1]]


def test_without_time_stamps_the_highest_process_numbers_are_the_last() -> None:
    assert attempts((0, "x", "a 1b", 40, None), (1, "y", "a 1b", 900, None)) == [[0]]


def test_the_attempt_whose_processes_were_traced_is_kept_whatever_came_later() -> None:
    assert attempts((0, "x", "a 1b", 40, 10), (1, "y", "a 1b", 900, 90), recorded=[40]) == [[1]]


def test_replicas_on_gpus_of_their_own_are_of_one_job() -> None:
    assert attempts((0, "x", "a 1b", 40, 1), (1, "y", "a 2b", 41, 9)) == []


def test_groups_that_meet_in_a_third_are_of_one_attempt() -> None:
    # given that rank 0 and 1 share x, 2 and 3 share y, and 1 and 2 share z; ranks 0 and 2 share a GPU
    found = attempts(
        (0, "x", "a 1", 40, 1), (1, "x", "a 2", 41, 1), (2, "y", "a 1", 42, 1), (3, "y", "a 4", 43, 1),
        (1, "z", "a 2", 41, 1), (2, "z", "a 1", 42, 1),
    )  # fmt: skip

    assert found == []
