"""The report: tables in, one HTML file out. `build_report` and `build_summary` are all that others need.

In: a store whose stages have run. Out: the page, its summary for machines and a few lines for the terminal. The page
opens offline from disk, loads nothing, and executes nothing that a trace name contains. What draws is loaded on first
use: commands that only borrow words from this package start in half the time without it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceforge.report.page import Report, build_report, build_summary

__all__ = ["Report", "build_report", "build_summary"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'traceforge.report' has no attribute '{name}'")
    from traceforge.report import page

    return getattr(page, name)
