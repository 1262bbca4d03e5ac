"""How many random examples a property is tried on. In: as many as it needs. Out: settings of Hypothesis.

Idea: the suite tries a quarter of them, and `.ci/run` tries all of them on fresh seeds.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings


def examples(count: int, suppress_health_check: Sequence[HealthCheck] = (), **options: Any) -> settings:
    """Settings for `count` fresh examples, and fewer where the profile has fewer than Hypothesis' usual 100."""
    usual = settings()
    health = [*usual.suppress_health_check, *suppress_health_check]
    return settings(max_examples=max(1, count * usual.max_examples // 100), suppress_health_check=health, **options)
