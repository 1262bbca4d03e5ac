"""Real jobs and what is known of them: who is named, and that nobody is named where nothing happened."""

from collections.abc import Callable
from pathlib import Path

import pytest

from traceforge.store.database import Store

_FINDINGS = """
SELECT subject_kind, subject, mode FROM attribute.finding WHERE confidence IN ('high', 'medium') ORDER BY finding_id
"""


def _believed(database: Path) -> list[tuple[object, ...]]:
    with Store(database, read_only=True, threads=1) as store:
        return store.query(_FINDINGS).rows()


@pytest.mark.parametrize(
    "job", ["torchrec_sst_long_a2a_optimizer_t16989550", "torchrec_sst_long_a2a_optimizer_2_t16989553"]
)
def test_a_rank_whose_host_sleeps_a_second_in_each_of_three_iterations_is_named(
    job: str, corpus_database: Callable[[str], Path]
) -> None:
    assert _believed(corpus_database(f"kineto/{job}")) == [("rank", "2", "runtime_control_plane")]


@pytest.mark.parametrize(
    "job", ["torchrec_resnet18_t16981079", "torchrec_sst_long_a2a_optimizer_4_t16989576", "self_gloo4_tp2dp2"]
)
def test_in_calm_jobs_nobody_is_named(job: str, corpus_database: Callable[[str], Path]) -> None:
    assert _believed(corpus_database(f"kineto/{job}")) == []
