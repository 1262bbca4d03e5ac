"""Two runs side by side: what changed, and whether it is more than scatter.

Reads meta.run, align.*, timeline.*, attribute.*. `compare_runs` is all that other packages need. It makes no table: a
comparison belongs to two databases. Not handled: more than two runs; how much runs of the same job differ from one
another, which one run of each cannot tell.
"""

from traceforge.compare.asked import Side
from traceforge.compare.comparison import Change, Comparison, compare_runs

__all__ = ["Change", "Comparison", "Side", "compare_runs"]
