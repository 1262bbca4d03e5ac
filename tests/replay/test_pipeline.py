"""Pipelines replayed: exact as recorded, and a rank's delay is its own however many stages pass it on."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.given import OF_MODEL, Trace, add_facts, built, rows_of, store_of
from traceforge.attribute.ledger.ledger_input import load_ledger_input
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.reference import references
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario


def _scenario(schedule: str, *, batched: bool, faults: Sequence[Injection] = ()) -> Scenario:
    # two replicas of three stages
    return Scenario(
        iterations=3,
        cluster=Cluster(2, 3, pipeline_parallel=3),
        workload=Workload(layers=3),
        pipeline=Pipeline(schedule, microbatches=3, batched=batched),
        faults=tuple(faults),
    )


def _analysed(scenario: Scenario, folder: Path) -> Store:
    write_scenario(scenario, folder)
    store = Store(None, is_kept=False)
    add_facts(store, folder)
    return built(store, *OF_MODEL, "align.unmatched_endpoint", "timeline.collective", "timeline.message")


def _model(store: Store) -> StepModel:
    found = load_model(store, 0)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("schedule", "batched"), [("1f1b", True), ("1f1b", False), ("gpipe", True), ("zero_bubble", False)]
)
def test_a_pipeline_replays_as_recorded(schedule: str, batched: bool, tmp_path: Path) -> None:
    store = _analysed(_scenario(schedule, batched=batched), tmp_path / "job")
    model = _model(store)
    ledger = load_ledger_input(store, 0)

    assert len(model.iterations) == 3
    assert (replay(model, measured(model)).end_ns == model.end_ns).all()
    assert ledger is not None
    assert (replay(ledger.model, measured(ledger.model)).end_ns == ledger.model.end_ns).all()
    assert rows_of(store, "SELECT reason FROM align.unmatched_endpoint") == []


class TestBatch:
    """One kernel of rank 1 receives from rank 0 and sends to rank 2."""

    # rank 0   |compute 0–40|send 40–90|compute 90–200|
    # rank 1   |compute 0–50|recv, send 50–110·········|compute 110–200|
    # rank 2   |compute 0–80·····|recv 80–110|compute 110–200|
    RANKS = (0, 1, 2)

    @pytest.fixture
    def model(self) -> StepModel:
        # three all-reduces before tie the clocks
        traces = [Trace(rank) for rank in self.RANKS]
        for trace in traces:
            for start in (-300, -200, -100):
                trace.collective(start, start + 50)
            trace.step(1, 0, 200)
        traces[0].kernel(0, 40).exchange(40, 90, [("send", 1)], ranks=self.RANKS).kernel(90, 200)
        traces[1].kernel(0, 50).exchange(50, 110, [("recv", 0), ("send", 2)], ranks=self.RANKS).kernel(110, 200)
        traces[2].kernel(0, 80).exchange(80, 110, [("recv", 1)], ranks=self.RANKS).kernel(110, 200)
        return _model(built(store_of(*traces), *OF_MODEL))

    def test_it_is_two_meetings_that_rank_1_awaits_one_after_the_other(self, model: StepModel) -> None:
        assert (model.group[0] >= 0).T.tolist() == [[True, False, False], [True, True, False], [False, True, False]]
        assert model.awaited[0].T.tolist() == [[0, -1, -1], [-1, 1, 0], [-1, 1, -1]]
        assert (replay(model, measured(model)).end_ns == model.end_ns).all()

    def test_without_the_late_receiver_the_sender_is_done_when_the_other_message_is(self, model: StepModel) -> None:
        # rank 2 comes at 30 in the place of 80: its message takes 30 ns from 50 on, as that of rank 0 on rank 1 does
        durations = measured(model)
        work = durations.before_arrival_ns.copy()
        work[0, 1, 2] -= 50

        ends = replay(model, type(durations)(work, durations.before_wait_ns, durations.transfer_ns)).end_ns

        assert ends.tolist() == [[200, 170, 170]]


def test_a_stage_is_held_against_the_same_stage_of_other_replicas(tmp_path: Path) -> None:
    # the last stage has a head that takes twice as long as its layers
    scenario = _scenario("1f1b", batched=True)
    store = _analysed(scenario, tmp_path / "job")
    model = _model(store)
    stages = np.array(rows_of(store, "SELECT stage FROM timeline.role ORDER BY rank")).ravel()

    assert model.role is not None
    assert model.role.tolist() == stages.tolist()
    (reference,) = references(model).values()
    for stage in range(3):
        ranks = np.flatnonzero(stages == stage)
        assert (reference.before_arrival_ns[:, ranks[0]] == reference.before_arrival_ns[:, ranks[1]]).all()
    assert not (reference.before_arrival_ns[:, 0] == reference.before_arrival_ns[:, -1]).all()


def test_the_excess_of_a_slow_rank_is_its_own_and_no_other_stages(tmp_path: Path) -> None:
    slow = Injection("compute_straggler", place=2, severity=0.5)
    store = built(
        _analysed(_scenario("1f1b", batched=True, faults=[slow]), tmp_path / "job"),
        "attribute.delay",
        "attribute.excess",
    )

    owners = "SELECT rank, cause, SUM(delay_ns) FROM attribute.delay GROUP BY ALL ORDER BY 3 DESC LIMIT 1"
    ((rank, cause, delay_ns),) = rows_of(store, owners)
    ((excess_ns,),) = rows_of(store, "SELECT SUM(excess_ns) FROM attribute.excess")
    assert (rank, cause) == (2, "slow_compute")
    assert float(str(delay_ns)) >= 0.95 * float(str(excess_ns))
