"""The file used for each rank. Reads meta.source, raw.* and align.extent; fills align.rank.

Two files may claim one rank (two jobs in a folder, two windows of one process): those recorded at the same time as most
other ranks are used, the earliest of equals; the others are left out and counted in `meta.issue`. A single file without
a rank is rank 0; several files without any rank are ranked by name, device or process (`guessed_rank`). A
truncated file counts as far as it is whole (`align.intact`). Where no timeline of a run states a host, other files do:
see `align.stated_host`.
Not handled: windows of one rank are never joined, because steps, calls and clocks are followed within one file; each
window can be ingested as a run of its own.
"""

from typing import Any

import polars as pl

from traceforge.align.guessed_rank import guessed_ranks, without_shared_names
from traceforge.align.misnamed_rank import MEMBER_LISTS, MISNAMED, without_denied_names
from traceforge.align.misstated_rank import MISSTATED, without_misstated_ranks
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds

_CANDIDATES = f"""
WITH communicating AS (
  SELECT DISTINCT source_id FROM raw.event_kind WHERE category IN ('kernel', 'Kernel') AND name ILIKE '%ccl%'
),
stated AS (
  SELECT source_id, MAX(group_size) AS ranks FROM raw.collective GROUP BY source_id
),
{MEMBER_LISTS}
SELECT
  s.run_id,
  s.source_id,
  s.kind,
  s.rank,
  s.rank_origin,
  s.host,
  s.path,
  e.raw_first_ns,
  e.raw_last_ns,
  e.first_device,
  e.last_device,
  e.has_device,
  TRY_CAST(p.metadata->>'process' AS BIGINT) AS process,
  c.source_id IS NOT NULL AS communicates,
  GREATEST(p.world_size, t.ranks) AS stated_ranks,
  p.world_size,
  m.member_lists,
  i.raw_until_ns AS raw_intact_ns,
  i.source_id IS NOT NULL AND i.raw_until_ns IS NULL AS is_useless
FROM meta.source AS s
JOIN raw.profile AS p USING (source_id)
JOIN align.extent AS e USING (source_id)
LEFT JOIN align.intact AS i USING (source_id)
LEFT JOIN communicating AS c USING (source_id)
LEFT JOIN stated AS t USING (source_id)
LEFT JOIN members AS m USING (source_id)
ORDER BY s.run_id, s.rank, raw_first_ns, s.source_id
"""

_STATED_HOSTS = "SELECT run_id, rank, host FROM align.stated_host ORDER BY run_id, rank"

_NAMED_FILES = 3
_COLUMNS = ["run_id", "rank", "source_id", "host", "raw_first_ns", "raw_last_ns", "has_device", "raw_intact_ns"]


def rows(store: Store) -> pl.DataFrame:
    """One row a rank of each run; adds an issue for every file that is left out."""
    candidates = store.query(_CANDIDATES)
    if candidates.is_empty():
        return candidates
    chosen = [
        _choose(store, int(run_id), files) for (run_id,), files in candidates.group_by("run_id", maintain_order=True)
    ]
    return _with_stated_hosts(store, pl.concat(chosen))


def _with_stated_hosts(store: Store, ranks: pl.DataFrame) -> pl.DataFrame:
    """Hosts from other files, in runs of which no timeline states one: two sources could spell one host in two ways."""
    is_open = pl.col("host").is_null().all().over("run_id")
    stated = store.query(_STATED_HOSTS).rename({"host": "stated_host"})
    joined = ranks.join(stated, on=["run_id", "rank"], how="left", maintain_order="left")
    host = pl.when(is_open).then(pl.col("stated_host")).otherwise(pl.col("host"))
    return joined.with_columns(host=host).select(_COLUMNS)


def _choose(store: Store, run_id: int, files: pl.DataFrame) -> pl.DataFrame:
    files = _put_right(store, run_id, without_shared_names(files))
    if files.height == 1 and files["rank"].is_null().all():
        files = files.with_columns(rank=pl.lit(0, dtype=pl.Int32))
        store.append("meta.issue", issue_rows(run_id, None, "align", [_assumed_rank(files)]))
    elif (guess := guessed_ranks(files)) is not None:
        files = files.with_columns(guess.ranks.alias("rank"))
        issue = Issue(guess.code, "warning", files.height, files["path"][0], guess.detail)
        store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))
    useless = files.filter("is_useless")
    unknown = files.filter(~pl.col("is_useless") & pl.col("rank").is_null())
    known = files.filter(~pl.col("is_useless") & pl.col("rank").is_not_null())
    first = _one_window(known).unique("rank", keep="first", maintain_order=True)
    left_out = known.join(first, on="source_id", how="anti")
    repeated = left_out.filter(pl.col("rank").is_in(first["rank"].implode()))
    alone = left_out.filter(~pl.col("rank").is_in(first["rank"].implode()))
    issues = []
    if not useless.is_empty():
        detail = "truncated files that end before what the device did were left out: their ranks count as not recorded"
        issues.append(Issue("rank_cut_off", "warning", useless.height, useless["path"][0], detail))
    if not unknown.is_empty():
        detail = "files whose rank is stated neither inside, nor by name or folder, were left out"
        issues.append(Issue("rank_unknown", "warning", unknown.height, unknown["path"][0], detail))
    if not repeated.is_empty():
        issues.append(Issue("rank_repeated", "warning", repeated.height, repeated["path"][0], _chosen(repeated, first)))
    if not alone.is_empty():
        detail = "files that were recorded at another time than those of the other ranks were left out"
        issues.append(Issue("rank_of_another_window", "warning", alone.height, alone["path"][0], detail))
    store.append("meta.issue", issue_rows(run_id, None, "align", issues))
    return first.sort("rank").select(_COLUMNS)


def _put_right(store: Store, run_id: int, files: pl.DataFrame) -> pl.DataFrame:
    """Files without ranks that what they state or how they are called gets wrong; adds an issue for each such error."""
    mending = (
        ("rank_misstated", MISSTATED, without_misstated_ranks),
        ("rank_misnamed", MISNAMED, without_denied_names),
    )
    for code, detail, mended in mending:
        found = mended(files)
        if not found["rank"].equals(files["rank"]):
            issue = Issue(code, "warning", found.height, found["path"][0], detail)
            store.append("meta.issue", issue_rows(run_id, None, "align", [issue]))
        files = found
    return files


def _one_window(known: pl.DataFrame) -> pl.DataFrame:
    """Where a rank has several files, those of the stretch of time that holds most ranks (the earliest of equals).

    Where every rank has one file, nothing is left out: clocks of hosts may be far apart.
    """
    if known["rank"].n_unique() == known.height:
        return known
    windows = known.sort("raw_first_ns", "source_id")
    until = pl.col("raw_last_ns").cum_max().shift(1)
    windows = windows.with_columns(
        window=(pl.col("raw_first_ns") > until + thresholds.LEAST_WINDOW_GAP_NS).fill_null(value=False).cum_sum()
    )
    ranks = windows.group_by("window", maintain_order=True).agg(pl.col("rank").n_unique())
    best = ranks.filter(pl.col("rank") == pl.col("rank").max())["window"][0]
    return windows.filter(pl.col("window") == best)


def _chosen(repeated: pl.DataFrame, chosen: pl.DataFrame) -> str:
    """Which files are left out in favour of which, and whether they can be windows of one job, as a sentence."""
    other = chosen.select(
        "rank", kept="path", kept_kind="kind", kept_first_ns="raw_first_ns", kept_last_ns="raw_last_ns"
    )
    pairs = repeated.join(other, on="rank", maintain_order="left")
    named = [_choice(pair) for pair in pairs.head(_NAMED_FILES).iter_rows(named=True)]
    more = f"; and {pairs.height - _NAMED_FILES} more" if pairs.height > _NAMED_FILES else ""
    return f"several files claim one rank, and one of them is used: {'; '.join(named)}{more}"


def _choice(pair: dict[str, Any]) -> str:
    times = [pair[name] for name in ("raw_first_ns", "raw_last_ns", "kept_first_ns", "kept_last_ns")]
    if None in times:
        when = "holds no timed events"
    elif pair["raw_first_ns"] < pair["kept_last_ns"] and pair["kept_first_ns"] < pair["raw_last_ns"]:
        is_one_tool = pair["kind"] == pair["kept_kind"]
        when = "overlaps it in time, so it is " + ("of another job or a copy" if is_one_tool else "by another tool")
    else:
        when = "lies at another time, so it is another window or job; ingest it as a run of its own"
    return f"rank {pair['rank']}: {pair['kept']} is used, {pair['path']} is left out, which {when}"


def _assumed_rank(files: pl.DataFrame) -> Issue:
    return Issue("rank_assumed", "info", 1, files["path"][0], "the only file states no rank; taken as rank 0")
