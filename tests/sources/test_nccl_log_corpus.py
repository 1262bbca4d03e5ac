"""Real logs of NCCL 2.7 to 2.30 are understood, with the communicators they hold."""

from pathlib import Path

import pytest

from tests.sources.nccl_logs import read_path
from traceforge.files import read_head
from traceforge.sources.nccl_log import SOURCE

# Counted with grep and cut: init lines by distinct (process, pointer), and the ranks among them.
COMMUNICATORS = {
    "nccl_tests_2node_ib/odissei_2nodes_all_reduce_mpi.log": (8, 8),
    "p5_efa_nccl_tests/keitaw_p5_nccl-test-output-v2.20.3-1.log": (16, 16),
}


def logs(corpus: Path) -> list[Path]:
    folder = corpus / "traces" / "nccl"
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and SOURCE.recognises(read_head(path))]


def test_nearly_every_record_is_understood_and_none_is_lost(corpus: Path) -> None:
    understood = total = 0
    for path in logs(corpus):
        log = read_path(path)
        templates = sum(row["record_count"] for row in log.rows("unparsed"))
        assert log.summary.event_count == log.summary.stored_count == len(log.rules)
        assert log.file["understood_count"] + templates == log.file["record_count"]
        understood += log.file["understood_count"]
        total += log.file["record_count"]
    assert total > 40_000
    assert understood / total >= 0.999


@pytest.mark.parametrize("name", COMMUNICATORS)
def test_communicators_and_ranks_are_complete(corpus: Path, name: str) -> None:
    handles, size = COMMUNICATORS[name]

    communicators = read_path(corpus / "traces" / "nccl" / name).rows("communicator")

    assert len(communicators) == handles
    assert {row["rank_count"] for row in communicators} == {size}
    assert all(row["rank"] is not None and row["complete_record_id"] is not None for row in communicators)
    assert len({row["rank"] for row in communicators}) == handles
