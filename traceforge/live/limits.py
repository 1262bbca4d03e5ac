"""What pacing may do to a job at most. In: nothing. Out: settings with safe values."""

from dataclasses import dataclass, field

from traceforge.live.trial import TurnBlocks


@dataclass(frozen=True, slots=True)
class PacingLimits:
    """What pacing may do at most.

    Attributes:
        is_dry_run: decide and record, but hold nobody back.
        longest_share: longest delay, a share of this rank's mean step.
        total_share: all delays together, a share of the time since the first block.
        probe_share: how far a rank holds back in the few steps that show it what a transfer takes, a share of a step.
        most_loss: pacing ends once it surely costs throughput, and more than this share.
        least_pairs: pairs of blocks before it may end so.
        blocks: how steps are dealt to the arms.
    """

    is_dry_run: bool = False
    longest_share: float = 0.25
    total_share: float = 0.10
    probe_share: float = 0.5
    most_loss: float = 0.01
    least_pairs: int = 3
    blocks: TurnBlocks = field(default_factory=TurnBlocks)
