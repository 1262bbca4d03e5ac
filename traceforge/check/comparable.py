"""Whether an earlier run can be a baseline. In: its summary, and the run that is checked. Out: nothing, or a refusal.

A run on another number of ranks is another job: its times say nothing of this one's. `compare` refuses the same, in the
same words. Not handled: batch and model, which no trace states.
"""

from collections.abc import Mapping

from traceforge.errors import InputUnusableError, UsageError
from traceforge.store.database import Store

_RANKS = """
SELECT COALESCE(r.world_size, (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id)) AS ranks
FROM meta.run AS r
WHERE r.run_id = ?
"""


def refuse_unlike(store: Store, run_id: int, summary: Mapping[str, object], *, where: str) -> None:
    """Refuse a baseline of another number of ranks; one that states none passes.

    Raises:
        InputUnusableError: the summary is damaged where it states the ranks.
        UsageError: the baseline is of another number of ranks.
    """
    run = summary.get("run")
    if not isinstance(run, Mapping):
        return
    before = run.get("world_size") or run.get("ranks")
    if before is not None and not isinstance(before, int):
        raise InputUnusableError("the summary is damaged at run.world_size", where=where)
    now = store.value(_RANKS, [run_id])
    if before and now and before != now:
        raise UsageError(
            f"not comparable by world_size ({before} against {now}): a different number of ranks is a different job:"
            " its collectives and its share of work differ",
            where=where,
            hint="name a baseline on as many ranks; --force checks against this one all the same",
        )
