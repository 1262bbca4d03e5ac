"""What a change would bring. In: a run's terms, its findings and its curve. Out: throughput, GPUs and money.

Communication is latency times steps plus bytes over bandwidth (see `communication`). Where the curve's scales tell the
two apart, both come from the structural fit and its draws; with one scale the truth lies between "all latency" and
"all bytes", and that is the interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.communication import NVLINK, bytes_factor, steps
from traceforge.forecast.ensemble import FURTHEST, Ensemble
from traceforge.forecast.fitted import fitted
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.models.structural import TermFit
from traceforge.forecast.order_statistics import parts_of
from traceforge.forecast.own_time import own_time
from traceforge.forecast.scale_point import ScalePoint, Terms
from traceforge.store.database import Store

Array = NDArray[np.float64]
Finding = Mapping[str, Any]

LOCAL_STEPS = 4
FABRIC_FACTOR = 2.0

_PLACE = "SELECT hosts, collectives FROM forecast.point WHERE run_id = ?"

_FINDINGS = """
SELECT cause, subject_kind, subject, gain_if_fixed, delay_ns_per_iteration, delay_low_ns, delay_high_ns
FROM attribute.finding
WHERE run_id = ? AND confidence IN ('high', 'medium') AND gain_if_fixed > 0
ORDER BY finding_id
"""


@dataclass(frozen=True, slots=True)
class WhatIf:
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
class Place:
    """What the changes of communication need to know of a run.

    Attributes:
        hosts: None where none is named.
        collectives: of a rank and iteration.
        persistent_share: of the lateness of ranks, 0..1 (see `order_statistics`).
    """

    hosts: int | None
    collectives: float
    persistent_share: float


@dataclass(frozen=True, slots=True)
class Communication:
    """A run's communication taken apart, s an iteration, shape (B,): cases or draws, the first is the value."""

    latency_s: Array
    bytes_s: Array
    is_told_apart: bool


def changes_of(point: ScalePoint, ensemble: Ensemble | None, place: Place, assumed: Assumptions) -> list[WhatIf]:
    """What changes of communication would bring at a run's own scale; none where it does not communicate."""
    terms = point.terms
    if terms is None or point.ranks < 2 or terms.exposed_s + terms.hidden_s <= 0:
        return []
    cost = _communication(point, terms, ensemble)
    told = (
        "alpha-beta fit of the measured scales" if cost.is_told_apart else "one scale: between all latency, all bytes"
    )
    result = []
    for kind, change, latency_s, bytes_s in _networks(point, cost, place):
        exposed = np.maximum(0, latency_s + bytes_s + terms.contention_s - terms.hidden_s)
        result.append(_row(point, ensemble, assumed, kind, change, point.step_s / _step(point, terms, exposed), told))
    # Between synchronisations what comes and goes averages out; what lasts does not.
    waiting = terms.waiting_s * (place.persistent_share + (1 - place.persistent_share) * LOCAL_STEPS**-0.5)
    saved = terms.exposed_s * (1 - 1 / LOCAL_STEPS) + terms.waiting_s - waiting
    change = f"Synchronise every {LOCAL_STEPS} steps (local SGD)"
    ratio = np.array([point.step_s / (point.step_s - saved)])
    basis = "exposed communication once in so many steps; waiting that comes and goes averages; convergence not judged"
    return [*result, _row(point, ensemble, assumed, "local_sgd", change, ratio, basis)]


def fixed(point: ScalePoint, ensemble: Ensemble | None, finding: Finding, assumed: Assumptions) -> WhatIf:
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
    if ensemble is None or len(ensemble.points) < 3:
        return point.ranks * (ratio - 1) * gpus_per_rank
    grid = np.arange(point.ranks, FURTHEST * ensemble.largest.ranks + 1)
    reached = np.flatnonzero(ensemble.value(grid) >= ratio * ensemble.value(grid[:1]))
    if not reached.size:
        return None
    above = int(reached[0])
    if above == 0:
        return 0.0
    low, high = ensemble.value(grid[above - 1 : above + 1])
    part = (ratio * float(ensemble.value(grid[:1])[0]) - low) / (high - low)
    return float(above - 1 + part) * gpus_per_rank


def _networks(point: ScalePoint, cost: Communication, place: Place) -> Iterator[tuple[str, str, Array, Array]]:
    n = np.array([float(point.ranks)])
    latency, transferred = cost.latency_s, cost.bytes_s
    yield "faster_fabric", f"Fabric of {FABRIC_FACTOR:.0f} times the bandwidth", latency, transferred / FABRIC_FACTOR
    if point.facts.get("algorithm") != "tree" and point.ranks > 2:
        fewer = float((steps(n, "tree") / steps(n))[0])
        more = float((bytes_factor(n, "tree") / bytes_factor(n))[0])
        yield "tree", "All-reduce by tree in the place of ring", latency * fewer, transferred * more
    inside = point.ranks / place.hosts if place.hosts else 1.0
    size = point.facts.get("size_bytes")
    if place.hosts and place.hosts > 1 and inside > 1 and isinstance(size, float):
        of_host, hosts = np.array([inside]), np.array([float(place.hosts)])
        within_latency = place.collectives * float(steps(of_host)[0]) * NVLINK.latency_s
        within_bytes = size * float(bytes_factor(of_host)[0]) / NVLINK.bytes_per_s
        yield (
            "hierarchical",
            "All-reduce in two levels, hosts first (rail-optimised)",
            latency * float((steps(hosts) / steps(n))[0]) + within_latency,
            transferred * float((bytes_factor(hosts) / bytes_factor(n))[0]) + within_bytes,
        )


def _communication(point: ScalePoint, terms: Terms, ensemble: Ensemble | None) -> Communication:
    total = terms.exposed_s + terms.hidden_s - terms.contention_s
    structural = next((one for one in ensemble.members if one.model.name == "structural"), None) if ensemble else None
    fits = [structural.fit, structural.drawn] if structural else []
    told = [fit for fit in fits if isinstance(fit, TermFit)]
    if not told:
        # The value lies in the middle of the two cases.
        return Communication(total * np.array([0.5, 0.0, 1.0]), total * np.array([0.5, 1.0, 0.0]), False)
    latency = np.concatenate([fit.latency_s for fit in told]) * float(steps(np.array([float(point.ranks)]))[0])
    transferred = np.concatenate([fit.byte_s for fit in told]) * float(bytes_factor(np.array([float(point.ranks)]))[0])
    share = latency / np.maximum(latency + transferred, 1e-15)
    return Communication(total * share, total * (1 - share), True)


def _step(point: ScalePoint, terms: Terms, exposed_s: Array) -> Array:
    result: Array = point.step_s - terms.exposed_s + exposed_s
    return result


def _row(
    point: ScalePoint,
    ensemble: Ensemble | None,
    assumed: Assumptions,
    kind: str,
    change: str,
    ratios: Array,
    basis: str,
) -> WhatIf:
    """The row of a change; `ratios` are the value and, behind it, draws, cases or ends of its interval."""
    ratio = float(ratios[0])
    low, high = (None, None)
    if len(ratios) > 1:
        cases = len(ratios) <= 3
        low, high = (ratios.min(), ratios.max()) if cases else np.percentile(ratios[1:], (2.5, 97.5))
    gpus = gpus_for(point, ensemble, ratio, assumed.gpus_per_rank)
    return WhatIf(
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


def what_ifs(
    point: ScalePoint, ensemble: Ensemble | None, place: Place, findings: Sequence[Finding], assumed: Assumptions
) -> list[WhatIf]:
    """All changes of a run, fixes first, each by what it brings."""
    found = [fixed(point, ensemble, finding, assumed) for finding in findings]
    found += changes_of(point, ensemble, place, assumed)
    return sorted(found, key=lambda one: (one.kind != "fix", -one.throughput_ratio))


def place_of(store: Store, run_id: int) -> Place:
    """Where a run ran, and how lasting its lateness is."""
    ((hosts, collectives),) = store.query(_PLACE, [run_id]).rows()
    own = own_time(store, run_id)
    lasting = 0.0 if own is None or len(own.iterations) < 2 else parts_of(own.own_ns).persistent_share
    return Place(hosts, collectives or 0.0, lasting)


def findings_of(store: Store, run_id: int) -> list[Finding]:
    """Findings of a run that are worth a fix: of high or medium confidence."""
    return list(store.query(_FINDINGS, [run_id]).to_dicts())


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, change), at the default assumptions."""
    result: list[dict[str, object]] = []
    for run_id, fit in fitted(store, with_band=True).items():
        place, findings = place_of(store, run_id), findings_of(store, run_id)
        found = what_ifs(fit.curve.points[0], fit.ensemble, place, findings, Assumptions())
        result += [{"run_id": run_id, **asdict(one)} for one in found]
    return pl.DataFrame(result, infer_schema_length=None)
