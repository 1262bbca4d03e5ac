"""Where a line may break. In: texts. Out: texts with joined spaces, pieces that stay together, HTML that says where.

A number stays with its unit, an option of a command whole, and a long name breaks at its joints.
"""

import re

from markupsafe import Markup, escape

_JOINED = "\N{NO-BREAK SPACE}"
# Not in brackets: `[480,230]` is a shape.
_THOUSANDS = re.compile(r"(?<![\w.,\[])\d{1,3}(?:,\d{3})+(?![\w,])")
_BEFORE_UNIT = re.compile(r"(\d) (%|(?:[nµm]?s|[kMGT]?B)\b)")
_OPTION = re.compile(r"(?<![\w-])((?:topo )?--?[A-Za-z][\w-]*|[A-Z][a-z]+-bound:?|\d+\N{EN DASH}\d+)")
_LONG_NAME = re.compile(r"[\w./:…-]{18,}")
_BREAK = re.compile(r"(?<=[_/.:])(?=[^\W_])")


def unbroken(text: str) -> str:
    """The text with its numbers and their units on one line, thousands set apart as everywhere on the page."""
    spaced_out = _THOUSANDS.sub(lambda found: found[0].replace(",", "\N{NARROW NO-BREAK SPACE}"), text)
    spaced_out = spaced_out.replace("-hours", "\N{NON-BREAKING HYPHEN}hours")
    return _BEFORE_UNIT.sub(rf"\1{_JOINED}\2", spaced_out)


def breakable(text: str) -> Markup:
    """The text as HTML; long names may break behind `_`, `/`, `:` and `.` before they break in the middle of a word."""
    return Markup(_LONG_NAME.sub(_with_breaks, str(escape(text))))  # noqa: S704  # escaped, and elements of our own


def _with_breaks(name: re.Match[str]) -> str:
    return _BREAK.sub("<wbr>", name[0])


def options_apart(text: str) -> list[str]:
    """The text in pieces; each second one stays on one line.

    That is an option of a command, such as `--pid` or `topo -m`, what bounds a job, such as `Communication-bound`, or
    a run of numbers, such as that of ranks 8 to 15.
    """
    return _OPTION.split(text)
