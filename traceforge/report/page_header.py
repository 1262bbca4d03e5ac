"""The head of the page: which job, how much of it was seen. In: job facts. Out: name and pairs of label and value."""

from dataclasses import dataclass

from traceforge.report.context import Context
from traceforge.report.formatting import count, listed, percent, plural, rank_list, size
from traceforge.report.job import JobOverview


@dataclass(frozen=True, slots=True)
class PageHeader:
    """Name of the run, facts about it, and a note where the page was cut down."""

    name: str
    facts: list[tuple[str, str]]
    note: str


def page_header(context: Context, *, is_thinned: bool) -> PageHeader:
    """The head of the page."""
    job = context.job
    facts = [("Ranks", _ranks(job))]
    facts += [("Hosts", _hosts(job))] if job.hosts else []
    facts += [("Iterations", _iterations(job)), ("Files", _files(job))]
    note = "This run is so large that figures and tables were thinned further to keep the page small."
    return PageHeader(job.name, facts, note if is_thinned else "")


def _ranks(job: JobOverview) -> str:
    seen = len(job.ranks)
    if not seen:
        return f"none of {count(job.world_size)}" if job.world_size else "none with a timeline"
    if job.world_size is None or job.world_size == seen:
        return f"{count(seen)}, all of the job" if job.world_size == seen else count(seen)
    share = percent(seen / job.world_size) if job.world_size else "—"
    return f"{count(seen)} of {count(job.world_size)} ({share}): {rank_list(job.ranks)}"


def _hosts(job: JobOverview) -> str:
    unknown = sum(host is None for host in job.host_of.values())
    text = f"{count(len(job.hosts))}: {listed(job.hosts, 4)}"
    return f"{text}; {plural(unknown, 'rank')} on unknown hosts" if unknown else text


def _iterations(job: JobOverview) -> str:
    warmup = sum(iteration.is_warmup for iteration in job.iterations)
    partial = [iteration for iteration in job.iterations if iteration.is_partial and not iteration.is_warmup]
    compared = {None, *(iteration.annotation for iteration in job.used)}
    other = sum(iteration.annotation not in compared for iteration in partial)
    if not job.iterations:
        return "none recorded"
    if job.is_one_stretch:
        return "none marked"
    parts = [f"{count(len(job.used))} used"]
    parts += [f"{count(warmup)} warm-up"] if warmup else []
    parts += [f"{count(other)} of other kinds"] if other else []
    parts += [f"{count(len(partial) - other)} cut off"] if len(partial) > other else []
    return ", ".join(parts)


def _files(job: JobOverview) -> str:
    kinds = [f"{count(source.used_files)} {source.kind}" for source in job.sources if source.used_files]
    whole = size(sum(source.size_bytes for source in job.sources))
    unused = sum(source.files - source.used_files for source in job.sources)
    text = f"{listed(kinds)}, {whole}" if kinds else "none used"
    return f"{text}; {count(unused)} not used" if unused else text
