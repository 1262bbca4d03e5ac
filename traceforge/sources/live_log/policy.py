"""The policy of a pacing hook. In: facts of a recording. Out: the row of raw.pacing_policy; every value is checked."""

import math
from collections.abc import Mapping

import polars as pl

_LONGEST_TEXT = 500
_MOST_STEPS = 1_000_000


def policy_row(told: object) -> pl.DataFrame | None:
    """The row; None where nobody was paced."""
    facts = _mapping(told)
    policy = facts.get("policy")
    if not isinstance(policy, str):
        return None
    foretold, blocks = _mapping(facts.get("foretold")), _mapping(_mapping(facts.get("limits")).get("blocks"))
    verdict = foretold.get("verdict")
    row = {
        "policy": policy[:_LONGEST_TEXT],
        "foretold_verdict": verdict[:_LONGEST_TEXT] if isinstance(verdict, str) else None,
        "foretold_ratio": _ratio(foretold.get("throughput_ratio")),
        "foretold_ratio_low": _ratio(foretold.get("throughput_ratio_low")),
        "foretold_ratio_high": _ratio(foretold.get("throughput_ratio_high")),
        "first_step": _steps(blocks.get("first_step")),
        "block_steps": _steps(blocks.get("length")),
        "settling_steps": _steps(blocks.get("settling")),
    }
    kinds = [pl.String] * 2 + [pl.Float64] * 3 + [pl.Int32] * 3
    return pl.DataFrame([row], schema=dict(zip(row, kinds, strict=True)))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _ratio(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < math.inf else None


def _steps(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_STEPS else None
