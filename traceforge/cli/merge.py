"""`traceforge merge FOLDER`: the parts that a job array read, made a database with every stage built."""

from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note
from traceforge.cli.ingest import Jobs, LineRates, Peaks, RackPattern, Racks, Reference, Strict, say_result
from traceforge.cli.progress import progress


def merge(
    folder: Annotated[Path, typer.Argument(help="Folder into which `ingest --part` read all parts.")],
    jobs: Jobs = None,
    reference: Reference = None,
    peak: Peaks = None,
    line_rate: LineRates = None,
    racks: Racks = None,
    rack_pattern: RackPattern = None,
    strict: Strict = False,
) -> None:
    """Make a database of the parts that `ingest --part` read.

    All parts must be there. The tables are those that one `ingest` of all files makes.
    """
    from traceforge import api, job_array
    from traceforge.align.stated_racks import parsed_racks
    from traceforge.operation.stated_rates import parsed_rates

    rates, stated = parsed_rates(peak or (), line_rate or ()), parsed_racks(racks, rack_pattern)
    with progress() as shown:
        result = job_array.merge(
            folder, jobs=jobs, reference=reference, rates=rates, racks=stated, on_table=shown.on_table
        )
    for path, error in result.failed:
        note(f"warning: {path.name}: {error.what}")
    for path in job_array.remains(folder):
        note(f"warning: {path}: these parts are merged and no longer needed, and cannot be removed from here")
    with api.open_store(folder) as store:
        say_result(store, result, f"{folder}/", strict=strict)
