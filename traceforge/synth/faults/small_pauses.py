"""A rank's host pauses briefly several times in every iteration: a debug log, a metric, a lock that it shares."""

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load

_PAUSES = 4


def _apply(load: Load, site: Site) -> None:
    places = site.before_first_meeting("compute")
    for number in range(_PAUSES):
        # A pause drains the device first; else the host's lead over its device would hide it. Collectives are not
        # drained: that would cost the time in which they are hidden.
        place = places[number * len(places) // _PAUSES]
        site.stall(load, place, site.extra_ns / _PAUSES, drains_device=True)


FAULT = Fault(
    "small_pauses",
    "runtime_control_plane",
    "rank",
    "pauses its host briefly, again and again",
    _apply,
    cause="host_stall",
)
