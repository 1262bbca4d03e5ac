"""What a finding costs a day, in GPU-hours and money. In: query `cost` and a price. Out: `DailyCost`, tiles.

A delayed iteration holds up every rank of the job, recorded or not; each rank is taken to be one GPU. The day is one
at the recorded pace: a trace of some seconds does not show whether it goes on like this, and the page says so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from traceforge.report.blocks import Tile
from traceforge.report.formatting import gpu_hours, money, plural

Rows = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Price:
    """What one GPU costs an hour; `currency` is any short name."""

    per_gpu_hour: float
    currency: str = "USD"

    @property
    def per_1000_gpu_hours(self) -> int:
        """The price as the whole number that queries take."""
        return round(1000 * self.per_gpu_hour)


@dataclass(frozen=True, slots=True)
class Amount:
    """A loss a day with the ends of its interval, None where the finding has none."""

    lost: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class DailyCost:
    """What one finding costs; `money` is None without a price. Without devices an hour is one of a rank."""

    gpus: int
    has_devices: bool
    gpu_hours_per_day: float
    gpu_hours: Amount
    money: Amount | None

    @property
    def unit(self) -> str:
        """What works for an hour: GPU or rank."""
        return "GPU" if self.has_devices else "rank"

    @property
    def label(self) -> str:
        """Heading of the hours lost."""
        return f"{'GPU' if self.has_devices else 'Rank'}-hours lost per day"


def read_costs(rows: Rows, price: Price | None) -> Mapping[int, DailyCost]:
    """Costs by finding; findings of a run without iterations that count have none."""
    asked = rows("cost", price_per_1000_gpu_hours=[price.per_1000_gpu_hours] if price else [])
    return {row["finding_id"]: _cost(row) for row in asked if row["lost_gpu_hours_per_day"] is not None}


def _cost(row: dict[str, Any]) -> DailyCost:
    hours, paid = (
        Amount(*(row[f"{end}_{what}_per_day"] for end in ("lost", "low", "high"))) for what in ("gpu_hours", "money")
    )
    known = None if paid.lost is None else paid
    return DailyCost(row["gpus"], row["has_devices"], row["gpu_hours_per_day"], hours, known)


def cost_tiles(cost: DailyCost, price: Price | None) -> list[Tile]:
    """The cost as the verdict shows it: GPU-hours, and money where there is a price."""
    hours = cost.gpu_hours
    all_of_them = f"both {cost.unit}s" if cost.gpus == 2 else f"all {plural(cost.gpus, cost.unit)}"
    detail = f"at this rate; {all_of_them} spend {gpu_hours(cost.gpu_hours_per_day)} {cost.unit}-hours"
    if hours.low is not None and hours.high is not None:
        detail = f"{gpu_hours(hours.low)} to {gpu_hours(hours.high)} {cost.unit}-hours {detail}"
    tiles = [Tile(gpu_hours(hours.lost), cost.label, detail)]
    if cost.money is not None and price is not None:
        low, high = cost.money.low, cost.money.high
        interval = "" if low is None or high is None else f"{money(low, '')} to {money(high, '')}; "
        detail = f"{interval}at {price.per_gpu_hour:g} {price.currency} a {cost.unit}-hour"
        tiles.append(Tile(money(cost.money.lost, price.currency), "Lost per day", detail))
    return tiles
