"""Which times of a file are none."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_STRAY_NS: Annotated[
    int,
    Meaning("ns", "A device's events nearer to what its host recorded may have waited in a queue.", "raw.occurrence"),
] = 100_000_000
LEAST_STRAY_END_NS: Annotated[
    int,
    Meaning("ns", "Work that ends sooner after its host's last event may have waited for ranks.", "raw.occurrence"),
] = 3_600_000_000_000
