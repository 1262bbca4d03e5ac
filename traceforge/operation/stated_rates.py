"""What a user states of the hardware. In: texts such as `bf16=989` and `nic=50`. Out: rates by name, in base units.

They go before what `peaks.toml` and logs say, for all ranks alike. Kept in meta.stated_rate.
"""

from collections.abc import Mapping, Sequence

from traceforge.errors import UsageError
from traceforge.store.database import Store

_TERA, _GIGA = 1e12, 1e9
_PEAKS = {"bf16": _TERA, "tf32": _TERA, "fp32": _TERA, "fp8": _TERA, "memory": _GIGA}
_LINE_RATES = {"link": _GIGA, "nic": _GIGA}


def parsed_rates(peaks: Sequence[str], line_rates: Sequence[str]) -> dict[str, float] | None:
    """Rates by name, per second; None where nothing is stated.

    Args:
        peaks: of a device: element types in TFLOP/s (dense), memory in GB/s.
        line_rates: in GB/s and one direction for each rank: `link` to the others of its host, `nic` to other hosts.

    Raises:
        UsageError: a text is no NAME=VALUE, names nothing known, or its value is no positive number.
    """
    found = dict(_parsed(text, _PEAKS, "--peak") for text in peaks)
    found |= dict(_parsed(text, _LINE_RATES, "--line-rate") for text in line_rates)
    return found or None


def _parsed(text: str, units: Mapping[str, float], option: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    hint = f"give {' or '.join(f'{known}=VALUE' for known in units)}, such as {option} {next(iter(units))}=400"
    if name not in units:
        raise UsageError(f"{text!r} names no rate that is known", where=option, hint=hint)
    try:
        rate = float(value)
    except ValueError:
        rate = float("nan")
    if not 0 < rate < float("inf"):
        raise UsageError(f"{text!r} has no positive number after the `=`", where=option, hint=hint)
    return name, rate * units[name]


def stated_rates(store: Store) -> dict[str, float]:
    """Rates that the user of this database stated, per second."""
    return {str(name): float(rate) for name, rate in store.rows("SELECT name, rate_per_s FROM meta.stated_rate")}


def state_rates(store: Store, rates: Mapping[str, float]) -> None:
    """Keep these rates in the place of those of the same name."""
    for name, rate in rates.items():
        store.execute("INSERT OR REPLACE INTO meta.stated_rate VALUES (?, ?)", [name, rate])
