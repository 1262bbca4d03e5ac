"""The pacing hook: it decides as a replay would, within limits, and measures what it brings while it runs."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.running import run
from tests.given import add_facts
from tests.live.jobs import MS, HandClock, record_job
from traceforge import api, live
from traceforge.errors import InputUnusableError, UsageError
from traceforge.live.limits import PacingLimits
from traceforge.live.pacing import Pacer
from traceforge.live.recorder import start
from traceforge.live.trial import PacingTrial, TurnBlocks, student_95
from traceforge.live.waits import WaitEstimate, is_probed, probe_count
from traceforge.replay.policy import Past, parse_policy
from traceforge.replay.policy_file import ChosenPolicy, PredictedGain, choose, write_policy
from traceforge.stats import t_quantile
from traceforge.store.database import Store

ALWAYS = PacingLimits(longest_share=1.0, total_share=1.0, blocks=TurnBlocks(first_step=0, length=10**6, settling=0))
"""One block that never ends: that of pair 0 that comes first is paced."""


class Rank:
    """One rank and its hook, fed with what it sees of each step."""

    def __init__(self, tmp_path: Path, policy: str, limits: PacingLimits = ALWAYS, rank: int = 0) -> None:
        self.clock = HandClock()
        self.delays: list[int] = []
        self.pacer = Pacer(choose(policy), limits, self._sleep)
        self.recorder = start(
            tmp_path, environment={}, rank=rank, world_size=4, clock_ns=self.clock, hooks=[self.pacer]
        )
        self.recorder.__enter__()

    def _sleep(self, delay_ns: int) -> None:
        self.delays.append(delay_ns)
        self.clock.turn(delay_ns)

    def step(self, work_ns: int, wait_ns: int) -> int:
        """A step of one collective that takes 1 ms beyond the wait; the delay that follows."""
        self.clock.turn(work_ns)
        with self.recorder.collective("all_reduce", size_bytes=8):
            self.clock.turn(MS + wait_ns)
        before = len(self.delays)
        self.recorder.step()
        return sum(self.delays[before:])


def test_a_rank_decides_as_the_replay_of_its_past_does(tmp_path: Path) -> None:
    # given waits of one rank; the first step shows it how long a transfer takes
    rank = Rank(tmp_path, "bounded_delay:window=2,threshold=0.01,gain=0.5,max_delay=0.2", rank=3)
    policy, parameters = parse_policy("bounded_delay:window=2,threshold=0.01,gain=0.5,max_delay=0.2")
    waits = [0, 2 * MS, 3 * MS, MS, 4 * MS, 0]

    delays = [rank.step(10 * MS, wait) for wait in waits]

    # then each delay is what the policy says of that past, in which a step holds its own delay
    injected = [0, *delays[:-1]]
    durations = [11 * MS + wait + delay for wait, delay in zip(waits, injected, strict=True)]
    for count in range(1, len(waits) + 1):
        wait, delay, duration = (np.array(column[:count])[:, None] for column in (waits, injected, durations))
        assert delays[count - 1] == policy.delay(Past(wait, delay, duration), parameters)[0]
    assert max(delays) > 0


def test_pacing_disengages_within_its_window(tmp_path: Path) -> None:
    rank = Rank(tmp_path, "bounded_delay:window=3,threshold=0.05,gain=0.5,max_delay=0.2")
    paced = [rank.step(10 * MS, wait) for wait in [0, *[2 * MS] * 6]]

    # when the spread subsides: the wait was that of the rank's own lead
    after = [rank.step(10 * MS, 0) for _ in range(8)]

    # then delays fall at once, and after two windows, in which its own delays count as slack, there are none
    assert paced[-1] > after[2]
    assert after[6:] == [0, 0]


def test_a_dry_run_decides_and_holds_nobody_back(tmp_path: Path) -> None:
    limits = PacingLimits(is_dry_run=True, blocks=ALWAYS.blocks)
    rank = Rank(tmp_path, "constant:delay=0.1", limits)
    for _ in range(5):
        assert rank.step(10 * MS, 0) == 0
    rank.recorder.close()

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        rows = store.query("SELECT state, delay_ns, asked_delay_ns FROM raw.pacing ORDER BY iteration").rows()
    assert rows == [("dry_run", 0, 11 * MS // 10)] * 5


def test_a_delay_is_bounded_whatever_the_policy_asks_for(tmp_path: Path) -> None:
    limits = PacingLimits(longest_share=0.02, total_share=1.0, blocks=ALWAYS.blocks)
    rank = Rank(tmp_path, "constant:delay=0.9", limits)

    assert rank.step(9 * MS, 0) == 10 * MS * 2 // 100


def test_all_delays_together_are_bounded(tmp_path: Path) -> None:
    limits = PacingLimits(longest_share=1.0, total_share=0.03, blocks=TurnBlocks(0, 20, 0))
    rank = Rank(tmp_path, "constant:delay=0.5", limits)
    for _ in range(200):
        rank.step(9 * MS, 0)

    assert 0 < sum(rank.delays) <= 0.03 * (200 + 20) * 10 * MS * 1.05


def test_pacing_that_costs_throughput_switches_itself_off(tmp_path: Path) -> None:
    # given a policy that only costs, 5 % of each step
    limits = PacingLimits(total_share=1.0, blocks=TurnBlocks(first_step=4, length=5, settling=1))
    rank = Rank(tmp_path, "constant:delay=0.05", limits)
    for number in range(80):
        rank.step(9 * MS + 1_000 * (number % 7), 0)
    rank.recorder.close()

    # then after three pairs of blocks it holds still; they begin when all four ranks have seen what a transfer takes
    assert not rank.pacer.is_on
    assert rank.pacer.gain().high < 0
    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        [(first_off, kept)] = store.query(
            "SELECT MIN(iteration), COALESCE(SUM(delay_ns), 0) FROM raw.pacing WHERE state = 'off'"
        ).rows()
    assert (first_off, kept) == (9 + 3 * 10, 0)


def test_pacing_that_helps_stays_on(tmp_path: Path) -> None:
    limits = PacingLimits(blocks=TurnBlocks(first_step=4, length=5, settling=1), total_share=1.0)
    rank = Rank(tmp_path, "constant:delay=0.01", limits)
    for _ in range(60):
        # A job that is slower where it is not paced.
        rank.step(9 * MS + (0 if rank.pacer.delay_ns else MS), 0)

    assert rank.pacer.is_on
    assert rank.pacer.gain().low > 0


def test_a_policy_that_fails_ends_pacing_and_not_training(tmp_path: Path) -> None:
    rank = Rank(tmp_path, "constant:delay=0.1")

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("no steps")

    rank.pacer._chosen = ChosenPolicy("broken", type(rank.pacer._chosen.policy)("broken", "", {}, broken), {})  # type: ignore[arg-type]

    assert [rank.step(10 * MS, 0) for _ in range(3)] == [0, 0, 0]
    assert not rank.pacer.is_on
    assert "no steps" in rank.recorder.failures["Pacer.install.<locals>.act"][1]


def test_a_bound_that_sees_the_future_cannot_be_run() -> None:
    with pytest.raises(UsageError, match="sees the future"):
        Pacer(choose("oracle"), ALWAYS)


def test_all_ranks_are_in_one_arm_without_a_word() -> None:
    blocks = TurnBlocks(first_step=10, length=5)
    arms = [blocks.is_paced(step) for step in range(1_010)]

    assert arms[:10] == [False] * 10
    # Each pair of blocks has one of each, and either comes first about as often.
    firsts = [arms[10 + 10 * pair] for pair in range(100)]
    assert all(arms[10 + 10 * pair + 5] is not first for pair, first in enumerate(firsts))
    assert 30 < sum(firsts) < 70


def test_the_interval_of_the_gain_covers_it(tmp_path: Path) -> None:
    # given 200 jobs of eight pairs, in which pacing brings 4 % and steps scatter by 3 %
    draw = np.random.default_rng(5)
    blocks = TurnBlocks(first_step=0, length=6, settling=1)
    covered = 0
    for _ in range(200):
        trial = PacingTrial(blocks)
        for step in range(96):
            duration = 10 * MS * (1 + 0.03 * draw.standard_normal())
            trial.saw(step, round(duration / 1.04 if blocks.is_paced(step) else duration))
        gain = trial.gain()
        covered += gain.low <= 0.04 <= gain.high
    assert gain.pairs == 8
    assert covered >= 0.9 * 200


def test_students_t_is_right() -> None:
    for degrees in (1, 2, 3, 4, 7, 15, 40, 300):
        assert student_95(degrees) == pytest.approx(float(t_quantile(float(degrees))), rel=0.01)


def test_a_wait_is_what_goes_beyond_the_shortest_of_its_kind() -> None:
    waits = WaitEstimate()

    assert waits.mean_wait_ns([(1, 100), (2, 50)]) == 0
    assert waits.mean_wait_ns([(1, 160), (2, 50)]) == 30
    assert waits.mean_wait_ns([(1, 80), (2, 70)]) == 10
    assert waits.mean_wait_ns([]) == 0


@pytest.mark.parametrize("ranks", [2, 3, 8, 100])
def test_each_rank_comes_once_after_any_other(ranks: int) -> None:
    held = [{rank for rank in range(ranks) if is_probed(step, rank, ranks)} for step in range(40)]

    pairs = {(rank, other) for some in held for rank in some for other in set(range(ranks)) - some}
    assert len(pairs) == ranks * (ranks - 1)
    assert sum(map(bool, held)) == probe_count(ranks)


def test_a_policy_goes_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    write_policy(path, "bounded_delay:gain=0.3", PredictedGain(1.08, 1.05, 1.11, "supported"))

    chosen = choose(str(path))

    assert (chosen.policy.name, chosen.parameters["gain"]) == ("bounded_delay", 0.3)
    assert chosen.predicted == PredictedGain(1.08, 1.05, 1.11, "supported")
    with live.record(tmp_path, policy=path, rank=0, world_size=1) as one:
        one.step()
    assert one.failures == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "traceforge policy 9", "policy": "none"}', "[" * 10_000])
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.json"
    path.write_text(text)

    with pytest.raises(InputUnusableError):
        choose(str(path))


def test_the_gain_that_was_measured_stands_beside_the_one_foretold(tmp_path: Path) -> None:
    # given transfers that take as much longer as arrivals are spread, so that holding the early rank back helps
    path = tmp_path / "policy.json"
    policy = "bounded_delay:window=2,threshold=0.1,gain=0.4,max_delay=0.5"
    write_policy(path, policy, PredictedGain(1.10, 1.02, 1.5, "supported"))
    limits = PacingLimits(total_share=1.0, longest_share=0.5, blocks=TurnBlocks(first_step=8, length=6, settling=2))
    record_job(
        tmp_path / "traces", steps=58, calls=1, late_ns={1: 3 * MS}, policy=choose(str(path)), limits=limits, spoils=0.5
    )

    with Store(None, is_kept=False) as store:
        api.ingest([tmp_path / "traces"], store, jobs=1)
        api.analyze(store)
        [row] = store.query("FROM replay.paced").to_dicts()
        [(arms, paced)] = store.query(
            "SELECT COUNT(DISTINCT arm), COUNT(*) FILTER (WHERE delay_ns > 0 AND arm = 'unpaced') FROM raw.pacing"
        ).rows()
        html = api.report(store).html

    # then each pair shows the gain, and what was foretold stands beside it
    assert (row["policy"], row["pairs"], row["foretold_verdict"]) == (policy, 4, "supported")
    assert row["throughput_ratio"] > row["throughput_ratio_low"] > 1.02
    assert row["throughput_ratio_high"] < 1.5
    assert (row["agrees"], row["is_dry_run"], row["off_from_iteration"]) == (True, False, None)
    assert row["delay_ns"] > 0
    assert (arms, paced) == (3, 0)
    assert "Measured while the job ran" in html

    # and a comparison with a run that was not paced tells both
    record_job(tmp_path / "plain", steps=58, calls=1, late_ns={1: 3 * MS}, spoils=0.5)
    told = " ".join(run("compare", tmp_path / "plain", tmp_path / "traces").stdout.split())
    assert re.search(
        r"paced: .*was tried: measured \+6\.4 %.*by 4 pairs of blocks, predicted \+10 %", " ".join(told.split())
    )
    json.dumps(row)
