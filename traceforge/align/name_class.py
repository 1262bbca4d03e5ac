"""What events are. Reads the distinct names in raw.kineto_event; fills align.name_class.

Each (category, name) is judged once by the first matching rule of `event_classes.toml`, so that a new vendor or era
is a line of data. Only complete events (phase X) take part.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import polars as pl

from traceforge.align.collective_names import operation_of
from traceforge.store.database import Store

_NAMES = """
SELECT DISTINCT category, name FROM raw.kineto_event WHERE phase = 'X' AND name IS NOT NULL ORDER BY category, name
"""
_WITH_OPERATION = ("communication", "host_communication", "communication_call")


@dataclass(frozen=True, slots=True)
class _Rule:
    name: "re.Pattern[str] | None"
    categories: frozenset[str] | None
    event_class: str

    def matches(self, category: str | None, name: str) -> bool:
        if self.categories is not None and category not in self.categories:
            return False
        return self.name is None or self.name.search(name) is not None


@cache
def _rules() -> tuple[dict[str, str], tuple[_Rule, ...]]:
    text = (resources.files("traceforge.align") / "event_classes.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    rules = tuple(
        _Rule(
            re.compile(rule["name"], re.IGNORECASE) if "name" in rule else None,
            frozenset(rule["categories"]) if "categories" in rule else None,
            rule["class"],
        )
        for rule in table["rules"]
    )
    return table["canonical_categories"], rules


def classify(category: str | None, name: str) -> tuple[str | None, str]:
    """Canonical category and class of an event."""
    canonical, rules = _rules()
    today = canonical.get(category, category) if category else None
    return today, next(rule.event_class for rule in rules if rule.matches(today, name))


def rows(store: Store) -> pl.DataFrame:
    """One row a distinct (category, name)."""
    result = []
    for category, name in store.query(_NAMES).iter_rows():
        today, event_class = classify(category, name)
        op = operation_of(name) if event_class in _WITH_OPERATION else None
        result.append((category, name, today, event_class, op))
    schema = dict.fromkeys(("category", "name", "canonical_category", "class", "op"), pl.String)
    return pl.DataFrame(result, schema=schema, orient="row")
