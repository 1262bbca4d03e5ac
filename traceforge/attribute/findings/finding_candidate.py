"""One that stands out. In: a subject, causes and an effect. Out: the type that is costed, graded and put in words."""

from dataclasses import dataclass, field

from traceforge.attribute.cause import UNEXPLAINED, Cause
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.subjects import Subject


@dataclass(frozen=True, slots=True)
class FindingCandidate:
    """One that stands out: who, by which cause, what it did.

    Attributes:
        parts: of its delay by cause, ns an iteration.
        is_in_turns: whether its ranks lose it in turns.
        communicators: places in the ledger of the communicators whose transfers are slow; empty for work, and for all.
        companion_of: a far greater cause of the same subject, or one that strikes at the same times, of which this may
            be a by-product.
        followers: causes of work that goes with it where it is removed, beside those it has parts of.
        beside_ns: slow transfers that may be its by-product, ns an iteration.
    """

    cause: Cause
    effect: Effect
    subject: Subject
    parts: dict[str, float] = field(default_factory=dict)
    is_in_turns: bool = False
    communicators: tuple[int, ...] = ()
    companion_of: str | None = None
    followers: tuple[str, ...] = ()
    beside_ns: float = 0.0

    @property
    def removed(self) -> list[str]:
        """Causes of the work that a run without it would not have."""
        return [*self.parts, *self.followers]

    @property
    def confidence(self) -> str:
        """Grade, with what a by-product or an unknown cause takes from it."""
        if self.companion_of:
            return "low"
        # That time is lost may be certain; why is not.
        is_high = self.effect.confidence == "high"
        return "medium" if is_high and self.cause.mode == UNEXPLAINED.mode else self.effect.confidence
