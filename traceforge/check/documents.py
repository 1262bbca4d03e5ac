"""Judgements as files of other programs. In: judgements. Out: JUnit XML for test panels, markdown for a job's page.

Names of runs come from whoever named the folder, so nothing of them is taken for markup: XML is written by the
standard library with characters that XML cannot hold replaced, markdown with its signs escaped.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from traceforge.check.measured import GRADES
from traceforge.check.metrics import Metric
from traceforge.check.thresholds import Judgement, Outcome

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>])")
_FAILED = (Outcome.exceeded, Outcome.not_measured)


def shown(metric: Metric, value: float) -> str:
    """A value in the unit of its metric."""
    if metric.is_grade:
        return GRADES[int(value)]
    if metric.is_share or metric.name == "cv":
        return f"{100 * value:.3g} %"
    return f"{value:.4g} ms" if metric.name.endswith("_ms") else f"{value:.4g}"


def told(judgement: Judgement) -> str:
    """A judgement in one line: measured value, interval, limit, and by how much it is kept or not."""
    threshold, measured = judgement.threshold, judgement.measured
    limit = shown(threshold.metric, threshold.limit) + (f" ({threshold.basis})" if threshold.basis else "")
    if measured is None:
        return f"{threshold.metric.name} cannot be measured in this run; limit {limit}"
    text = f"{threshold.metric.name} is {shown(threshold.metric, measured.value)}{_interval(judgement)}, limit {limit}"
    margin = "" if judgement.margin is None else f", {100 * abs(judgement.margin):.3g} % "
    side = "" if not margin else "below it" if (judgement.margin or 0) >= 0 else "above it"
    return f"{text}{margin}{side}"


def _interval(judgement: Judgement) -> str:
    measured, metric = judgement.measured, judgement.threshold.metric
    if measured is None or measured.low is None or measured.high is None:
        return ""
    return f" ({shown(metric, measured.low)} to {shown(metric, measured.high)})"


def junit(judgements: Sequence[Judgement], run_name: str) -> str:
    """The judgements as one JUnit test suite: a limit is a test; within noise passes, with a word in its output."""
    suite = ElementTree.Element(
        "testsuite",
        name="traceforge check",
        tests=str(len(judgements)),
        failures=str(sum(j.outcome is Outcome.exceeded for j in judgements)),
        errors=str(sum(j.outcome is Outcome.not_measured for j in judgements)),
    )
    for judgement in judgements:
        name = judgement.threshold.metric.name + (" against baseline" if judgement.threshold.basis else "")
        case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(run_name), name=name)
        kind = {Outcome.exceeded: "failure", Outcome.not_measured: "error"}.get(judgement.outcome)
        if kind:
            ElementTree.SubElement(case, kind, message=_xml_text(told(judgement)), type=judgement.outcome.value)
        elif judgement.outcome is Outcome.within_noise:
            ElementTree.SubElement(case, "system-out").text = _xml_text(f"within noise: {told(judgement)}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def markdown(judgements: Sequence[Judgement], run_name: str) -> str:
    """The judgements as a heading and a table."""
    bad = sum(judgement.outcome in _FAILED for judgement in judgements)
    head = f"### traceforge check: {escaped(run_name)}: {'all limits kept' if not bad else f'{bad} not kept'}"
    rows = [
        "| outcome | metric | measured | 95 % interval | limit |",
        "| --- | --- | --- | --- | --- |",
        *(_markdown_row(judgement) for judgement in judgements),
    ]
    return "\n".join([head, "", *rows]) + "\n"


def _markdown_row(judgement: Judgement) -> str:
    threshold, measured = judgement.threshold, judgement.measured
    metric = threshold.metric
    cells = [
        judgement.outcome.value if judgement.outcome is Outcome.ok else f"**{judgement.outcome.value}**",
        f"`{metric.name}`",
        "" if measured is None else shown(metric, measured.value),
        _interval(judgement).strip(" ()"),
        shown(metric, threshold.limit) + (f" ({threshold.basis})" if threshold.basis else ""),
    ]
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """A text in which markdown and HTML find nothing to act on, on one line."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(r"\\\1", line)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
