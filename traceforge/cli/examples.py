"""Examples at the foot of each command's help. In: the name of a command. Out: lines to copy."""

_EXAMPLES = {
    "report": (
        "traceforge report traces/job42",
        "traceforge report job42.duckdb -o job42.html --json job42.json",
        "traceforge report traces/today --baseline traces/yesterday",
    ),
    "top": (
        "traceforge top trace.json.gz",
        "traceforge top job42.duckdb --by operation -n 10",
    ),
    "ingest": (
        "traceforge ingest traces/job42 --db job42.duckdb",
        "traceforge ingest rank*.json.gz --db runs.duckdb --run tuesday",
        "traceforge ingest traces/large --db large/ --jobs 8",
        "traceforge ingest traces/large --db large/ --part 3/64",
        "traceforge ingest traces/large --db large/ --executor dask://login1:8786",
    ),
    "compare": (
        "traceforge compare good.duckdb bad.duckdb",
        "traceforge compare traces/monday traces/tuesday",
        "traceforge compare job.duckdb --run-a old --run-b new --json",
    ),
    "check": (
        "traceforge check job.duckdb --max iteration_ms=130",
        "traceforge check traces/ --max wait_share=20% --max finding_confidence=low",
        "traceforge check traces/ --baseline good.json --tolerance 3% --junit ci.xml",
    ),
    "history add": (
        "traceforge history add fleet.duckdb job42.duckdb --job pretrain --commit 1f3ab2c",
        "traceforge history add fleet.duckdb runs.duckdb --run 'night*'",
    ),
    "history report": ("traceforge history report fleet.duckdb -o fleet.html --price 2.5",),
    "history check": ("traceforge history check fleet.duckdb --job pretrain",),
    "history metrics": ("traceforge history metrics fleet.duckdb -o /var/lib/node_exporter/traceforge.prom",),
    "history dashboard": ("traceforge history dashboard > dashboard.json",),
    "mcp": ("traceforge mcp job42.duckdb yesterday.duckdb",),
    "doctor": (
        "traceforge doctor traces/job42",
        "traceforge doctor job42.duckdb --json",
    ),
    "info": ("traceforge info job42.duckdb",),
    "sql": (
        'traceforge sql job.duckdb "FROM timeline.iteration"',
        "traceforge sql --list --about kernel",
        "traceforge sql job.duckdb --name late_ranks",
        "traceforge sql job.duckdb --name ledger --format csv > ledger.csv",
    ),
    "replay": (
        "traceforge replay job42.duckdb",
        "traceforge replay job42.duckdb --policy bounded_delay:window=4,gain=0.5",
        "traceforge replay job42.duckdb --what-if fix_rank:rank=2",
        "traceforge replay job42.duckdb --what-if list",
    ),
    "forecast": (
        "traceforge forecast ranks8.duckdb ranks16.duckdb ranks32.duckdb",
        "traceforge forecast --points throughput.csv --ranks 128,256",
        "traceforge forecast job42.duckdb --price 2.5 --mtbf-hours 50000",
    ),
    "schema": ("traceforge schema report > report.schema.json",),
    "merge": ("traceforge merge large/",),
    "pack": ("traceforge pack job42/ job42.duckdb",),
    "unpack": ("traceforge unpack job42.duckdb job42/",),
    "synth": (
        "traceforge synth -o traces --fault compute_straggler:place=3,severity=0.3",
        "traceforge synth -o traces --nodes 4 --devices 8 --nccl-log 2.27.5",
        "traceforge synth -o traces --pipeline-parallel 4 --schedule gpipe --fault stage_slow_compute:place=2",
    ),
}


def examples_of(command: str) -> str | None:
    """The examples of a command as its help shows them, each on a line of its own; None where it has none."""
    lines = _EXAMPLES.get(command)
    return None if lines is None else "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
