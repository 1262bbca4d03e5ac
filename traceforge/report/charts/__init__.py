"""Charts: one module a chart. In: finished rows, times in ms. Out: Vega-Lite specifications and tables by column.

Specifications are made with Altair, which checks them against the schema. They hold no data and no colours: tables
are attached by name, colours are CSS variables (`traceforge.report.palette`).
"""
