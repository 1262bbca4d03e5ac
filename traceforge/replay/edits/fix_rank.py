"""Fix a rank: its own work never takes longer than the reference of its place (the median over ranks)."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.replay.edit import Edit, EditedJob, place_of_rank
from traceforge.replay.settings import Settings

# Ranks to try on every run: those that arrive last most often.
_TRIED = 3


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    place = place_of_rank(job, float(settings["rank"]))
    return job.without_excess(ranks=[place])


def _usual(job: EditedJob) -> Sequence[Settings]:
    real = job.model.group >= 0
    latest = np.where(real, job.recorded.arrival_ns, np.iinfo(np.int64).min).argmax(axis=2)
    counts = np.bincount(latest[real.any(axis=2)], minlength=len(job.model.ranks))
    places = np.argsort(-counts, kind="stable")[:_TRIED]
    return [{"rank": float(job.model.ranks[place])} for place in places if counts[place]]


EDIT = Edit(
    "fix_rank",
    "One rank's work never exceeds the median over ranks of the same place, whatever made it longer: a finding's gain"
    " takes out its own cause alone, and may be less.",
    MappingProxyType({"rank": 0.0}),
    _apply,
    _usual,
)
