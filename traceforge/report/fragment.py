"""The page as a fragment for another page. In: the finished HTML of the fragment's template, and the style sheet. Out:
HTML that executes nothing, whose style reaches nothing outside, and whose names no other page has.

The style sheet is nested under the fragment's class; identifiers and what refers to them get a prefix. The signs looked
for cannot come from a name: quotation marks in texts are escaped.
"""

import re

SCOPE = "traceforge-report"
_NAMES = re.compile(r'(?P<before> (?:id|aria-labelledby)="|href="#|url\(#)(?P<name>[\w-]+)')
_PAGE_RULES = re.compile(r"^(\s*)(?::root|body)(?= \{)", re.MULTILINE)
_IN_ONE_LINE = re.compile(r"(\{ ):root(?= \{)")


def scoped_style(style: str) -> str:
    """The style sheet, its rules nested under the fragment's class; those of the page apply to the fragment."""
    own = _IN_ONE_LINE.sub(r"\1&", _PAGE_RULES.sub(r"\1&", style))
    return f".{SCOPE} {{\n{own}\n}}"


def own_names(html: str) -> str:
    """The fragment with a prefix before every identifier, and wherever one is referred to."""
    return _NAMES.sub(lambda found: f"{found['before']}{SCOPE}-{found['name']}", html)
