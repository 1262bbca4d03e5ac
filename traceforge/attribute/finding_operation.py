"""The next step of a finding that an operation explains. In: findings, tables of `operation`. Out: the same findings.

A rank that computes longer because it does more work needs another look than one whose device is slow: the difference
from the median rank decides, where it explains enough of the delay. So does what it is sent: an expert that gets more
tokens than the others has more to do.
"""

from collections.abc import Callable, Mapping
from typing import Any

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, times

_LARGEST = """
SELECT run_id, CAST(rank AS VARCHAR) AS subject, kind, name, excess_ns_per_iteration, calls, peer_calls,
  call_duration_ns, peer_call_duration_ns, is_work_known
FROM operation.difference
-- What a recording of traceforge.live sums up is no operation whose shapes anybody could see.
WHERE kind <> 'gap' AND name <> 'device_work'
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id, rank ORDER BY place) = 1
"""

_LOADED = "SELECT run_id, CAST(rank AS VARCHAR), ratio FROM operation.all_to_all_load WHERE ratio IS NOT NULL"

_LONGEST_NAME = 80


def steps_of_operations(store: Store) -> Callable[[Mapping[str, Any]], str]:
    """The next step of a finding, which names the operation that explains the slow compute of a rank."""
    largest = {(row["run_id"], row["subject"]): row for row in store.records(_LARGEST)}
    loads = {(run, rank): float(ratio) for run, rank, ratio in store.rows(_LOADED)}

    def step_of(finding: Mapping[str, Any]) -> str:
        key = finding["run_id"], finding["subject"]
        if (finding["subject_kind"], finding["cause"]) != ("rank", "slow_compute"):
            return str(finding["next_step"])
        ratio = loads.get(key, 1.0)
        is_sent_more = ratio >= thresholds.HOT_EXPERT_RATIO
        return _routing_step(finding["subject"], ratio) if is_sent_more else _next_step(finding, largest.get(key))

    return step_of


def _routing_step(rank: str, ratio: float) -> str:
    """Where to look if the rank is sent more than others."""
    return (
        f"See why rank {rank} sends and receives {ratio:.2g} times as much as the median rank in"
        " all-to-all calls: if its experts get more tokens, even out the routing (balancing loss, capacity, placement)"
        " before you look at its device."
    )


def _is_by_number(found: Mapping[str, Any]) -> bool:
    """Whether the number of calls makes at least half of what the rank takes longer; one more at an edge does not."""
    peer_ns = found["peer_call_duration_ns"] or 0
    excess_ns = found["calls"] * found["call_duration_ns"] - found["peer_calls"] * peer_ns
    return bool(2 * (found["calls"] - found["peer_calls"]) * peer_ns >= excess_ns)


def _next_step(finding: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
    usual = str(finding["next_step"])
    if found is None or found["excess_ns_per_iteration"] < thresholds.NAMED_SHARE * finding["delay_ns_per_iteration"]:
        return usual
    rank, name = finding["subject"], " ".join(found["name"].split())[:_LONGEST_NAME]
    often, peers = times(found["calls"]), times(found["peer_calls"])
    match found["kind"]:
        case "new_operation":
            return f"Find out why rank {rank} alone runs {name} ({often} an iteration): code or a setting of its own."
        case "more_work" if often != peers and _is_by_number(found):
            return (
                f"Find out why rank {rank} runs {name} {often} an iteration and the median rank {peers}: the batch, "
                "sequence lengths or experts it was given, or code that only it runs."
            )
        case "more_work":
            return f"Compare the shapes of {name} on rank {rank} with another rank's: batch, sequence lengths, experts."
    call, peer = format_ns(found["call_duration_ns"]), format_ns(found["peer_call_duration_ns"] or 0)
    amount = (
        ", for as much work" if found["is_work_known"] else "; whether for as much work is not known: see its shapes"
    )
    return f"{name} takes {call} a call on rank {rank}, {peer} on the median rank{amount}. {usual}"
