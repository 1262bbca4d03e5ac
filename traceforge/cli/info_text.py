"""What a database holds, in words. In: an `Inventory`. Out: lines on stdout."""

from typing import TYPE_CHECKING

from traceforge.cli.console import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceforge.doctor import Inventory


def print_info(found: "Inventory") -> None:
    """The facts on stdout."""
    print("\n".join(printable(line) for line in info_lines(found)))


def info_lines(found: "Inventory") -> list[str]:
    """The facts as lines of text."""
    from traceforge.report.formatting import clean, count, plain, size

    stages = f"built by traceforge {found.built_by}" if found.built_by else "not built"
    lines = [
        f"database     {size(found.size_bytes)}, schema {found.schema}, stages {stages}: {', '.join(found.stages)}"
    ]
    for run in found.runs:
        lines += ["", f"run          {clean(run['run_name'], 80)}", *_run_lines(run)]
        lines += [
            f"             issue {clean(i['code'], 60)} ({i['severity']}): {count(i['count'])}" for i in run["issues"]
        ]
    return plain(lines)


def _run_lines(run: "Mapping[str, object]") -> list[str]:
    from traceforge.report.formatting import clean, listed, plural, size

    def number(key: str) -> int:
        return int(str(run[key] or 0))

    def names(key: str) -> list[str]:
        values = run[key]
        return [clean(value, 60) for value in values] if isinstance(values, list) else []

    ranks = f"{number('ranks')} of {number('world_size')}" if run["world_size"] else f"{number('ranks')}"
    elsewhere = {
        "execution traces": number("execution_trace_ranks"),
        "NCCL logs": number("log_ranks") or number("log_processes"),
    }
    # Where timelines are missing, or cover fewer ranks than other files do.
    shown = [f"{known} in {where}" for where, known in elsewhere.items() if known > number("ranks")]
    if shown:
        ranks = ", ".join([f"{ranks} in timelines" if number("ranks") else "no timeline", *shown])
    hosts = (
        f", {plural(len(names('hosts')), 'host')}: {listed(names('hosts'), 4)}" if names("hosts") else ", hosts unknown"
    )
    left_out = number("iterations") - number("judged_iterations")
    files = f"{plural(number('files'), 'file')}, {size(number('file_bytes'))}"
    versions = [
        f"NCCL {listed(names('nccl_versions')) or 'not stated'}",
        f"backend {listed(names('backends')) or 'not stated'}",
    ]
    return [
        f"  files      {files} ({listed(names('kinds'))}), {plural(number('events'), 'event')}",
        f"  ranks      {ranks}{hosts}" + (f", layout {clean(run['layout'], 120)}" if run["layout"] else ""),
        f"  iterations {number('judged_iterations')} that count" + (f", {left_out} left out" if left_out else ""),
        f"  collectives {number('collectives')}; devices: {listed(names('devices')) or 'not stated'}",
        f"  versions   PyTorch {listed(names('pytorch_versions')) or 'not stated'}, {', '.join(versions)}",
    ]
