"""Inputs of operations in units. In: `EventUnit`s. Out: frames of raw.operation_input.

Idea: only the events that `Flag.SHAPED` marks are looked at; see `reading.operation_inputs`.
"""

import numpy as np

from traceforge.reading.operation_inputs import OperationInputs
from traceforge.sources.kineto.decode import EventUnit
from traceforge.sources.kineto.kinds import Flag, FlagArray


class UnitInputs(OperationInputs):
    """Collects inputs of units until `flush` makes a frame of them."""

    def add(self, unit: EventUnit, flags: FlagArray) -> None:
        """Take the inputs in a unit, whose events have the given `Flag`s."""
        places = np.flatnonzero(flags & Flag.SHAPED).tolist()
        if places:
            texts, event_ids = unit.args_texts(), unit.event_ids()
            for place in places:
                self.add_text(int(event_ids[place]), bytes(texts[place]))
