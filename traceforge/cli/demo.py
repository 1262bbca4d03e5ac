"""`traceforge demo`: make a small job with a known fault, judge it, and show the verdict beside the truth."""

from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note, print_verdict
from traceforge.cli.synth import FaultNames, Seed, check_made_up, with_faults
from traceforge.outputs import check_outputs, write_text
from traceforge.units import format_share

_DEFAULT = "compute_straggler:place=5,severity=0.25"


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for traces and report.")] = Path(
        "traceforge-demo"
    ),
    fault: FaultNames = None,
    seed: Seed = 0,
) -> None:
    """Show the verdict on a small job with a known fault. The truth stands beside it. Takes a few seconds."""
    from traceforge import api
    from traceforge.store.database import Store
    from traceforge.synth.cluster import Cluster
    from traceforge.synth.folder import write_scenario
    from traceforge.synth.nccl_grammar import NcclLogs
    from traceforge.synth.scenario import Scenario

    traces, page = output / "traces", output / "report.html"
    check_made_up(traces)
    check_outputs([page] if output.is_dir() else [])
    texts = [_DEFAULT] if fault is None else [text for text in fault if text != "healthy"]
    scenario = with_faults(Scenario("demo", seed, cluster=Cluster(2, 4), nccl=NcclLogs("2.27.5")), texts)
    cost = write_scenario(scenario, traces)
    print("Injected:", *(texts or ["nothing"]))
    for text, removed in zip(texts, cost.removed_ns, strict=True):
        share = format_share(removed.mean() / cost.duration_ns.mean())
        print(f"  without {text.partition(':')[0]}: {removed.mean() / 1e6:.2f} ms an iteration less ({share})")
    with Store(None, is_kept=False) as store:
        api.ingest([traces], store, run="demo")
        made = api.report(store, command="traceforge demo")
    write_text(page, made.html)
    print("\nVerdict:")
    print_verdict(made.verdict_lines, made.verdict_state)
    note(f"report: {page}; traces and truth.json: {traces}")
