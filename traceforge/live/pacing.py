"""The policy of a replay, run in the job. In: what this rank sees. Out: how long it holds back before its next step.

Idea: the policy is called as in a replay, with this rank's own past in the place of everybody's; ranks do not talk.
Whatever it asks for is cut at a share of the mean step and of the whole run. Blocks with and without pacing take turns,
and pacing switches itself off where it surely costs throughput. A failure ends pacing, never training.
Not handled: policies that see the future.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.live.layout import RowKind
from traceforge.live.limits import PacingLimits
from traceforge.live.trial import Gain, PacingTrial
from traceforge.live.waits import FIRST_PROBE, WaitEstimate, is_probed, probe_count
from traceforge.replay.policy import Past
from traceforge.replay.policy_file import ChosenPolicy

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder

_FIRST_ROWS = 256


class OwnPast:
    """What this rank saw, as policies take it: each column the same, so that its own is where it is in a replay."""

    def __init__(self, rank: int) -> None:
        self._columns = rank + 1
        self._rows = np.zeros((3, _FIRST_ROWS), dtype=np.int64)
        self._total_ns = 0
        self.count = 0

    def add(self, wait_ns: int, delay_ns: int, duration_ns: int) -> None:
        """A step more."""
        if self.count == self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
        self._rows[:, self.count] = wait_ns, delay_ns, duration_ns
        self.count += 1
        self._total_ns += duration_ns

    def mean_step_ns(self) -> float:
        """Mean duration of the steps."""
        return self._total_ns / max(self.count, 1)

    def shortest_ns(self, steps: int) -> int:
        """The shortest of the last steps."""
        return int(self._rows[2, max(self.count - steps, 0) : self.count].min(initial=np.iinfo(np.int64).max))

    def past(self) -> Past:
        """As policies take it."""
        wait, delay, duration = (self._column(row) for row in self._rows[:, : self.count])
        return Past(wait, delay, duration, np.full(self._columns, self._total_ns))

    def _column(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.broadcast_to(values[:, None], (len(values), self._columns))


class Pacer:
    """Holds this rank back, within limits, while it is on.

    Attributes:
        is_on: False once pacing was given up.
        delay_ns: before the step that is under way.
    """

    def __init__(
        self, chosen: ChosenPolicy, limits: PacingLimits, sleep_ns: Callable[[int], None] | None = None
    ) -> None:
        if chosen.policy.sees_future:
            raise UsageError(f"`{chosen.policy.name}` sees the future: no job can run it")
        self.is_on = True
        self.delay_ns = 0
        self._chosen = chosen
        self._limits = limits
        self._sleep_ns = sleep_ns or _sleep_ns
        self._waits = WaitEstimate()
        self._blocks = limits.blocks
        self._trial = PacingTrial(self._blocks)
        self._total_delay_ns = 0
        self._since_ns: int | None = None
        self._past = OwnPast(0)

    def install(self, recorder: "Recorder") -> Callable[[], None]:
        """Begin to pace."""
        self._past = OwnPast(recorder.rank)
        if self._blocks.first_step and (ranks := recorder.tracks.world_size):
            # The same on all ranks, who know how many they are.
            first = max(self._blocks.first_step, FIRST_PROBE + probe_count(ranks) + 1)
            self._blocks = replace(self._blocks, first_step=first)
            self._trial = PacingTrial(self._blocks)
        recorder.tracks.take_met()
        names = {
            (arm, state): recorder.tracks.name(("pace", arm, state))
            for arm in ("paced", "unpaced", "warm_up")
            for state in ("on", "dry_run", "off")
        }
        if recorder.writer is not None:
            recorder.writer.tell({"pacing": self._facts()})

        def act(step: int, start_ns: int, end_ns: int) -> None:
            # Who fails once holds nobody back again.
            has_acted = False
            try:
                self._act(recorder, names, step, start_ns, end_ns)
                has_acted = True
            finally:
                self.is_on = self.is_on and has_acted

        recorder.after_step(act)
        return lambda: None

    def gain(self) -> Gain:
        """What pacing brought so far."""
        return self._trial.gain()

    def _facts(self) -> Mapping[str, object]:
        predicted = self._chosen.predicted
        return {
            "policy": self._chosen.text,
            "foretold": None if predicted is None else asdict(predicted),
            "limits": asdict(replace(self._limits, blocks=self._blocks)),
        }

    def _act(
        self, recorder: "Recorder", names: Mapping[tuple[str, str], int], step: int, start_ns: int, end_ns: int
    ) -> None:
        wait = self._waits.mean_wait_ns(recorder.tracks.take_met())
        self._past.add(wait, self.delay_ns, end_ns - start_ns)
        if self.is_on and self._trial.saw(step, end_ns - start_ns):
            self._judge()
        following = step + 1
        blocks = self._blocks
        asked = self._asked_ns()
        arm = "warm_up" if following < blocks.first_step else "paced" if blocks.is_paced(following) else "unpaced"
        if arm == "paced":
            self.delay_ns = self._allowed_ns(asked, end_ns)
        else:
            self.delay_ns = self._probe_ns(recorder, following) if arm == "warm_up" else 0
        began = recorder.tracks.clock_ns()
        if self.delay_ns:
            self._sleep_ns(self.delay_ns)
            self._total_delay_ns += self.delay_ns
        ended = recorder.tracks.clock_ns() if self.delay_ns else began
        state = "off" if not self.is_on else "dry_run" if self._limits.is_dry_run else "on"
        recorder.tracks.add((RowKind.PACE, names[arm, state], began, ended, asked, wait, following))

    def _probe_ns(self, recorder: "Recorder", step: int) -> int:
        """A delay that makes this rank come last, so that it sees how long a transfer takes."""
        ranks = recorder.tracks.world_size
        if ranks is None or self._limits.is_dry_run or not is_probed(step, recorder.rank, ranks):
            return 0
        return int(self._limits.probe_share * self._past.shortest_ns(FIRST_PROBE - 1))

    def _asked_ns(self) -> int:
        asked = self._chosen.policy.delay(self._past.past(), self._chosen.parameters)
        return max(int(asked[-1]), 0)

    def _allowed_ns(self, asked_ns: int, now_ns: int) -> int:
        """What may be kept of a delay."""
        if self._since_ns is None:
            self._since_ns = now_ns
        if not self.is_on or self._limits.is_dry_run:
            return 0
        mean_ns = self._past.mean_step_ns()
        elapsed_ns = now_ns - self._since_ns + mean_ns * self._blocks.length
        left_ns = self._limits.total_share * elapsed_ns - self._total_delay_ns
        return max(int(min(asked_ns, self._limits.longest_share * mean_ns, left_ns)), 0)

    def _judge(self) -> None:
        """Switch off where pacing surely costs more than it may."""
        gain = self._trial.gain()
        if gain.pairs >= self._limits.least_pairs and gain.high < 0 and gain.value < -self._limits.most_loss:
            self.is_on = False


def _sleep_ns(duration_ns: int) -> None:
    time.sleep(duration_ns / 1e9)
