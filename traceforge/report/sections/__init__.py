"""Sections of the report: one file a section, exposing `SECTION`. In: a context. Out: blocks, or what is missing.

Sections never import one another. `ORDER` is the order on the page; a file that is not listed here is an error.
"""

ORDER = (
    "verdict",
    "trust",
    "waterfall",
    "steps",
    "strip",
    "lateness",
    "lanes",
    "modes",
    "collectives",
    "fabric",
    "pacing",
    "scaling",
    "comparison",
    "execution_traces",
    "appendix",
)
