"""Verdict and findings. In: queries on attribute.verdict, finding and evidence. Out: `Diagnosis`, texts cleaned.

Findings keep the order of attribute.finding; a verdict of kind `finding` states the first of them. Sentences from the
tables may quote names from traces and are cleaned here, once.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from traceforge.report.formatting import clean, duration, duration_range, mode_name, percent, spaced
from traceforge.thresholds.attribute import SPREAD_SHARE

Rows = Callable[..., list[dict[str, Any]]]

CONFIDENCES = ("high", "medium", "low")
_SENTENCE_LIMIT = 1_200
_LONGEST_HEADLINE = 400
_LONGEST_OPENING = 220
_LONGEST_EXPLANATION = 2_400


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; durations in ns per iteration, `share` and `gain_if_fixed` 0..1 or None."""

    finding_id: int
    mode: str
    cause: str
    subject_kind: str
    subject: str
    delay_ns: float
    low_ns: float | None
    high_ns: float | None
    share: float | None
    confidence: str
    gain_if_fixed: float | None
    first_iteration: int | None
    last_iteration: int | None
    pattern: str
    summary: str
    next_step: str
    evidence_for: tuple[str, ...]
    evidence_against: tuple[str, ...]
    moment_iteration: int | None = None
    moment_rank: int | None = None
    host: str = ""
    gain_if_all_fixed: float | None = None
    iterations: int | None = None
    affected_iterations: int | None = None
    p_value: float | None = None
    ranks: tuple[int, ...] = ()

    @property
    def is_significant(self) -> bool:
        """Whether it is more than a hint."""
        return self.confidence in CONFIDENCES[:-1]

    @property
    def what(self) -> str:
        """Failure mode and cause in words."""
        cause = spaced(self.cause)
        return f"{mode_name(self.mode)}: {cause}" if cause and cause != self.mode else mode_name(self.mode)

    @property
    def cost(self) -> str:
        """The delay with its interval."""
        interval = duration_range(self.low_ns, self.high_ns)
        return f"{duration(self.delay_ns)} ({interval})" if interval else duration(self.delay_ns)

    def part_of(self, pace_ns: float | None) -> str:
        """The delay as a part of what an iteration takes of the job's time; empty where that is not known."""
        return f"{percent(self.delay_ns / pace_ns)} of {duration(pace_ns)}" if pace_ns else ""

    @property
    def period(self) -> str:
        """When it was seen, such as `persistent, iterations 4 to 19`."""
        if self.iterations == 1 and self.first_iteration is not None:
            return f"iteration {self.first_iteration}, the only one judged"
        pattern = "once" if self.pattern == "one_off" else spaced(self.pattern)
        if self.first_iteration is None or self.last_iteration is None:
            return pattern
        if self.first_iteration == self.last_iteration:
            return f"{pattern}, iteration {self.first_iteration}"
        return f"{pattern}, iterations {self.first_iteration} to {self.last_iteration}"

    @property
    def is_of_several(self) -> bool:
        """Whether it blames some of the ranks together."""
        return self.subject_kind in ("host", "stage", "ranks")

    @property
    def rank(self) -> int | None:
        """The rank it concerns, where it concerns one."""
        digits = self.subject.removeprefix("rank").strip()
        return int(digits) if self.subject_kind == "rank" and digits.isdigit() and len(digits) < 10 else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in words; `kind` is `finding`, `nothing_significant` or `cannot_be_known`."""

    kind: str
    headline: str
    explanation: str
    confidence: str
    next_step: str
    delay_share: float | None
    is_unbalanced: bool
    is_common: bool

    @property
    def state(self) -> str:
        """The kind, or `unsure` where nothing is significant but that is not certain, or much could be gained."""
        is_lossy = self.delay_share is not None and self.delay_share >= SPREAD_SHARE
        is_plain = self.confidence != "low" and not (is_lossy or self.is_unbalanced or self.is_common)
        is_unsure = self.kind == "nothing_significant" and not is_plain
        return "unsure" if is_unsure else self.kind

    @property
    def shown_confidence(self) -> str:
        """The confidence beside the answer; empty where the answer is that there is none."""
        return "" if self.kind == "cannot_be_known" else self.confidence

    @property
    def confidence_said(self) -> str:
        """The confidence, and of what it is; empty where none is shown."""
        return " ".join(filter(None, [self.shown_confidence, self.sure_of])) if self.shown_confidence else ""

    @property
    def sure_of(self) -> str:
        """What the confidence is of where it is not that of the headline: that nothing else stands out."""
        is_led = self.kind == "nothing_significant" and (self.is_unbalanced or self.is_common)
        return "that nothing else stands out" if is_led else ""

    def _repr_html_(self) -> str:
        """What a notebook shows; all texts are escaped."""
        said = self.confidence_said
        confidence = Markup(" <em>confidence {}</em>").format(said) if said else ""
        parts = Markup("<p><strong>{}</strong>{}</p><p>{}</p><p>Next: {}</p>")
        return str(parts.format(self.headline, confidence, self.explanation, self.next_step))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Verdict (None when the analysis gave none) and findings in the order of attribute.finding."""

    verdict: Verdict | None
    findings: Sequence[Finding]

    @property
    def state(self) -> str:
        """State of the verdict; without one, nothing can be known."""
        return self.verdict.state if self.verdict else "cannot_be_known"

    @property
    def leading(self) -> Finding | None:
        """The finding the verdict states; None where it states none."""
        is_finding = self.verdict is not None and self.verdict.kind == "finding"
        return self.findings[0] if is_finding and self.findings else None

    @property
    def further(self) -> Sequence[Finding]:
        """The significant findings that the verdict neither states nor quotes."""
        headline = self.verdict.headline if self.verdict else ""
        rest = self.findings[1:] if self.leading else self.findings
        return [finding for finding in rest if finding.is_significant and finding.summary[1:] not in headline]


def anchor(finding: Finding) -> str:
    """Identifier of the element of the page that holds a finding's evidence."""
    return f"finding-{finding.finding_id}"


def moment_link(finding: Finding) -> str:
    """Address of the finding's moment in the timeline; empty where there is none."""
    return "" if finding.moment_iteration is None else place_link(finding.moment_iteration, finding.moment_rank)


def place_link(iteration: int, rank: int | None = None) -> str:
    """Address of an iteration in the timeline, and of a rank in it."""
    return f"#it={iteration}" if rank is None else f"#it={iteration}&rank={rank}"


def read_diagnosis(rows: Rows) -> Diagnosis:
    """The verdict and the findings of a run."""
    verdicts = [
        Verdict(
            kind=str(row["kind"]),
            headline=opening(str(row["headline"])),
            explanation=_explanation(row),
            confidence=_sentence(row["confidence"]),
            next_step=_sentence(row["next_step"]),
            delay_share=row["delay_share"],
            is_unbalanced=bool(row["is_unbalanced"]),
            is_common=bool(row["is_common"]),
        )
        for row in rows("verdict")
    ]
    evidence = rows("evidence")
    findings = tuple(_finding(row, evidence) for row in rows("findings"))
    return Diagnosis(verdicts[0] if verdicts else None, findings)


def _explanation(row: dict[str, Any]) -> str:
    """What the headline had no room for, and the explanation."""
    headline = str(row["headline"])
    rest = headline[len(leading_sentences(headline, _LONGEST_OPENING)) :].strip()
    # Cut where a sentence ends: half of two sentences would read as one.
    text = leading_sentences(" ".join(filter(None, (rest, row["explanation"]))), _LONGEST_EXPLANATION)
    return clean(text, _LONGEST_EXPLANATION)


def opening(headline: str) -> str:
    """As much of a verdict's headline as there is room for, cleaned."""
    return clean(leading_sentences(headline, _LONGEST_OPENING), _LONGEST_HEADLINE)


def leading_sentences(text: str, limit: int) -> str:
    """As many whole sentences as fit, at least the first."""
    ends = [found.end() for found in re.finditer(r"[.!?](?= |$)", text)]
    fitting = [end for end in ends if end <= limit]
    return text[: fitting[-1]] if fitting else text[: ends[0]] if ends else text


def _finding(row: dict[str, Any], evidence: list[dict[str, Any]]) -> Finding:
    own = [item for item in evidence if item["finding_id"] == row["finding_id"]]
    return Finding(
        finding_id=row["finding_id"],
        mode=str(row["mode"]),
        cause=_sentence(row["cause"]),
        subject_kind=_sentence(row["subject_kind"]),
        subject=clean(row["subject"] if row["subject"] is not None else "", 80),
        delay_ns=row["delay_ns_per_iteration"],
        low_ns=row["delay_low_ns"],
        high_ns=row["delay_high_ns"],
        share=row["share"],
        confidence=_sentence(row["confidence"]),
        gain_if_fixed=row["gain_if_fixed"],
        first_iteration=row["first_iteration"],
        last_iteration=row["last_iteration"],
        pattern=_sentence(row["pattern"]),
        summary=_sentence(row["summary"]),
        next_step=_sentence(row["next_step"]),
        evidence_for=tuple(_sentence(item["statement"]) for item in own if item["direction"] == "for"),
        evidence_against=tuple(_sentence(item["statement"]) for item in own if item["direction"] == "against"),
        moment_iteration=row["moment_iteration"],
        moment_rank=row["moment_rank"],
        host=clean(row["host"], 80) if row["host"] is not None else "",
        gain_if_all_fixed=row["gain_if_all_fixed"],
        iterations=row["iterations"],
        affected_iterations=row["affected_iterations"],
        p_value=row["p_value"],
        ranks=tuple(row["ranks"] or ()),
    )


def _sentence(text: object) -> str:
    return "" if text is None else clean(text, _SENTENCE_LIMIT)
