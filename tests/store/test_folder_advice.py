"""Above a size a folder is recommended, and the message names that size and the command."""

from pathlib import Path

from traceforge.store.folder_advice import folder_advice
from traceforge.thresholds import store as thresholds


def test_a_large_job_is_told_which_size_is_large_and_what_to_type() -> None:
    limit = thresholds.FOLDER_ABOVE_BYTES

    assert folder_advice(Path("runs/job.duckdb"), limit) is None
    told = folder_advice(Path("runs/job.duckdb"), 2 * limit)

    assert told == (
        "2.00 GB of traces: above 1.00 GB a folder is the better database, since all workers write it at once: "
        "--db runs/job/, or later `traceforge unpack runs/job.duckdb runs/job/`"
    )
