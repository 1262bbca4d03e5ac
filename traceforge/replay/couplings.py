"""How much slower things get where ranks are early: what calibration measures and the engine takes in.

Without a coupling no delay can ever help (`engine`). Each coupling is one number; 0 means that it is not there.
`calibration` measures them from the run itself; `Estimate` says how well, or why it could not.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Couplings:
    """Strengths of the couplings, dimensionless, as the engine uses them.

    Attributes:
        spread: extra transfer time a unit of mean wait of the collective (kappa): `x = x0 + spread * mean wait`.
        waiting: relative slow-down of device work while a collective on the same device waits (eta).
        transferring: the same while a collective on the same device transfers.
        host: relative slow-down of own work for each other rank of the same host that waits meanwhile (phi).
    """

    spread: float = 0.0
    waiting: float = 0.0
    transferring: float = 0.0
    host: float = 0.0


NO_COUPLING = Couplings()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run tells of one coupling: one row of replay.calibration; see there for the fields."""

    run_id: int
    mechanism: str
    coefficient: float | None
    low: float | None
    high: float | None
    n: int
    verdict: str
    reason: str
