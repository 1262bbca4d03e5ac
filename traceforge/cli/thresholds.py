"""`traceforge thresholds`: every number that decides what is said, with its unit and meaning."""

from typing import Annotated

import typer

from traceforge.cli.inputs import print_json


def thresholds(
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Print every threshold that decides what a report says.

    Each with its value, unit, meaning and what depends on it. The same limits are rows of meta.threshold in every
    database.
    """
    from dataclasses import asdict

    from traceforge.thresholds import all_thresholds

    found = all_thresholds()
    if as_json:
        print_json({"thresholds": [asdict(threshold) for threshold in found]})
        return
    for threshold in found:
        value = f"{threshold.value:,.0f}" if threshold.value.is_integer() else f"{threshold.value:g}"
        print(f"{threshold.name} = {value} ({threshold.unit})")
        print(f"    {threshold.meaning} Decides: {threshold.decides}.")
