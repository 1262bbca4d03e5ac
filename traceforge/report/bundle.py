"""The scripts and the style of the page, and the policy that lets nothing else run. In: assets. Out: text and hashes.

Vega, Vega-Lite and Vega-Embed come as one script out of `vl_convert`, in the version Altair writes its charts for.
The Content-Security-Policy names our scripts and one style by their SHA-256: no other script runs, no style is
read, and nothing is loaded from anywhere. Vega needs no `eval`, as charts are drawn with its interpreter (`ast`).
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

from traceforge.errors import TraceforgeError
from traceforge.report.kept_text import kept_text
from traceforge.report.palette import css_variables

_TIMELINE = ("inflate", "data", "rows", "colours", "paint", "marks", "strip", "view", "words", "address", "input")
_PAGE = ("tabs", "tables", "copy", "report")
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def vega_script() -> str:
    """The drawing library as one classic script; to make it takes about a CPU second, so that it is kept.

    Raises:
        TraceforgeError: it holds something that cannot stand inside a `<script>` element.
    """
    import altair

    vl_version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return _checked(_bundled("vega", _SNIPPET, vl_version), "the Vega bundle")


@cache
def page_script() -> str:
    """Our own scripts, each in a scope of its own: tabs, tables, copying, and charts drawn when they come into view."""
    return _checked(_bundled("page", "\n".join(asset(f"{name}.js") for name in _PAGE)), "the page's script")


@cache
def timeline_script() -> str:
    """The script of the timeline: its files in one scope of their own, the later ones on top of the earlier."""
    parts = "\n".join(asset(f"timeline_{name}.js") for name in _TIMELINE)
    return _checked(_bundled("timeline", f'(() => {{\n"use strict";\n{parts}}})();\n'), "the timeline's script")


def _bundled(name: str, script: str, vl_version: str | None = None) -> str:
    """A script with what it imports, without comments, indentation and line ends; kept by all that it depends on."""
    from importlib.metadata import version

    def make() -> str:
        import vl_convert

        return str(vl_convert.javascript_bundle(script, vl_version=vl_version))

    content = hashlib.sha256(script.encode()).hexdigest()[:12]
    versions = "-".join(filter(None, (version("vl-convert-python"), vl_version)))
    return kept_text(f"{name}-{versions}-{content}.js", make)


@cache
def page_style() -> str:
    """The colours and the style sheet."""
    return f"{css_variables()}\n{asset('report.css')}"


def asset(name: str) -> str:
    """A text file of the `assets` folder, with line ends as HTML parsers see them."""
    path = resources.files("traceforge.report") / "assets" / name
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def content_security_policy(scripts: Sequence[str], style: str) -> str:
    """The policy that allows these scripts and this style, as they stand in the page, and nothing else."""
    script_hashes = " ".join(_hash_source(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {script_hashes}; style-src {_hash_source(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _checked(script: str, name: str) -> str:
    if "</script" in script.lower() or "<!--" in script:
        raise TraceforgeError(f"{name} cannot stand inside a page", hint="report this, with the versions installed")
    return script.replace("\r\n", "\n")
