"""The report: tables in, one HTML file out. `build_report` and `build_summary` are all that others need.

In: a store whose stages have run. Out: the page, its summary for machines and a few lines for the terminal. The page
opens offline from disk, loads nothing, and executes nothing that a trace name contains.
"""

from traceforge.report.page import Report, build_report, build_summary

__all__ = ["Report", "build_report", "build_summary"]
