"""Arguments of communication in units. In: `EventUnit`s. Out: frames of raw.collective and raw.argument.

Idea: only units that hold a communication event are looked at a second time, for the raw text of the arguments, which
`reading.communication_args` reads.
"""

from collections.abc import Sequence

import numpy as np

from traceforge.reading.communication_args import CommunicationArgs
from traceforge.reading.json_values import NO_TOKEN
from traceforge.sources.kineto.decode import EventUnit
from traceforge.sources.kineto.kinds import Flag, FlagArray

_NOTHING = (b"", b"null")


class UnitArgs(CommunicationArgs):
    """Collects arguments of units until `flush` makes frames of them."""

    def add(self, unit: EventUnit, flags: FlagArray) -> None:
        """Take the arguments of a unit, whose events have the given `Flag`s."""
        places = self._wanted(unit, flags)
        if not places:
            return
        texts, event_ids = unit.args_texts(), unit.event_ids()
        for place in places:
            text = bytes(texts[place])
            if text not in _NOTHING:
                is_communication = bool(flags[place] & Flag.COMMUNICATION)
                self.add_text(int(event_ids[place]), text, is_communication=is_communication)

    def _wanted(self, unit: EventUnit, flags: FlagArray) -> Sequence[int]:
        """Which events may have arguments to be looked at."""
        if self.keeps_all:
            return range(len(flags))
        wanted = (flags & Flag.COMMUNICATION) != 0
        collectives = [args.collective for args in unit.args]
        if collectives.count(NO_TOKEN) < len(collectives):
            wanted |= [collective is not NO_TOKEN for collective in collectives]
        return np.flatnonzero(wanted).tolist()
