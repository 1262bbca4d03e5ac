"""The couplings of a run, from its traces: found, absent, or refused with the reason."""

from pathlib import Path

import numpy as np
import pytest

from tests.given import MS, US, add_facts, built, data_parallel_job, rows_of
from tests.stories import told
from traceforge.replay.calibration import SPREAD, verdict_of
from traceforge.replay.calibration.measurement import Measurement
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.load import Noise
from traceforge.synth.scenario import Scenario
from traceforge.synth.task import Coupling

ALL = ["arrival_spread", "waiting_overlap", "transfer_overlap", "co_located_waiting", "predictability"]


def calibration(store: Store) -> dict[str, tuple[str, str]]:
    """Verdict and reason by mechanism."""
    rows = rows_of(store, "SELECT mechanism, verdict, reason FROM replay.calibration ORDER BY ALL")
    return {str(name): (str(verdict), str(reason)) for name, verdict, reason in rows}


def test_every_mechanism_has_a_row_and_three_iterations_say_nothing() -> None:
    # given three iterations of one all-reduce on two ranks
    with told(*data_parallel_job([[100, 60]] * 3), stage="replay") as store:
        rows = rows_of(store, "SELECT mechanism, coefficient, low, high, verdict FROM replay.calibration")

    assert rows == [(name, None, None, None, "not_identifiable") for name in ALL]


def test_the_reason_counts_the_iterations() -> None:
    with told(*data_parallel_job([[100, 60]] * 3), stage="replay") as store:
        found = calibration(store)

    assert ": 3, and 20 are needed" in found["arrival_spread"][1]
    assert "2 ranks in 3 iterations" in found["predictability"][1]


def test_ranks_that_arrive_together_have_no_spread_to_measure() -> None:
    # given thirty iterations in which both ranks compute for the same time
    with told(*data_parallel_job([[100 * US, 100 * US]] * 30), stage="replay") as store:
        found = calibration(store)

    assert "less than three times" in found["arrival_spread"][1]
    assert "less than three times" in found["predictability"][1]
    # then kernels are looked at: a collective transfers, though none waits
    assert "Hardly any work runs" in found["transfer_overlap"][1]


def test_equal_transfers_after_unequal_waits_leave_no_coupling() -> None:
    # given rank 1 is now 1, now 2, now 3 ms behind, and every transfer takes 10 us
    work = [[1 * MS, (2 + number % 3) * MS] for number in range(30)]
    with told(*data_parallel_job(work, transfer_ns=10 * US), stage="replay") as store:
        rows = rows_of(
            store, "SELECT verdict, ROUND(coefficient, 6) FROM replay.calibration WHERE mechanism = 'arrival_spread'"
        )

    assert rows == [("absent", 0.0)]


def test_without_device_kernels_no_overlap_can_be_measured(tmp_path: Path) -> None:
    with told(*(trace_of_host(rank) for rank in range(2)), stage="replay") as store:
        found = calibration(store)

    assert found["waiting_overlap"] == ("not_identifiable", "No device kernels were recorded.")


def test_where_no_rank_communicates_no_kernel_is_looked_at() -> None:
    from tests.given import Trace

    with told(Trace(0).step(1, 0, 100).kernel(10, 90), stage="replay") as store:
        (verdict, reason), of_transfers = (calibration(store)[f"{name}_overlap"] for name in ("waiting", "transfer"))

    assert (verdict, of_transfers[0]) == ("not_identifiable",) * 2
    assert reason == "No kernel runs beside a waiting collective: no rank has one whose members are all known."


def trace_of_host(rank: int) -> object:
    """Three steps of a gloo job."""
    from tests.given import Trace

    trace = Trace(rank)
    for number in range(3):
        at = 1000 * number
        trace.step(number, at, at + 900).host_work("aten::mm", at, at + 300 + 100 * rank)
        trace.gloo(at + 300 + 100 * rank, at + 800)
    return trace


@pytest.mark.parametrize(
    ("low", "high", "surely_low", "surely_high", "stake", "verdict"),
    [
        (0.2, 0.4, 0.1, 0.5, 0.05, "identifiable"),
        (-0.4, -0.2, -0.5, -0.1, 0.05, "identifiable"),
        (0.01, 0.4, -0.1, 0.5, 0.05, "not_identifiable"),
        (-0.01, 0.01, -0.02, 0.02, 0.009, "absent"),
        (0.001, 0.002, 0.0005, 0.003, 0.0019, "absent"),
        (0.001, 0.002, 0.0005, 0.003, 0.0021, "identifiable"),
    ],
    ids=["positive", "negative", "holds 0 at 99 %", "nothing at stake", "sure and negligible", "sure and small"],
)
def test_verdicts(low: float, high: float, surely_low: float, surely_high: float, stake: float, verdict: str) -> None:
    found = Measurement((low + high) / 2, low, high, surely_low, surely_high, 100, 50.0, stake)

    assert verdict_of(SPREAD, found)[0] == verdict


def test_a_negative_coupling_says_that_pacing_would_harm() -> None:
    found = Measurement(-0.3, -0.4, -0.2, -0.5, -0.1, 100, 50.0, 0.05)

    assert "pacing would make them longer" in verdict_of(SPREAD, found)[1]


@pytest.fixture(scope="module", params=[0.5, 0.0])
def generated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[float, Store]:
    """A generated job of eight ranks whose work varies, with a coupling or without, from its trace files."""
    kappa = float(request.param)
    noise = Noise(iteration=0.05)
    scenario = Scenario(seed=11, iterations=36, cluster=Cluster(2, 4), noise=noise, coupling=Coupling(kappa=kappa))
    folder = tmp_path_factory.mktemp("job")
    write_scenario(scenario, folder)
    store = Store(None, is_kept=False)
    add_facts(store, folder)
    return kappa, built(store, "replay.calibration")


def test_the_interval_of_a_generated_job_holds_its_coupling(generated: tuple[float, Store]) -> None:
    kappa, store = generated
    [(coefficient, low, high, verdict)] = rows_of(
        store, "SELECT coefficient, low, high, verdict FROM replay.calibration WHERE mechanism = 'arrival_spread'"
    )

    assert low <= kappa <= high  # type: ignore[operator]
    assert high - low < 0.3  # type: ignore[operator]
    assert np.sign(float(str(coefficient)) - 0.25) == np.sign(kappa - 0.25)
    assert (verdict == "identifiable") == (kappa > 0)


def test_what_lasts_in_a_generated_job_is_predictable(generated: tuple[float, Store]) -> None:
    assert calibration(generated[1])["predictability"][0] == "identifiable"
