"""Many runs in one file. In: trace databases. Out: a summary of each run in a DuckDB file, and what they say together.

Idea: a summary is a few hundred numbers of a run's tables; trends, hosts that are guilty too often and lost GPU-hours
follow from summaries alone. Not handled: what happened inside an iteration; the run's own database has that.
"""
