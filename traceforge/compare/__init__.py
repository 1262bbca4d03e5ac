"""Two runs side by side: what changed, and whether it is more than scatter.

Reads meta.run, align.*, timeline.*, operation.*, attribute.*. `compare_runs` is all that other packages need. It makes
no table, since a comparison belongs to two databases. Not handled: more than two runs; the variation between runs of
the same job, which one run of each cannot show.
"""

from traceforge.compare.comparison import Change, Comparison, compare_runs
from traceforge.compare.finding_changes import FindingChange
from traceforge.compare.operation_changes import OperationChange
from traceforge.compare.sides import Side

__all__ = ["Change", "Comparison", "FindingChange", "OperationChange", "Side", "compare_runs"]
