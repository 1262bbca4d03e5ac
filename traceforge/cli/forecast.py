"""`traceforge forecast DB...`: throughput, cost and limits at other numbers of ranks, from several runs or a table."""

import fnmatch
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traceforge.cli.console import note, printable
from traceforge.cli.forecast_text import curve_lines, one_scale_lines
from traceforge.cli.inputs import TARGET_HELP, opened
from traceforge.errors import InputUnusableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceforge.forecast.answer import Answer, MeasuredRun
    from traceforge.store.database import Store

SCHEMA_VERSION = 2


Databases = Annotated[
    list[Path] | None, typer.Argument(metavar="DB", help=f"Several may be given, their runs are joined. {TARGET_HELP}")
]


def forecast(
    databases: Databases = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Runs to take, where not all, such as 'night*'; may be repeated."),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(help="CSV or TOML of throughputs: columns ranks, throughput (samples/s), and cv where known."),
    ] = None,
    ranks: Annotated[
        str, typer.Option(metavar="N,N", help="Further numbers of ranks to plan for, such as 128,256.")
    ] = "",
    batch: Annotated[float | None, typer.Option(min=1e-3, metavar="N", help="Samples per rank and iteration.")] = None,
    samples: Annotated[
        float | None, typer.Option(min=1e-3, metavar="N", help="Work of the whole job, in samples.")
    ] = None,
    price: Annotated[float, typer.Option("--price", "--price-per-gpu-hour", min=0, help="Price of a GPU-hour.")] = 2.5,
    currency: Annotated[str, typer.Option(help="Currency of that price.")] = "USD",
    mtbf_hours: Annotated[
        float,
        typer.Option(
            min=1e-3, metavar="HOURS", help="Mean time between failures of one GPU; the default is Llama 3's."
        ),
    ] = 45_600,
    checkpoint_s: Annotated[float, typer.Option(min=1e-3, metavar="S", help="Time to write a checkpoint, s.")] = 60,
    restart_s: Annotated[
        float, typer.Option(min=0, metavar="S", help="From a failure to the first repeated iteration, s.")
    ] = 600,
    gpus_per_rank: Annotated[
        int, typer.Option(min=1, metavar="N", help="GPUs a rank; of nodes, where nodes are counted.")
    ] = 1,
    watts: Annotated[
        float | None, typer.Option(min=0, metavar="W", help="Power of a GPU with its share of the host.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Say how far the job scales, what it costs, what would help. One scale makes no curve."""
    from traceforge.forecast.answer import answer
    from traceforge.forecast.goodput import Assumptions
    from traceforge.forecast.points_file import read_points

    assumed = Assumptions(price, mtbf_hours, checkpoint_s, restart_s, gpus_per_rank, batch, watts, samples, currency)
    runs, dropped = _runs(databases or [], run or [])
    listed = read_points(points) if points else []
    if not runs and not listed:
        hint = "name databases, or a table of throughputs with --points FILE"
        raise UsageError("nothing to forecast from", hint=hint)
    found = answer(runs, listed, assumed, _numbers(ranks))
    if samples and found.unit != "samples":
        raise UsageError("--samples needs --batch: traces count iterations, not samples")
    if as_json:
        left_out = [{"name": name, "why": why} for name, why in dropped]
        print(json.dumps({**document(found), "left_out": left_out}, indent=2))
        return
    lines = _left_out_lines(len(runs), dropped)
    lines += one_scale_lines(found) if found.ensemble is None else curve_lines(found)
    print("\n".join(printable(line) for line in lines))
    if found.ensemble is not None and found.unknown:
        note(f"assumed equal, as not all files state it: {', '.join(found.unknown)}")


def _left_out_lines(used: int, dropped: "Sequence[tuple[str, str]]") -> list[str]:
    if not dropped:
        return []
    counts = f"{used} of {used + len(dropped)} runs used"
    return [counts, *(f"  left out: {name}: {why}" for name, why in dropped)]


def document(found: "Answer") -> dict[str, Any]:
    """The answer as JSON values; what is not known is null."""
    members = found.ensemble.members if found.ensemble else ()
    first = found.runs[0] if found.ensemble is None and found.runs else None
    return {
        "schema_version": SCHEMA_VERSION,
        "unit": found.unit,
        "measured": [
            {"name": point.name, "ranks": point.ranks, "throughput": point.throughput, "cv": point.cv}
            for point in found.points
        ],
        "assumptions": asdict(found.assumed),
        "plan": [asdict(row) for row in found.plan],
        "models": [
            {
                "model": member.model.name,
                "parameters": member.fit.parameters(),
                "backtest": member.backtest,
                "weight": member.weight,
                "is_used": member.is_used,
            }
            for member in members
        ],
        "knees": [asdict(knee) for knee in found.knees],
        "one_more_rank": found.one_more,
        "marginal_parts": found.parts,
        "what_ifs": [asdict(change) for change in found.what_ifs],
        "next_measurement": asdict(found.next_measurement) if found.next_measurement else None,
        "cost_sensitivity": found.sensitivity,
        "unknown": found.unknown,
        "needs": [{"item": item, "why": why} for item, why in found.needs],
        **(first.tables if first else {}),
    }


def _runs(databases: list[Path], patterns: list[str]) -> "tuple[list[MeasuredRun], list[tuple[str, str]]]":
    """The runs that make points, and those that do not, with why."""
    from traceforge.forecast.answer import NOTHING_MEASURED, NOTHING_MEASURED_HINT, dropped_runs, measured_runs

    found, dropped = [], []
    for path in databases:
        with opened(path) as store:
            names = _matching(store, patterns)
            if patterns and not names:
                continue
            found += measured_runs(store, names)
            dropped += [(f"{name} ({path.name})", why) for name, why in dropped_runs(store, names)]
    taken = [run.point.name for run in found]
    missing = {one for one in patterns if one not in taken and not fnmatch.filter(taken, one)}
    where = ", ".join(map(str, databases))
    reasons = "".join(f"; {name}: {why}" for name, why in dropped)
    if missing:
        raise UsageError(f"there is no run `{min(missing)}` with two judged iterations in a row{reasons}", where=where)
    if databases and not found:
        raise InputUnusableError(NOTHING_MEASURED + reasons, where=where, hint=NOTHING_MEASURED_HINT)
    return found, dropped


def _matching(store: "Store", patterns: list[str]) -> list[str]:
    names = [str(name) for (name,) in store.rows("SELECT run_name FROM meta.run ORDER BY run_id")]
    return [name for name in names if any(name == one or fnmatch.fnmatchcase(name, one) for one in patterns)]


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise UsageError(f"--ranks is no list of whole numbers: {text}", hint="such as --ranks 128,256") from error
