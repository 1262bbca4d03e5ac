"""Tables of operations to read. In: operations in ms. Out: Parquet, in the columns of published ones.

pipeline of two stages, two replicas; ranks by (replica, stage): (0, 0) 0   (1, 0) 1   (0, 1) 2   (1, 1) 3
"""

from collections.abc import Iterable
from io import BytesIO
from typing import NamedTuple

import polars as pl

PLACES = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}


class Timed(NamedTuple):
    """An operation of a rank, ms since its step began."""

    dp_rank: int
    stage: int
    step: int
    optype: str
    start_ms: float
    end_ms: float
    seq_id: int = 0


def parquet(operations: Iterable[Timed], **columns: object) -> bytes:
    """A file; further columns hold one value each."""
    rows = [
        (one.dp_rank, one.stage, PLACES.get((one.dp_rank, one.stage), 9), one.step, one.optype, one.seq_id,
         one.start_ms / 1e3, (one.end_ms - one.start_ms) / 1e3)
        for one in operations
    ]  # fmt: skip
    names = ("dp_rank", "stage", "rank", "step", "optype", "seq_id", "start_ts", "duration")
    frame = pl.DataFrame(rows, schema=list(names), orient="row").with_columns(
        **{name: pl.lit(value) for name, value in columns.items()}
    )
    written = BytesIO()
    frame.write_parquet(written)
    return written.getvalue()


def pipeline(steps: int, slow_ms: float = 0.0, slow: tuple[int, int] = (0, 0)) -> list[Timed]:
    """Steps of two passes a stage, a reduction of gradients and one of their norm, in ms.

    stage 0   F 10 |s|             |r| B 20 | reduce | norm | optimizer
    stage 1       |r| F 10 | B 20 |s|  reduce |        norm | optimizer

    Args:
        slow_ms: by which every pass of one rank is longer.
        slow: its replica and stage.
    """
    found = []
    for step in range(steps):
        done = {}
        for dp in (0, 1):
            more = {stage: slow_ms if slow == (dp, stage) else 0.0 for stage in (0, 1)}
            sent = 10 + more[0]
            turned = sent + 31 + 2 * more[1]
            found += [
                Timed(dp, 0, step, "forward-compute", 0, sent),
                Timed(dp, 0, step, "forward-send", sent, sent + 1),
                Timed(dp, 1, step, "forward-recv", 0, sent + 1),
                Timed(dp, 1, step, "forward-compute", sent + 1, sent + 11 + more[1]),
                Timed(dp, 1, step, "backward-compute", sent + 11 + more[1], turned),
                Timed(dp, 1, step, "backward-send", turned, turned + 1),
                Timed(dp, 0, step, "backward-recv", sent + 1, turned + 1),
                Timed(dp, 0, step, "backward-compute", turned + 1, turned + 21 + more[0]),
            ]
            done[dp, 0], done[dp, 1] = turned + 21 + more[0], turned + 1
        last = max(done.values()) + 3
        for dp, stage in PLACES:
            reduced = max(done[0, stage], done[1, stage]) + 2
            found += [
                Timed(dp, stage, step, "grads-reduce-scatter", done[dp, stage], reduced),
                Timed(dp, stage, step, "optimizer-clip-main-grad", reduced, last),
                Timed(dp, stage, step, "optimizer", last, last + 4),
            ]
    return found
