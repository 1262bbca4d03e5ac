"""The summary for machines: small, stable, comparable between runs. In: a context. Out: JSON values.

Each section adds its own keys. Durations are whole ns, shares have four decimals. `schema_version` rises when a key is
renamed or removed.
"""

from traceforge.report.context import Context
from traceforge.report.sections import section_plugins

SCHEMA_VERSION = 1


def summarise(context: Context) -> dict[str, object]:
    """The summary of a run."""
    job = context.job
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "run": {
            "name": job.name,
            "world_size": job.world_size,
            "ranks": len(job.ranks),
            "hosts": len(job.hosts),
            "files": sum(source.used_files for source in job.sources),
        },
    }
    for plugin in section_plugins().values():
        document |= plugin.summarise(context) if plugin.summarise else {}
    return document
