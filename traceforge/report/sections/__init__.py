"""Sections of the report: one file a section, exposing `SECTION`. In: a context. Out: blocks, or what is missing.

Sections never import one another; each states its own place on the page.
"""

from collections.abc import Mapping
from functools import cache

from traceforge.errors import PluginError
from traceforge.registry import discover
from traceforge.report.plugin import Plugin


@cache
def section_plugins() -> Mapping[str, Plugin]:
    """The sections by name, in their order on the page.

    Raises:
        PluginError: a file of the folder exposes something else.
    """
    found: dict[str, Plugin] = {}
    for name, plugin in discover(__name__, "SECTION").items():
        if not isinstance(plugin, Plugin):
            raise PluginError("SECTION is no Plugin", where=f"{__name__}.{name}")
        found[name] = plugin
    return dict(sorted(found.items(), key=lambda item: item[1].place))
