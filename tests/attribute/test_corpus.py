"""Real jobs and what is known of them: who is named, and that nobody is named where nothing happened."""

from pathlib import Path

import pytest

from traceforge import api
from traceforge.store.database import Store

_FINDINGS = """
SELECT subject_kind, subject, mode FROM attribute.finding WHERE confidence IN ('high', 'medium') ORDER BY finding_id
"""


def _believed(folder: Path) -> list[tuple[object, ...]]:
    with Store(None, threads=1, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        return store.query(_FINDINGS).rows()


@pytest.mark.parametrize(
    "job", ["torchrec_sst_long_a2a_optimizer_t16989550", "torchrec_sst_long_a2a_optimizer_2_t16989553"]
)
def test_a_rank_whose_host_sleeps_a_second_in_each_of_three_iterations_is_named(job: str, corpus: Path) -> None:
    assert _believed(corpus / "traces/kineto" / job) == [("rank", "2", "runtime_control_plane")]


@pytest.mark.parametrize(
    "job", ["torchrec_resnet18_t16981079", "torchrec_sst_long_a2a_optimizer_4_t16989576", "self_gloo4_tp2dp2"]
)
def test_in_calm_jobs_nobody_is_named(job: str, corpus: Path) -> None:
    assert _believed(corpus / "traces/kineto" / job) == []
