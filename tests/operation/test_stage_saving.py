"""What slow stages cost, alone and together: held against the generator's own runs without them.

stage 0   |F0|F1|F2|F3|············|B0|B1|…
stage 1      |F0··|F1··|F2··|···           each pass takes longer
stage 2           |F0|  |F1|  |F2|
stage 3               |F0·|  |F1·|         each pass takes longer
"""

from pathlib import Path

import numpy as np
import pytest

from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, cost_of


@pytest.mark.parametrize(("schedule", "replicas"), [("1f1b", 1), ("gpipe", 1), ("1f1b", 2)])
def test_two_slow_stages_cost_together_more_than_each_alone(schedule: str, replicas: int, tmp_path: Path) -> None:
    scenario = Scenario(
        seed=31,
        iterations=6,
        cluster=Cluster(1, 4 * replicas, pipeline_parallel=4),
        workload=Workload(layers=8),
        pipeline=Pipeline(schedule, microbatches=6),
        faults=(Injection("stage_slow_compute", 1, 0.2), Injection("stage_slow_compute", 3, 0.13)),
    )
    truth = cost_of(scenario)
    write_scenario(scenario, tmp_path / "job")

    with Store(tmp_path / "job.duckdb") as store:
        api.ingest([tmp_path / "job"], store, jobs=1)
        saved = {
            stage: (alone, both)
            for stage, alone, both in store.rows("FROM operation.stage_saving SELECT * EXCLUDE (run_id)")
        }
        headline = store.value("SELECT headline FROM attribute.verdict")

    # the first iteration fills what no other does
    alone = [float(np.mean(one[1:])) for one in truth.removed_ns]
    together = float(np.mean((truth.duration_ns - truth.healthy_ns)[1:]))
    assert sorted(saved) == [1, 3]
    assert saved[1][0] == pytest.approx(alone[0], rel=0.05)
    assert saved[3][0] == pytest.approx(alone[1], rel=0.05)
    assert saved[1][1] == saved[3][1] == pytest.approx(together, rel=0.05)
    assert together > 1.5 * sum(alone)
    assert headline.startswith("Stages 1 (")


def test_of_even_stages_the_longest_saves_next_to_nothing(tmp_path: Path) -> None:
    scenario = Scenario(
        seed=32, iterations=6, cluster=Cluster(1, 4, pipeline_parallel=4), workload=Workload(layers=8),
        pipeline=Pipeline("1f1b", microbatches=6),
    )  # fmt: skip
    write_scenario(scenario, tmp_path / "job")

    with Store(tmp_path / "job.duckdb") as store:
        api.ingest([tmp_path / "job"], store, jobs=1)
        ((alone_ns, iteration_ns),) = store.rows(
            "SELECT alone_ns, iteration_ns FROM operation.stage_saving JOIN timeline.pipeline USING (run_id)"
        )
        assert abs(alone_ns) < 0.01 * iteration_ns
        assert not store.value("SELECT is_unbalanced FROM attribute.verdict")
