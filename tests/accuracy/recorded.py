"""The recorded jobs of `sample_traces`, judged. In: their folders. Out: a table of what was injected and what was said.

Their truth was measured while they ran, by the programs that did the injecting. What a fault cost is its excess over
the median clean step, known to some 2 % of a step. Where no step was clean its cost is not known: what was injected is
told instead, of which the job may feel less or more, as two hosts share a core.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traceforge import api
from traceforge.store.database import Store

SAMPLES = Path(__file__).parents[2] / "sample_traces"

_FOUND = """
SELECT mode, subject_kind, subject, confidence, delay_ns_per_iteration, delay_low_ns, delay_high_ns, iterations
FROM attribute.finding WHERE confidence <> 'low' ORDER BY finding_id
"""


def recorded() -> list[str]:
    """The table, in lines of Markdown."""
    lines = ["## Recorded jobs (`sample_traces`)", ""]
    lines += ["| job | injected | it cost | first finding | its cost, 95 % interval | others |", "|---" * 6 + "|"]
    return [*lines, *map(_line, sorted(SAMPLES.glob("*/truth.json")))]


def _line(truth: Path) -> str:
    told = json.loads(truth.read_text(encoding="utf-8"))
    with Store(None, threads=1, is_kept=False) as store:
        api.ingest([truth.parent], store, jobs=1)
        found = store.query(_FOUND).to_dicts()
    first, cost, others = "nothing", "none", len(found[1:])
    iterations = len(told["iterations"])
    if found:
        one = found[0]
        iterations = one["iterations"]
        first = f"{one['mode']} of {one['subject_kind']} {one['subject']} ({one['confidence']})"
        cost = f"{_ms(one['delay_ns_per_iteration'])} ({_ms(one['delay_low_ns'])} to {_ms(one['delay_high_ns'])})"
    injected, costs = zip(*_injected(told, iterations), strict=True) if told["faults"] else (["nothing"], ["none"])
    return f"| {told['scenario']} | {'; '.join(injected)} | {'; '.join(costs)} | {first} | {cost} | {others} |"


def _injected(told: dict[str, Any], iterations: int) -> Iterator[tuple[str, str]]:
    """Each fault with its place, and its mean cost over the judged iterations."""
    for fault in told["faults"]:
        place = "" if fault.get("rank") is None else f" of rank {fault['rank']}"
        excess, injected = fault.get("step_excess_ns"), fault.get("injected_ns_per_iteration")
        cost = _ms(sum(excess) / iterations) if excess else "not told"
        if injected and not excess:
            cost += f"; {_ms(sum(injected) / iterations)} of processor time injected"
        yield f"{fault['mode']}{place}", cost


def _ms(time_ns: float | None) -> str:
    return "none" if time_ns is None else f"{time_ns / 1e6:.1f} ms"


if __name__ == "__main__":
    print(*recorded(), sep="\n")
