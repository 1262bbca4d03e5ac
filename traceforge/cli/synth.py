"""`traceforge synth`: traces of a made-up job whose trouble is known, to try the program on or to test it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note
from traceforge.errors import InputUnusableError, UsageError
from traceforge.outputs import check_outputs
from traceforge.units import plural

if TYPE_CHECKING:
    from traceforge.synth.fault import Injection
    from traceforge.synth.scenario import Scenario

TRUTH = "truth.json"
FaultNames = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="FAULT",
        help="Fault to inject, such as compute_straggler or compute_straggler:place=3,severity=0.3,first=5,last=12; "
        "may be repeated. None: a healthy job.",
    ),
]
TelemetryTool = Annotated[
    str,
    typer.Option(
        "--telemetry", metavar="TOOL", help="Write what a tool reads of devices: nvidia_smi, dcgmi or prometheus."
    ),
]
TraceFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of the timelines: kineto, nsys (SQLite exports), nsys_parquet, pftrace (Perfetto), rocprof (JSON), rocpd "
        "or xplane.",
    ),
]
Inspector = Annotated[bool, typer.Option("--inspector", help="Write files of the NCCL Inspector.")]
Stamped = Annotated[bool, typer.Option("--stamped", help="Write time stamps into these logs (2.27.5).")]
NcclLog = Annotated[
    str,
    typer.Option(
        "--nccl-log",
        metavar="VERSION",
        help="Write NCCL's debug logs as this version prints them: 2.21.5 or 2.27.5.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same files.")]


def synth(
    scenario: Annotated[Path | None, typer.Argument(help="Scenario as TOML; else the options below.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")] = Path("synth"),
    fault: FaultNames = None,
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="Hosts.")] = 2,
    devices: Annotated[int, typer.Option(min=1, metavar="N", help="Devices a host.")] = 4,
    tensor_parallel: Annotated[int, typer.Option(min=1, metavar="N", help="Ranks of a tensor-parallel group.")] = 1,
    pipeline_parallel: Annotated[int, typer.Option(min=1, metavar="N", help="Stages of a pipeline.")] = 1,
    schedule: Annotated[
        str, typer.Option(metavar="NAME", help="Of the pipeline: gpipe, 1f1b, interleaved or zero_bubble.")
    ] = "1f1b",
    microbatches: Annotated[int, typer.Option(min=1, metavar="N", help="Of a pipeline's iteration.")] = 8,
    chunks: Annotated[int, typer.Option(min=1, metavar="N", help="Virtual stages of a rank (interleaved).")] = 1,
    batched: Annotated[
        bool, typer.Option("--batched/--one-by-one", help="How stages give their messages to NCCL.")
    ] = True,
    shard: Annotated[int, typer.Option(min=1, metavar="N", help="Ranks that hold the model together (FSDP).")] = 1,
    expert_parallel: Annotated[int, typer.Option(min=1, metavar="N", help="Ranks that share experts.")] = 1,
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="Recorded iterations.")] = 20,
    seed: Seed = 0,
    nccl: NcclLog = "",
    inspector: Inspector = False,
    execution_traces: Annotated[
        bool, typer.Option("--execution-traces", help="Write PyTorch execution traces beside the timelines.")
    ] = False,
    trace_format: TraceFormat = "kineto",
    telemetry: TelemetryTool = "",
    stamped: Stamped = False,
) -> None:
    """Generate traces of a job with known faults. A truth.json holds the cost of each."""
    from traceforge.synth.cluster import Cluster
    from traceforge.synth.folder import write_scenario
    from traceforge.synth.nccl_grammar import NcclLogs
    from traceforge.synth.pipeline import Pipeline
    from traceforge.synth.program import Workload
    from traceforge.synth.scenario import Scenario
    from traceforge.synth.telemetry_settings import Telemetry

    check_made_up(output)
    if scenario is not None:
        check_outputs([output / "scenario.toml"] if output.is_dir() else [], inputs=[scenario])
        made = read_scenario(scenario)
    else:
        cluster = Cluster(nodes, devices, tensor_parallel, pipeline_parallel=pipeline_parallel)
        cluster = replace(cluster, shard=shard, expert_parallel=expert_parallel)
        pipeline = Pipeline(schedule, microbatches, chunks, batched)
        layers = 2 * pipeline_parallel * chunks if pipeline_parallel > 1 else Workload().layers
        workload = Workload(layers=layers)
        logs = NcclLogs(nccl, stamped, inspector=inspector)
        made = with_faults(Scenario(output.name, seed, iterations, cluster=cluster, nccl=logs), fault)
        made = replace(made, execution_traces=execution_traces, pipeline=pipeline, workload=workload)
        made = replace(made, telemetry=Telemetry(telemetry))
    try:
        cost = write_scenario(made, output, trace_format=trace_format)
    except OSError as error:
        raise InputUnusableError(f"cannot be written: {error.strerror}", where=str(output)) from error
    excess = (cost.duration_ns - cost.healthy_ns).mean() / 1e6
    note(f"{plural(made.cluster.ranks, 'trace')} in {output}; faults cost {excess:.2f} ms an iteration (truth.json)")


def check_made_up(folder: Path) -> None:
    """Refuse a folder in which files lie that are not those of an earlier made-up job.

    Raises:
        UsageError: there are such files, which may be somebody's recordings.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / TRUTH).is_file():
        why = "files lie in it that `synth` did not make"
        raise UsageError(why, where=str(folder), hint="name another folder with -o")


def read_scenario(path: Path) -> "Scenario":
    """The scenario in a TOML file."""
    from traceforge.synth.scenario import scenario_of

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        hint = "a scenario is a TOML file; -o names the folder to write into"
        raise InputUnusableError(f"cannot be read as a scenario: {why}", where=str(path), hint=hint) from error
    return scenario_of(text, path.name)


def with_faults(scenario: "Scenario", texts: list[str] | None) -> "Scenario":
    """The scenario with the faults that options name."""
    return replace(scenario, faults=tuple(_injection(text) for text in texts or []))


def _injection(text: str) -> "Injection":
    from traceforge.synth.fault import Injection, faults

    name, _, rest = text.partition(":")
    if name not in faults():
        raise UsageError(f"there is no fault `{name}`", hint=f"choose one of: {', '.join(faults())}")
    values: dict[str, float | int | str] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        kinds: dict[str, type[float] | type[int] | type[str]] = {
            "place": int, "severity": float, "first": int, "last": int, "every": int, "trouble": str
        }  # fmt: skip
        try:
            values[key] = kinds[key](value)
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"`{part}` is not a parameter of a fault", hint=f"known are: {', '.join(kinds)}"
            ) from error
    return Injection(name, **values)  # type: ignore[arg-type]  # converted above
