"""How many random examples a property is tried on. In: as many as it needs. Out: settings of Hypothesis.

Idea: the suite tries a quarter of them, and `.ci/run` tries all of them on fresh seeds right after it.
"""

from typing import Any

from hypothesis import settings


def examples(count: int, **options: Any) -> settings:
    """Settings for `count` fresh examples, and fewer where the profile has fewer than Hypothesis' usual 100."""
    return settings(max_examples=max(1, count * settings().max_examples // 100), deadline=None, **options)
