"""Which run each file belongs to, where one folder holds several. Reads meta.source and raw facts; changes meta.run.

A rank has one file in a run. Files of one rank that were recorded at other times (a profiler's schedule that repeats,
another job) are other runs; so are files of one host that were recorded at other times (left by an earlier job), files
of the same time that state another size of their job, that lie in another folder, are of another host that has all
ranks, of another launch on the host, or of another job of one rank, and each file without a rank that nothing tells
from others (see `guessed_rank`).
The run with most ranks, of equals one that has all it states, then one of the latest launch (see `launches`), then the
earliest, keeps the name that was given; others are named after it, such as `job [window 2]`. Execution traces without a
timeline are divided by what their names say (see `trace_ranks`).
Files that state different jobs are different runs, too (see `jobs`); files beside timelines are of these files' run
(see `companions`).
Not handled: jobs of one size at the same time in one folder that share hosts, or whose processes were started by turns
(one file a rank is used, see align.rank).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from traceforge.align.companions import logs_of_other_hosts, runs_of_companions
from traceforge.align.guessed_rank import guessed_ranks, with_processes, without_shared_names
from traceforge.align.jobs import NUMBERED_COMMUNICATOR, jobs_of
from traceforge.align.jobs_of_one_time import by_world_size, jobs_of_one_time
from traceforge.align.launches import called, launches
from traceforge.align.log_attempts import ATTEMPTS, PROCESSES, other_attempts
from traceforge.align.misnamed_rank import MEMBER_LISTS, without_denied_names
from traceforge.align.misstated_rank import without_misstated_ranks
from traceforge.align.named_axes import places
from traceforge.align.trace_ranks import workloads
from traceforge.align.windows import lie_apart, window_numbers
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds

_FAMILY = (
    "SELECT run_id, run_name FROM meta.run WHERE run_name = $1 OR STARTS_WITH(run_name, $1 || ' [') ORDER BY run_id"
)

_FILES = f"""
WITH communicating AS (
  SELECT DISTINCT source_id FROM raw.event_kind WHERE category IN ('kernel', 'Kernel') AND name ILIKE '%ccl%'
),
stated AS (
  SELECT source_id, MAX(group_size) AS ranks FROM raw.collective GROUP BY source_id
),
{MEMBER_LISTS},
numbered AS (
  SELECT source_id, LIST(DISTINCT process_group_name) AS communicators
  FROM raw.process_group
  WHERE STARTS_WITH(process_group_name, $3)
  GROUP BY source_id
)
SELECT
  s.source_id, s.path, s.rank, s.rank_origin, s.host,
  CASE WHEN MAX(e.raw_start_ns) < $2 THEN MIN(e.raw_start_ns) FILTER (WHERE e.raw_start_ns > -$2)
    ELSE MIN(e.raw_start_ns) FILTER (WHERE e.raw_start_ns > 0) END AS raw_first_ns,
  MAX(e.raw_start_ns + COALESCE(e.duration_ns, 0)) AS raw_last_ns,
  MIN(e.device) FILTER (WHERE e.category IN ('kernel', 'Kernel')) AS first_device,
  MAX(e.device) FILTER (WHERE e.category IN ('kernel', 'Kernel')) AS last_device,
  TRY_CAST(p.metadata->>'process' AS BIGINT) AS process,
  c.source_id IS NOT NULL AS communicates,
  GREATEST(p.world_size, t.ranks) AS stated_ranks,
  p.world_size,
  -- That of a report of Nsight may be the size of the largest communicator that was begun meanwhile.
  CASE WHEN s.kind <> 'nsys' THEN p.world_size END AS job_size,
  p.metadata->>'job' AS job,
  n.communicators,
  m.member_lists
FROM meta.source AS s
JOIN raw.profile AS p USING (source_id)
JOIN raw.event AS e USING (source_id)
LEFT JOIN communicating AS c USING (source_id)
LEFT JOIN stated AS t USING (source_id)
LEFT JOIN members AS m USING (source_id)
LEFT JOIN numbered AS n USING (source_id)
WHERE e.phase = 'X' AND LIST_CONTAINS($1, s.run_id)
GROUP BY ALL
ORDER BY s.source_id
"""

_EXECUTION_TRACES = """
SELECT s.source_id, s.kind, s.path, s.rank
FROM meta.source AS s
SEMI JOIN raw.chakra_file AS f USING (source_id)
WHERE LIST_CONTAINS(?, s.run_id)
ORDER BY s.source_id
"""

_BESIDE = """
SELECT s.source_id, s.path, s.kind, s.host, p.source_id IS NOT NULL AS is_timeline
FROM meta.source AS s
LEFT JOIN raw.profile AS p USING (source_id)
WHERE LIST_CONTAINS(?, s.run_id)
ORDER BY s.source_id
"""

_CLAIMS = """
SELECT COUNT(*) AS files, COUNT(DISTINCT s.rank) AS ranks, COUNT(DISTINCT p.metadata->>'job') AS jobs,
  COUNT(DISTINCT p.world_size) AS sizes
FROM meta.source AS s
JOIN raw.profile AS p USING (source_id)
WHERE s.status = 'used' AND LIST_CONTAINS(?, s.run_id)
"""

# Clocks of one host agree; those that count from a boot or a session do not tell.
_APART = """
SELECT 1
FROM (
  SELECT s.host, MIN(e.raw_start_ns) AS first_ns, MAX(e.raw_start_ns) AS last_ns
  FROM meta.source AS s
  JOIN raw.occurrence AS e USING (source_id)
  WHERE LIST_CONTAINS($1, s.run_id) AND s.host IS NOT NULL AND e.raw_start_ns >= $2
  GROUP BY s.source_id, s.host
)
QUALIFY first_ns > $3 + MAX(last_ns) OVER (
  PARTITION BY host ORDER BY first_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
)
LIMIT 1
"""

_WORLD_SIZE = """
UPDATE meta.run SET world_size = (
  SELECT COALESCE(MAX(f.world_size), ANY_VALUE(r.world_size))
  FROM meta.run AS r
  LEFT JOIN meta.source AS s USING (run_id)
  LEFT JOIN raw.profile AS f USING (source_id)
  WHERE r.run_id = $1
) WHERE run_id = $1
"""

_MOVE = "UPDATE meta.{table} SET run_id = ? WHERE LIST_CONTAINS(?, source_id)"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Files that make one run.

    Attributes:
        label: what tells them from others; empty where nothing does.
        files: their source_id.
        launch_ns: when the job that recorded them began to record; 0 where all files may be of one.
    """

    label: str
    files: Sequence[int]
    launch_ns: int = 0


def split_runs(store: Store, run_id: int) -> None:
    """Give files that cannot be of one run to runs of their own; what an earlier call divided is judged anew."""
    name = str(store.value("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id]))
    name = name.partition(" [")[0]
    family = dict(store.query(_FAMILY, [name]).select("run_name", "run_id").rows())
    if name not in family:
        return
    groups = _with_companions(store, list(family.values()), _groups(store, list(family.values())))
    if len(groups) < 2 and len(family) == 1:
        return
    with store.transaction():
        for place, group in enumerate(groups):
            _assign(store, family[name] if place == 0 else _run(store, f"{name} [{group.label}]"), group.files)
        # Only now are its files all that it has.
        store.execute(_WORLD_SIZE, [family[name]])
        _note(store, family[name], name, groups)


def _groups(store: Store, runs: list[int]) -> list[RunFiles]:
    """Timelines, or execution traces without one, by run; empty where they are of one."""
    claims = store.query(_CLAIMS, [runs]).row(0, named=True)
    if not claims["files"]:
        return [RunFiles(one.label, one.files) for one in workloads(store.query(_EXECUTION_TRACES, [runs]))]
    is_plain = len(runs) == 1 and claims["files"] in (1, claims["ranks"]) and max(claims["jobs"], claims["sizes"]) < 2
    if is_plain and (claims["files"] == 1 or not _are_apart(store, runs)):
        return []
    return divided(store.query(_FILES, [runs, thresholds.EARLIEST_EPOCH_NS, NUMBERED_COMMUNICATOR]))


def _are_apart(store: Store, runs: list[int]) -> bool:
    """Whether files of one host were recorded long before others of it."""
    asked = [runs, thresholds.EARLIEST_EPOCH_NS, thresholds.LEAST_WINDOW_GAP_NS]
    return not store.query(_APART, asked).is_empty()


def _with_companions(store: Store, runs: list[int], groups: list[RunFiles]) -> list[RunFiles]:
    """The same runs with the files beside their timelines; logs of another job or attempt are runs of their own."""
    files = store.query(_BESIDE, [runs])
    if not files["is_timeline"].any():
        return groups
    found = groups or [RunFiles("", files.filter("is_timeline")["source_id"].to_list())]
    strangers = logs_of_other_hosts(files)
    logs = [RunFiles("logs of other hosts", strangers)] if strangers else []
    members = store.query(ATTEMPTS, [runs])
    recorded = store.query(PROCESSES, [runs])["pid"]
    beside: dict[int, list[int]] = {}
    for source_id, place in runs_of_companions(files, [group.files for group in found]).items():
        beside.setdefault(place, []).append(source_id)
    for own in beside.values():
        others = other_attempts(members.filter(pl.col("source_id").is_in(set(own) - set(strangers))), recorded)
        logs += [RunFiles(f"logs of attempt {len(logs) + n}", sources) for n, sources in enumerate(others, start=1)]
    if not groups and not logs:
        return []
    apart = {source_id for run in logs for source_id in run.files}
    return [
        RunFiles(group.label, [*group.files, *(one for one in beside.get(place, ()) if one not in apart)])
        for place, group in enumerate(found)
    ] + logs


def divided(files: pl.DataFrame) -> list[RunFiles]:
    """Files by run, the one that keeps the name first."""
    if files.is_empty():
        return [RunFiles("", [])]
    jobs = jobs_of(files)
    found = [
        RunFiles(", ".join(filter(None, [label, one.label])), one.files) for label, own in jobs for one in _of_job(own)
    ]
    return sorted(found, key=lambda run: -len(run.files)) if len(jobs) > 1 else found


def _of_job(files: pl.DataFrame) -> list[RunFiles]:
    """Files by run where they may be of one job, the one with most ranks first."""
    files = without_denied_names(without_misstated_ranks(without_shared_names(files)))
    if guessed_ranks(files) is not None:
        return [RunFiles("", files["source_id"].to_list())]
    if windows := _windows_of_processes(files) or _windows_of_axes(files):
        return windows
    known = with_processes(files.filter(pl.col("rank").is_not_null())).sort("raw_first_ns", "source_id")
    groups = list(_by_window(known))
    ranks = dict(files.select("source_id", "rank").rows())
    stated = dict(files.select("source_id", "stated_ranks").rows())

    def place(group: RunFiles) -> tuple[int, bool]:
        count = len({ranks[one] for one in group.files})
        return -count, count < max(stated[one] or 0 for one in group.files)

    return [*_in_order(groups, place), *_by_folder(files.filter(pl.col("rank").is_null()))]


def _windows_of_processes(files: pl.DataFrame) -> list[RunFiles]:
    """Files without ranks by window of the profiler, the fullest first; none where those of one are not told apart."""
    files = with_processes(files)
    process = files.select(pl.struct("host", "process").rank("dense")).to_series()
    return [] if files["process"].has_nulls() else _windows_without_ranks(files, process)


def _windows_of_axes(files: pl.DataFrame) -> list[RunFiles]:
    """The same, where names hold places on parallel axes."""
    place = places(files)
    return [] if place is None else _windows_without_ranks(files, place)


def _windows_without_ranks(files: pl.DataFrame, place: pl.Series) -> list[RunFiles]:
    """Files without ranks by window, where something else counts what may be ranks; a window has each once."""
    if files["rank"].is_not_null().any() or place.n_unique() == files.height:
        return []
    found = list(_by_window(files.with_columns(rank=place).sort("raw_first_ns", "source_id")))
    if any(guessed_ranks(files.filter(pl.col("source_id").is_in(one.files))) is None for one in found):
        return []
    return _in_order(found, lambda one: -len(one.files))


def _in_order(groups: Sequence[RunFiles], place: Callable[[RunFiles], Any]) -> list[RunFiles]:
    """Those of the first place first, of equals those of the latest launch; others are called by when that was."""
    found = sorted(groups, key=lambda one: (place(one), -one.launch_ns))
    return [replace(one, label=called(one.label, one.launch_ns, found[0].launch_ns)) for one in found]


def _by_folder(unknown: pl.DataFrame) -> Iterator[RunFiles]:
    """Files without a rank: those of one folder (or one report) together where something tells them apart."""
    folder = pl.col("path").map_elements(lambda path: str(PurePosixPath(path).parent), return_dtype=pl.String)
    for (path,), own in unknown.with_columns(folder=folder).group_by("folder", maintain_order=True):
        if own.height > 1 and guessed_ranks(own) is not None:
            yield RunFiles(PurePosixPath(str(path)).name, own["source_id"].to_list())
        else:
            for source_id, file in own.select("source_id", "path").rows():
                yield RunFiles(f"file {PurePosixPath(file).name}", [source_id])


def _by_window(known: pl.DataFrame) -> Iterator[RunFiles]:
    """Files of one stretch of time each, in order; those that cannot be of one job apart."""
    if known.is_empty():
        return
    spans = known.select("rank", "raw_first_ns", "raw_last_ns").fill_null(0).rows()
    number = window_numbers(spans, are_apart=lie_apart(known))
    windows = known.with_columns(window=pl.Series(number)).partition_by("window", maintain_order=True)
    for place, (window, start) in enumerate(zip(windows, launches(windows), strict=True), start=1):
        for told, own in by_world_size(window):
            yield from _of_window(
                own, ", ".join(filter(None, [f"window {place}" if len(windows) > 1 else "", told])), start
            )


def _of_window(window: pl.DataFrame, label: str, start: int) -> Iterator[RunFiles]:
    """Files of one time and size of a job; where a rank repeats, by folder and host."""
    if window["rank"].n_unique() == window.height or guessed_ranks(window) is not None:
        yield RunFiles(label or "files", window["source_id"].to_list(), start)
        return
    for told, files in jobs_of_one_time(window):
        named = ", ".join(filter(None, [label, told]))
        yield RunFiles(named or "files", files["source_id"].to_list(), start)


def _run(store: Store, name: str) -> int:
    found = store.query("SELECT run_id FROM meta.run WHERE run_name = ?", [name])
    if not found.is_empty():
        return int(found.item())
    run_id = int(store.value("SELECT MAX(run_id) + 1 FROM meta.run"))
    store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (?, ?)", [run_id, name])
    return run_id


def _assign(store: Store, run_id: int, files: Sequence[int]) -> None:
    for table in ("source", "issue"):
        store.execute(_MOVE.format(table=table), [run_id, list(files)])
    store.execute(_WORLD_SIZE, [run_id])


def _note(store: Store, run_id: int, name: str, groups: Sequence[RunFiles]) -> None:
    """Say which runs were made, in the place of what was said before; drop runs that hold no file any more."""
    empty = "run_name <> ? AND STARTS_WITH(run_name, ?) AND run_id NOT IN (SELECT run_id FROM meta.source)"
    store.execute(f"DELETE FROM meta.run WHERE {empty}", [name, f"{name} ["])
    store.execute("DELETE FROM meta.issue WHERE run_id = ? AND code = 'runs_divided'", [run_id])
    if len(groups) > 1:
        others = ", ".join(f"{name} [{group.label}]" for group in groups[1:])
        moved = sum(len(group.files) for group in groups[1:])
        detail = (
            f"files that cannot be of one run (another job or its logs, one rank twice, or no rank) are runs of their "
            f"own: {others}; if they are ranks of one job, put them into folders rank0, rank1, ... or name them by "
            "--rank-regex"
        )
        store.append(
            "meta.issue", issue_rows(run_id, None, "ingest", [Issue("runs_divided", "info", moved, None, detail)])
        )
