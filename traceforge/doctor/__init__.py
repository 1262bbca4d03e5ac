"""What these traces can answer, what they cannot, and the setting that records it next time.

In: a store whose stages have run. Out: one `Examination` a check, the most valuable first. Reads meta.*, raw.*,
align.*, timeline.*, graph.*, fabric.*. Not handled: whether what was recorded is representative of the job.
"""

from traceforge.doctor.checks import CHECKS, LACKING, Check, Examination, Status, examine
from traceforge.doctor.inventory import Inventory, take_inventory

__all__ = ["CHECKS", "LACKING", "Check", "Examination", "Inventory", "Status", "examine", "take_inventory"]
