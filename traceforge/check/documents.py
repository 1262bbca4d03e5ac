"""Results of a check for other programs. In: results. Out: JUnit XML for test panels, markdown for a job's page.

Names of runs come from whoever named the folder and are never taken for markup: XML is written by the standard library
with characters that XML cannot hold replaced, markdown is escaped.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from traceforge.check.limits import LimitOutcome, LimitResult
from traceforge.check.measured import GRADES
from traceforge.check.metrics import Metric

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>])")
_FAILED = (LimitOutcome.exceeded, LimitOutcome.not_measured)


def format_value(metric: Metric, value: float) -> str:
    """A value in the unit of its metric."""
    if metric.is_grade:
        return GRADES[int(value)]
    if metric.is_share or metric.name == "cv":
        return f"{100 * value:.3g} %"
    return f"{value:.4g} ms" if metric.name.endswith("_ms") else f"{value:.4g}"


def sentence(result: LimitResult) -> str:
    """A result in one line: measured value, interval, limit, and the margin."""
    name, measured, margin = result.limit.metric.name, result.measured, result.margin
    if measured is None:
        return f"{name} cannot be measured in this run; limit {_limit(result)}"
    if result.outcome is LimitOutcome.not_measured:
        return f"{name} cannot be measured in this run: {_bounds(result)}; limit {_limit(result)}"
    text = f"{name} is {format_value(result.limit.metric, measured.value)}{_interval(result)}, limit {_limit(result)}"
    if margin is None:
        return text
    return f"{text}, {100 * abs(margin):.3g} % {'below' if margin >= 0 else 'above'} it"


def _bounds(result: LimitResult) -> str:
    """Between what a value lies of which a part was not measured."""
    measured, metric = result.measured, result.limit.metric
    if measured is None:
        return ""
    ends = (format_value(metric, value) for value in (measured.value, measured.value + measured.unknown))
    return f"between {' and '.join(ends)}, as members of collectives have no trace, or calls no partner"


def _limit(result: LimitResult) -> str:
    limit = result.limit
    return format_value(limit.metric, limit.value) + (f" ({limit.basis})" if limit.basis else "")


def _interval(result: LimitResult) -> str:
    measured, metric = result.measured, result.limit.metric
    if measured is None or measured.low is None or measured.high is None:
        return ""
    return f" ({format_value(metric, measured.low)} to {format_value(metric, measured.high)})"


def junit(results: Sequence[LimitResult], run_name: str) -> str:
    """The results as one JUnit test suite, one test per limit; within noise passes, with a note in its output."""
    suite = ElementTree.Element(
        "testsuite",
        name="traceforge check",
        tests=str(len(results)),
        failures=str(sum(result.outcome is LimitOutcome.exceeded for result in results)),
        errors=str(sum(result.outcome is LimitOutcome.not_measured for result in results)),
    )
    for result in results:
        name = result.limit.metric.name + (" against baseline" if result.limit.basis else "")
        case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(run_name), name=name)
        kind = {LimitOutcome.exceeded: "failure", LimitOutcome.not_measured: "error"}.get(result.outcome)
        if kind:
            ElementTree.SubElement(case, kind, message=_xml_text(sentence(result)), type=result.outcome.value)
        elif result.outcome is LimitOutcome.within_noise:
            ElementTree.SubElement(case, "system-out").text = _xml_text(f"within noise: {sentence(result)}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def markdown(results: Sequence[LimitResult], run_name: str) -> str:
    """The results as a heading and a table."""
    bad = sum(result.outcome in _FAILED for result in results)
    head = f"### traceforge check: {escaped(run_name)}: {'all limits kept' if not bad else f'{bad} not kept'}"
    rows = [
        "| outcome | metric | measured | 95 % interval | limit |",
        "| --- | --- | --- | --- | --- |",
        *(_markdown_row(result) for result in results),
    ]
    return "\n".join([head, "", *rows]) + "\n"


def _markdown_row(result: LimitResult) -> str:
    metric, measured = result.limit.metric, result.measured
    cells = [
        result.outcome.value if result.outcome is LimitOutcome.ok else f"**{result.outcome.value}**",
        f"`{metric.name}`",
        _measured(result),
        _interval(result).strip(" ()") if measured is not None and not measured.unknown else "",
        _limit(result),
    ]
    return f"| {' | '.join(cells)} |"


def _measured(result: LimitResult) -> str:
    measured = result.measured
    if measured is None:
        return ""
    return _bounds(result) if measured.unknown else format_value(result.limit.metric, measured.value)


def escaped(text: str) -> str:
    """A text as one line without markdown or HTML markup."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(r"\\\1", line)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
