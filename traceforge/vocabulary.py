"""What events are called from end to end. In: `vocabulary.toml`. Out: event classes, activities, gaps, owning causes.

Every stage that needs one of these names, or the mapping from one to the next, reads it here. Comments of SQL files
name them by a placeholder such as `{activities}`, see `fill_placeholders`.
"""

import re
from functools import cache, cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

IGNORED = "ignored"
"""Class of events that say nothing about work."""

UNNAMED = "unnamed"
"""Activity of a training thread that is under no name."""

_FILE = Path(__file__).with_suffix(".toml")


class EventClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One row of the file, which explains the fields; without a pattern any name matches, without categories any."""

    name: str
    example: tuple[str, str] | None = None
    categories: frozenset[str] | None = None
    pattern: str = ""
    activity: bool = False
    replaces_device: bool = False
    gap_cause: str | None = None
    yields_to_copy: bool = False
    cause: str | None = None
    phases: tuple[str, ...] = ("transfer", "wait", "communication", "runtime")

    @cached_property
    def _name(self) -> "re.Pattern[str]":
        return re.compile(self.pattern, re.IGNORECASE)

    def matches(self, category: str | None, name: str) -> bool:
        """Whether the row applies to an event of this canonical category and name."""
        return (self.categories is None or category in self.categories) and self._name.search(name) is not None


class _Unnamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cause: str
    phases: tuple[str, ...]


class _Profiler(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    categories: tuple[str, ...]


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The whole file.

    Attributes:
        collective_libraries: how names of their kernels and calls begin.
        recorded_kernels: pattern of names of device work of which PyTorch records the call.
        phases: what a rank does at an instant, by precedence.
        backward_operations: pattern of names of operations that only a thread of the backward pass runs.
        inference_steps: by what a step is called, the pattern of an inference engine's annotations around its batches.
        canonical_categories: today's spelling of older and other vendors' categories.
        classes: event classes by precedence.
        unnamed: what owns time under no name.
        profiler: what else the profiler writes.
    """

    collective_libraries: tuple[str, ...]
    recorded_kernels: str
    phases: tuple[str, ...]
    backward_operations: str
    inference_steps: dict[str, str]
    canonical_categories: dict[str, str]
    classes: tuple[EventClass, ...] = msgspec.field(name="class")
    unnamed: _Unnamed
    profiler: _Profiler

    @cached_property
    def known_categories(self) -> frozenset[str]:
        """Categories that PyTorch's profiler writes, in any spelling."""
        classed = (one.categories or () for one in self.classes)
        return frozenset(self.profiler.categories).union(self.canonical_categories, *classed)

    @cached_property
    def activities(self) -> tuple[EventClass, ...]:
        """Classes that keep a host thread busy, by precedence."""
        return tuple(one for one in self.classes if one.activity)

    @property
    def causes(self) -> frozenset[str]:
        """Names of the causes that own work."""
        return frozenset(one.cause for one in self._owners.values() if one.cause is not None)

    def is_recorded(self, kernel: str) -> bool:
        """Whether PyTorch's process groups record the calls of device work of this name."""
        return re.search(self.recorded_kernels, kernel, re.IGNORECASE) is not None

    def inference_step(self, annotation: str) -> str | None:
        """What a step is called that an inference engine annotates so; None where none does."""
        return next((step for step, names in self._inference_steps if names.search(annotation)), None)

    @cached_property
    def _inference_steps(self) -> "list[tuple[str, re.Pattern[str]]]":
        return [(step, re.compile(pattern)) for step, pattern in self.inference_steps.items()]

    @cached_property
    def _owners(self) -> dict[str, EventClass | _Unnamed]:
        return {UNNAMED: self.unnamed, **{one.name: one for one in self.classes}}

    def classify(self, category: str | None, name: str) -> tuple[str | None, str]:
        """Canonical category and class of an event."""
        canonical = self.canonical_categories.get(category, category) if category else None
        return canonical, next(one.name for one in self.classes if one.matches(canonical, name))

    def cause_of_work(self, phase: str, activity: str | None) -> str | None:
        """Name of the cause that owns work of a kind; None where none does."""
        owner = self._owners.get(activity or phase)
        return owner.cause if owner is not None and phase in owner.phases else None


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary of this version."""
    words = msgspec.toml.decode(_FILE.read_bytes(), type=Vocabulary)
    any_library = f"(?:{'|'.join(words.collective_libraries)})"
    classes = (replace(one, pattern=one.pattern.replace("{libraries}", any_library)) for one in words.classes)
    recorded = words.recorded_kernels.replace("{libraries}", any_library)
    return replace(words, classes=tuple(classes), recorded_kernels=recorded)


def fill_placeholders(text: str) -> str:
    """A text with `{phases}`, `{event_classes}`, `{activities}` and `{held_gap_causes}` replaced by the lists."""
    words = vocabulary()
    lists = {
        "{phases}": words.phases,
        "{event_classes}": [one.name for one in words.classes],
        "{activities}": [one.name for one in words.activities],
        "{held_gap_causes}": [one.gap_cause for one in words.activities if one.gap_cause],
    }
    for placeholder, names in lists.items():
        text = text.replace(placeholder, ", ".join(names))
    return text
