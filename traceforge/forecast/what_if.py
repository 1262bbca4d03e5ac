"""What a change would bring. In: a run's terms, its findings and its curve. Out: throughput, GPUs and money.

Where the replay of the recorded iterations covers a change, its ratio is taken. Other changes come from the
alpha-beta model: communication is latency times steps plus bytes over bandwidth (see `all_reduce`). Where the
curve's scales separate the two, both come from the structural fit and its draws; with one scale the truth lies
between "all latency" and "all bytes", and that is the interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.ensemble import Ensemble
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.models.structural import TermFit
from traceforge.forecast.points import curves
from traceforge.forecast.scale_point import ScalePoint, StepTerms
from traceforge.replay.all_reduce import NVLINK_BYTES_PER_S, Transfer, as_tree, bytes_factor, in_two_levels, steps
from traceforge.stats import percentile_interval
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds
from traceforge.thresholds.replay import MOST_STEP_LATENCY_NS

Array = NDArray[np.float64]
Finding = Mapping[str, Any]
Edit = Mapping[str, Any]

FABRIC_FACTOR = 2.0

_EDITS = {
    "scale_transfer": ("faster_fabric", "Transfers in half the time, as over a fabric twice as fast"),
    "local_sgd": ("local_sgd", "Exchange gradients every 4 steps (local SGD)"),
    "tree": ("tree", "All-reduce by tree in the place of ring"),
    "hierarchical": ("hierarchical", "All-reduce in two levels, hosts first (rail-optimised)"),
}
_REPLAYED = "replay of the recorded iterations; what it does to convergence is not judged"

_REPLAYS = """
SELECT edit, throughput_ratio, throughput_ratio_low, throughput_ratio_high
FROM replay.what_if
WHERE run_id = ? AND throughput_ratio IS NOT NULL
  AND (edit <> 'local_sgd' OR parameters LIKE 'every=4%')
  AND (edit <> 'scale_transfer' OR parameters LIKE 'factor=0.5%')
QUALIFY ROW_NUMBER() OVER (PARTITION BY edit ORDER BY parameters) = 1
ORDER BY edit
"""

_MACHINES = "SELECT hosts, collectives FROM forecast.point WHERE run_id = ?"

_FINDINGS = """
SELECT cause, subject_kind, subject, gain_if_fixed, delay_ns_per_iteration, delay_low_ns, delay_high_ns
FROM attribute.finding
WHERE run_id = ? AND confidence IN ('high', 'medium') AND gain_if_fixed > 0
ORDER BY finding_id
"""


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """One change; see forecast.what_if for the fields."""

    ranks: int
    kind: str
    change: str
    throughput_ratio: float
    low: float | None
    high: float | None
    gpus: float | None
    worth_per_hour: float | None
    break_even_price: float
    basis: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run's tables hold about changes.

    Attributes:
        hosts: None where none is named.
        collectives: of a rank and iteration.
        findings: rows of attribute.finding of high or medium confidence.
        edits: rows of replay.what_if that are of interest here.
    """

    hosts: int | None
    collectives: float
    findings: Sequence[Finding] = ()
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class CommunicationSplit:
    """A run's communication taken apart, s an iteration, shape (B,): cases or draws, the first is the value."""

    latency_s: Array
    bytes_s: Array
    is_separated: bool


def changes_of(
    point: ScalePoint, ensemble: Ensemble | None, recorded: Recorded, assumed: Assumptions
) -> list[WhatIfRow]:
    """What other ways to communicate would bring at a run's own scale; none where it does not communicate.

    The share of the communication that compute hides is taken to stay.
    """
    terms = point.terms
    if terms is None or point.ranks < 2 or terms.exposed_s + terms.hidden_s <= 0:
        return []
    split = _split(point, terms, ensemble, recorded)
    basis = (
        "alpha-beta fit of the measured scales"
        if split.is_separated
        else "only one scale was recorded: the interval goes from no latency to the most that fits"
    )
    shown = terms.exposed_s / (terms.exposed_s + terms.hidden_s)
    result = []
    for kind, change, communication_s in _networks(point, split, recorded):
        exposed = shown * (communication_s + terms.contention_s)
        ratios: Array = point.step_s / (point.step_s - terms.exposed_s + exposed)
        result.append(_row(point, ensemble, assumed, kind, change, ratios, basis))
    return result


def replayed_of(
    point: ScalePoint, ensemble: Ensemble | None, edits: Sequence[Edit], assumed: Assumptions
) -> list[WhatIfRow]:
    """Effects that the replay of the recorded iterations found."""
    result = []
    for edit in edits:
        kind, change = _EDITS[edit["edit"]]
        ends = (edit["throughput_ratio_low"], edit["throughput_ratio_high"])
        ratios = np.array([edit["throughput_ratio"], *(end for end in ends if end is not None)])
        result.append(_row(point, ensemble, assumed, kind, change, ratios, _REPLAYED))
    return result


def fixed(point: ScalePoint, ensemble: Ensemble | None, finding: Finding, assumed: Assumptions) -> WhatIfRow:
    """What fixing a finding would bring; its interval is that of the finding's delay."""
    gain, delay = finding["gain_if_fixed"], finding["delay_ns_per_iteration"]
    ends = [finding["delay_low_ns"], finding["delay_high_ns"]]
    ratios = [1 + gain]
    if delay > 0 and None not in ends:
        ratios += [1 + gain * end / delay for end in ends]
    cause = str(finding["cause"]).replace("_", " ")
    subject = "the job" if finding["subject_kind"] == "job" else f"{finding['subject_kind']} {finding['subject']}"
    basis = "replay without this delay; interval of the delay"
    return _row(point, ensemble, assumed, "fix", f"Fix {cause} of {subject}", np.array(ratios), basis)


def gpus_for(point: ScalePoint, ensemble: Ensemble | None, ratio: float, gpus_per_rank: int) -> float | None:
    """GPUs to add for so many times the throughput: along the curve, else at the present efficiency."""
    if ratio < 1:
        return None
    if ensemble is None or len(ensemble.points) < thresholds.LEAST_SCALES:
        return point.ranks * (ratio - 1) * gpus_per_rank
    grid = np.arange(point.ranks, ensemble.furthest + 1.0)
    reached = np.flatnonzero(ensemble.value(grid) >= ratio * ensemble.value(grid[:1]))
    if not reached.size:
        return None
    above = int(reached[0])
    if above == 0:
        return 0.0
    low, high = ensemble.value(grid[above - 1 : above + 1])
    part = (ratio * float(ensemble.value(grid[:1])[0]) - low) / (high - low)
    return float(above - 1 + part) * gpus_per_rank


def _networks(point: ScalePoint, split: CommunicationSplit, recorded: Recorded) -> Iterator[tuple[str, str, Array]]:
    n = np.array([float(point.ranks)])
    ring = Transfer(split.latency_s, split.bytes_s)
    yield (
        "faster_fabric",
        f"Fabric of {FABRIC_FACTOR:.0f} times the bandwidth",
        ring.latency + ring.carried / FABRIC_FACTOR,
    )
    hosts = np.array([float(min(recorded.hosts or point.ranks, point.ranks))])
    if point.facts.get("algorithm") != "tree" and hosts[0] > 1 and point.ranks > 2:
        yield "tree", "All-reduce by tree in the place of ring", as_tree(ring, n, hosts).total
    size = point.facts.get("size_bytes")
    if recorded.hosts and 1 < recorded.hosts < point.ranks and isinstance(size, int | float):
        speed = NVLINK_BYTES_PER_S * ring.carried / (size * bytes_factor(n))
        two_levels = in_two_levels(ring, n, hosts, np.maximum(speed, 1.0))
        yield "hierarchical", "All-reduce in two levels, hosts first (rail-optimised)", two_levels.total


def _split(point: ScalePoint, terms: StepTerms, ensemble: Ensemble | None, recorded: Recorded) -> CommunicationSplit:
    total = terms.exposed_s + terms.hidden_s - terms.contention_s
    most = _most_latency(point, recorded, total)
    structural = next((one for one in ensemble.members if one.model.name == "structural"), None) if ensemble else None
    fits = [structural.fit, structural.drawn] if structural else []
    by_term = [fit.fit for fit in fits if fit is not None and isinstance(fit.fit, TermFit)]
    if not by_term:
        # The value lies in the middle of the two cases.
        latency = most * np.array([0.5, 0.0, 1.0])
        return CommunicationSplit(latency, total - latency, False)
    latency = np.concatenate([fit.latency_s for fit in by_term]) * float(steps(np.array([float(point.ranks)]))[0])
    transferred = np.concatenate([fit.byte_s for fit in by_term]) * float(
        bytes_factor(np.array([float(point.ranks)]))[0]
    )
    share = latency / np.maximum(latency + transferred, 1e-15)
    found = np.minimum(total * share, most)
    return CommunicationSplit(found, total - found, True)


def _most_latency(point: ScalePoint, recorded: Recorded, total_s: float) -> float:
    """What steps may take at most of a communication, s: no network's step takes longer than a known one's."""
    if not recorded.collectives:
        return total_s
    ns = recorded.collectives * float(steps(np.array([float(point.ranks)]))[0]) * MOST_STEP_LATENCY_NS
    return min(total_s, ns / 1e9)


def _row(
    point: ScalePoint,
    ensemble: Ensemble | None,
    assumed: Assumptions,
    kind: str,
    change: str,
    ratios: Array,
    basis: str,
) -> WhatIfRow:
    """The row of a change; `ratios` are the value and, behind it, draws, cases or ends of its interval."""
    ratio = float(ratios[0])
    low, high = (None, None)
    if len(ratios) > 1:
        cases = len(ratios) <= 3
        low, high = (ratios.min(), ratios.max()) if cases else percentile_interval(ratios[1:])
    gpus = gpus_for(point, ensemble, ratio, assumed.gpus_per_rank)
    return WhatIfRow(
        ranks=point.ranks,
        kind=kind,
        change=change,
        throughput_ratio=ratio,
        low=None if low is None else min(float(low), ratio),
        high=None if high is None else max(float(high), ratio),
        gpus=gpus,
        worth_per_hour=None if gpus is None else gpus * assumed.price,
        break_even_price=(ratio - 1) * assumed.price,
        basis=basis,
    )


def what_ifs(point: ScalePoint, ensemble: Ensemble | None, recorded: Recorded, assumed: Assumptions) -> list[WhatIfRow]:
    """All changes of a run, fixes first, each by what it brings; a model adds only what the replay does not cover."""
    found = [fixed(point, ensemble, finding, assumed) for finding in recorded.findings]
    found += replayed_of(point, ensemble, recorded.edits, assumed)
    replayed = {one.kind for one in found}
    found += [one for one in changes_of(point, ensemble, recorded, assumed) if one.kind not in replayed]
    return sorted(found, key=lambda one: (one.kind != "fix", -one.throughput_ratio))


def recorded_of(store: Store, run_id: int) -> Recorded:
    """What a run's tables hold about changes: where it ran, its findings, and its replays."""
    ((hosts, collectives),) = store.rows(_MACHINES, [run_id])
    findings, edits = (store.records(sql, [run_id]) for sql in (_FINDINGS, _REPLAYS))
    return Recorded(hosts, collectives or 0.0, findings, [edit for edit in edits if edit["edit"] in _EDITS])


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, change), at the default assumptions."""
    result: list[dict[str, object]] = []
    for run_id, curve in store.once(curves).items():
        found = what_ifs(curve.points[run_id], curve.ensemble, recorded_of(store, run_id), Assumptions())
        result += [{"run_id": run_id, **asdict(one)} for one in found]
    return pl.DataFrame(result, infer_schema_length=None)
