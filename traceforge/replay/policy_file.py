"""A policy as a file, from the replay that judged it to the job that tries it. In: a policy, and what was predicted.

Idea: the file is JSON with the policy as on the command line, so that a person can read it; `traceforge replay` writes
it, and both `replay` and `traceforge.live` take it in the place of a policy. Imports no library of the analysis.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.replay.policy import Policy, parse_policy

_FORMAT = "traceforge policy 1"
_LARGEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PredictedGain:
    """What a replay said of a policy; see replay.outcome."""

    throughput_ratio: float
    throughput_ratio_low: float
    throughput_ratio_high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """A policy with its parameters.

    Attributes:
        text: as on the command line.
        predicted: what a replay said of it; None where none did.
    """

    text: str
    policy: Policy
    parameters: Mapping[str, float]
    predicted: PredictedGain | None = None


def choose(text: str) -> ChosenPolicy:
    """A policy from text such as `bounded_delay:gain=0.5`, or from the path of a file.

    Raises:
        UsageError: there is no such policy or parameter.
        InputUnusableError: the file cannot be read, or holds no policy.
    """
    if not text.endswith(".json"):
        return ChosenPolicy(text, *parse_policy(text))
    stated = _read(Path(text))
    if stated.get("format") != _FORMAT or not isinstance(named := stated.get("policy"), str):
        raise InputUnusableError("no file of a policy", where=text, hint="`traceforge replay --save-policy` writes one")
    return ChosenPolicy(named, *parse_policy(named), _predicted(stated.get("foretold")))


def write_policy(path: Path, text: str, predicted: PredictedGain) -> None:
    """Write a policy and what a replay predicted of it."""
    document = {"format": _FORMAT, "policy": text, "foretold": asdict(predicted)}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _read(path: Path) -> Mapping[str, object]:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise InputUnusableError("too large for a policy", where=str(path))
        stated = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputUnusableError(f"cannot be read: {error}", where=str(path)) from error
    return stated if isinstance(stated, dict) else {}


def _predicted(stated: object) -> PredictedGain | None:
    if not isinstance(stated, dict):
        return None
    ratios = [stated.get(name) for name in ("throughput_ratio", "throughput_ratio_low", "throughput_ratio_high")]
    ratio, low, high = (float(one) if isinstance(one, int | float) else None for one in ratios)
    if ratio is None or low is None or high is None:
        return None
    return PredictedGain(ratio, low, high, str(stated.get("verdict", "")))
