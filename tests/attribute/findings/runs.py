"""Losses drawn by hand. In: delays by iteration and rank, of iterations of 100. Out: what the search makes of them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tests.replay.models import lockstep_model
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.lost_time import JudgedRun, LostTime
from traceforge.attribute.findings.search import search
from traceforge.attribute.ledger.ledger_input import LedgerInput


def judged_run(
    iterations: int,
    ranks: int,
    *,
    hosts: Sequence[str | None] | None = None,
    groups: Mapping[int, list[int]] | None = None,
    has_device: bool = True,
) -> JudgedRun:
    """A run of iterations that take 100 each, so that delays read as per cent."""
    model = lockstep_model(np.full((iterations, 1, ranks), 90), transfer_ns=10)
    return JudgedRun(
        run_id=0,
        ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)),
        iterations=list(range(iterations)),
        durations_ns=np.full(iterations, 100.0),
        pace_ns=100.0,
        residual_ns=0,
        hosts=list(hosts) if hosts else [None] * ranks,
        members=dict(groups or {}),
        has_device=has_device,
    )


def lost(own: Mapping[str, ArrayLike], cost: Mapping[str, ArrayLike] | None = None) -> LostTime:
    """Losses by cause; what they cost the job is by default the same."""
    arrays = [np.stack([np.asarray(one, dtype=np.float64) for one in by.values()], axis=2) for by in (cost or own, own)]
    return LostTime(tuple(own), *arrays, host_ns=np.full(arrays[0].shape, np.nan))


def found_in(run: JudgedRun, losses: LostTime) -> list[FindingCandidate]:
    """What counts."""
    return [one for one in search(run, losses) if one.confidence != "low"]


def subjects(found: Sequence[FindingCandidate]) -> list[tuple[str, str, str, str, str]]:
    """Kind, name, cause, pattern and confidence of each."""
    return [(f.subject.kind, f.subject.name, f.cause.name, f.effect.pattern, f.confidence) for f in found]


def judged(delays: np.ndarray) -> list[FindingCandidate]:
    """All that is reported of delays of compute by iteration and rank, in the order of ranks."""
    delays = np.asarray(delays, dtype=np.float64)
    found = search(judged_run(*delays.shape), lost({"slow_compute": delays}))
    return sorted((one for one in found if one.effect.pattern != "rotating"), key=lambda one: one.subject.places)


def is_believed(found: list[FindingCandidate]) -> bool:
    """Whether anything of it is more than a hint."""
    return any(one.confidence in ("high", "medium") for one in found)
