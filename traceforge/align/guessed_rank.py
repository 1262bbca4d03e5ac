"""Ranks where no file states one. In: files with name, host, device and process. Out: a rank for each, or none.

It is a guess, and is said to be one. Idea: the surest first. Launchers write a rank into names (`report_3.sqlite`):
numbers that follow one another, in files that were recorded at one time. Nsight Systems counts its reports from 1 on
(`report1.sqlite`), inference engines name a place on each parallel axis (see `named_axes`), and some launchers count
the ranks of each host (see `local_rank`). Else where each file used one
device of its own, the devices of a host stand for its ranks. Else, where each process was shown one device and calls it
0, launchers start processes in the order of ranks. Without a device of its own, only what ran collectives is taken for
a rank.
Hosts follow one another in the natural order of their names, as launchers number them.
Not handled: files that were recorded at different times, which may be of different jobs.
"""

from pathlib import PurePosixPath
from typing import NamedTuple

import polars as pl

from traceforge.align.local_rank import by_local_rank, natural
from traceforge.align.named_axes import by_axes
from traceforge.align.trace_ranks import numbered
from traceforge.store.naming import process_in_name
from traceforge.thresholds import align as thresholds

_NAMES = (
    "no file states a rank; the only number in which their names differ is taken for that of one job (counted from 1, "
    "it is one more than the rank)"
)
_AXES = (
    "no file states a rank of its own; their names state a place on each parallel axis, and ranks are counted along "
    "tensor-parallel places first, then context, pipeline and data parallel ones"
)
_LOCAL = (
    "names count the ranks of each host, and the files are as many as their communicator has ranks; taken for the "
    "ranks of one job, hosts in the order of their names"
)
_ONE_HOST = "no file states a rank, and each used a device of its own; taken for the ranks of one job"
_BESIDE = (
    "some files or their names state ranks; each of the others used a device of its own, which stands for a rank as "
    "those of the first do"
)
_HOSTS = (
    "no file states a rank; hosts in the order of their names, and the devices of each, are taken for one job's ranks"
)
_PROCESSES = (
    "no file states a rank, and processes share the number of a device, as under CUDA_VISIBLE_DEVICES; processes in "
    "the order of their numbers, host by host, are taken for the ranks of one job"
)


class GuessedRanks(NamedTuple):
    """A rank for each file, with the code of the issue that says how it was guessed, and the sentence."""

    ranks: pl.Series
    code: str
    detail: str


def guessed_ranks(files: pl.DataFrame) -> GuessedRanks | None:
    """A rank for each file; None where each states its own, or nothing tells them apart.

    Args:
        files: columns source_id, path, rank, rank_origin, host, first_device, last_device, raw_first_ns, raw_last_ns,
            process, communicates and stated_ranks.
    """
    files = with_processes(files)
    if files["rank"].is_null().all():
        return _by_what_names_count(files) or _by_hardware(files)
    return _by_what_names_count(files) or _beside_named(files)


def _by_what_names_count(files: pl.DataFrame) -> GuessedRanks | None:
    if (ranks := _by_axes(files)) is not None:
        return GuessedRanks(ranks, "rank_from_axes", _AXES)
    if files["rank"].is_null().all() and (ranks := _by_name(files)) is not None:
        return GuessedRanks(ranks, "rank_from_name", _NAMES)
    if (ranks := by_local_rank(files)) is not None and _overlap(files):
        return GuessedRanks(ranks, "rank_from_local_rank", _LOCAL)
    return None


def _by_hardware(files: pl.DataFrame) -> GuessedRanks | None:
    if (ranks := _by_device(files)) is not None:
        return GuessedRanks(ranks, "rank_from_device", _ONE_HOST if files["host"].n_unique() == 1 else _HOSTS)
    if (ranks := _by_process(files)) is not None:
        return GuessedRanks(ranks, "rank_from_process", _PROCESSES)
    return None


def _beside_named(files: pl.DataFrame) -> GuessedRanks | None:
    """Ranks of files of one host by their devices, where others have theirs, and all are the whole job."""
    ranks, devices = files["rank"], files["first_device"]
    is_whole = files["communicates"].all() and (files["stated_ranks"] == files.height).fill_null(value=False).all()
    if not ranks.has_nulls() or not is_whole or not devices.equals(files["last_device"]) or not _overlap(files):
        return None
    first = (ranks - devices).drop_nulls().unique()
    if len(first) != 1 or devices.n_unique() < files.height or files["host"].drop_nulls().n_unique() > 1:
        return None
    found = (devices + first[0]).cast(pl.Int32)
    return GuessedRanks(found, "rank_from_device", _BESIDE) if found.ge(0).all() else None


def with_processes(files: pl.DataFrame) -> pl.DataFrame:
    """Files with the process that the name of one states, where nothing else does."""
    named = [process_in_name(PurePosixPath(path).name) for path in files["path"]]
    return files.with_columns(process=pl.coalesce("process", pl.Series(named, dtype=pl.Int64)))


def without_shared_names(files: pl.DataFrame) -> pl.DataFrame:
    """Files without the rank that the name of their folder (or report) gives to several, each of a process of its own.

    A report of a whole host may be called `rank1` by whoever counts hosts: then its processes are not all rank 1.
    Processes on one device count as several ranks where each ran collectives: a helper of a rank does not.

    Args:
        files: columns path, rank, rank_origin, first_device, last_device, process and communicates.
    """
    of_name = (pl.col("rank_origin") == "folder_name").fill_null(value=False)
    one_device = (pl.col("first_device") == pl.col("last_device")).fill_null(value=False)
    named = files.with_columns(folder=_folder(), alone=one_device)
    sharing = ["folder", "rank", "rank_origin"]
    own_devices = pl.col("alone").all() & (pl.col("first_device").n_unique() == pl.len())
    all_talk = pl.col("communicates").all() & pl.col("process").is_not_null().all()
    own_processes = all_talk & (pl.col("process").n_unique() == pl.len())
    is_shared = of_name & (pl.len().over(sharing) > 1) & (own_devices | own_processes).over(sharing)
    return named.with_columns(rank=pl.when(~is_shared).then(pl.col("rank"))).drop("folder", "alone")


def _folder() -> pl.Expr:
    return pl.col("path").map_elements(lambda path: str(PurePosixPath(path).parent), return_dtype=pl.String)


def _by_axes(files: pl.DataFrame) -> pl.Series | None:
    """Places on parallel axes, of files that state no rank or repeat one that their names hold."""
    are_repeated = files["rank"].n_unique() < files.height and (files["rank_origin"] == "file_name").all()
    if not (files["rank"].is_null().all() or are_repeated) or not files["communicates"].all() or not _overlap(files):
        return None
    return by_axes(files)


def _by_name(files: pl.DataFrame) -> pl.Series | None:
    """Numbers of names that follow one another, from 0 on; from another one where processes have other numbers."""
    found = numbered(files)
    if len(found) != files.height or not files["communicates"].all() or not _overlap(files):
        return None
    ranks = pl.Series([found[source_id] for source_id in files["source_id"]], dtype=pl.Int32)
    are_in_a_row = max(found.values()) - min(found.values()) == files.height - 1
    are_others = not files["process"].has_nulls() and not ranks.cast(pl.Int64).equals(files["process"])
    if not are_in_a_row or not (min(found.values()) == 0 or are_others):
        return None
    return ranks - 1 if min(found.values()) == 1 and not _is_rank_0_missing(ranks, files) else ranks


def _is_rank_0_missing(numbers: pl.Series, files: pl.DataFrame) -> bool:
    """Whether numbers from 1 on are ranks, as devices or the size of the job say, and no count of files from 1 on."""
    if (files["stated_ranks"] == files.height + 1).any():
        return True
    devices = files["first_device"]
    count = max(devices.to_list(), default=0) + 1 if not devices.has_nulls() else 1
    return count > 1 and (numbers % count).cast(pl.Int64).equals(devices.cast(pl.Int64))


def _by_device(files: pl.DataFrame) -> pl.Series | None:
    """Devices of hosts, where each file used one of its own."""
    devices = files["first_device"]
    if devices.has_nulls() or not devices.equals(files["last_device"]):
        return None
    if files.select("host", "first_device").n_unique() < files.height:
        return None
    if files["host"].n_unique() == 1:
        return devices.cast(pl.Int32) if _overlap(files) else None
    return _host_by_host(files, "first_device")


def _by_process(files: pl.DataFrame) -> pl.Series | None:
    """Processes of hosts by their numbers, where all of them communicate at one time."""
    is_known = not files["process"].has_nulls() and files.select("host", "process").n_unique() == files.height > 1
    if not is_known or not files["communicates"].all() or (files["host"].n_unique() == 1 and not _overlap(files)):
        return None
    return _host_by_host(files, "process")


def _host_by_host(files: pl.DataFrame, column: str) -> pl.Series | None:
    """Places of files in the order of their hosts, and of a number within each."""
    if files["host"].n_unique() > 1 and (files["host"].has_nulls() or not _are_of_one_time(files)):
        return None
    hosts = sorted(files["host"].unique().to_list(), key=lambda name: natural(name or ""))
    places = pl.DataFrame({"host": hosts, "place": range(len(hosts))}, schema_overrides={"host": pl.String})
    order = files.select("host", column).join(places, on="host", nulls_equal=True, maintain_order="left")
    return (order.select(pl.struct("place", column).rank("ordinal")).to_series() - 1).cast(pl.Int32)


def _overlap(files: pl.DataFrame) -> bool:
    """Whether all files of each host hold one moment, and those of all hosts do as far as their clocks tell."""
    if files["raw_first_ns"].has_nulls() or files["raw_last_ns"].has_nulls():
        return False
    shared = files.group_by("host").agg(pl.col("raw_first_ns").max() < pl.col("raw_last_ns").min())
    return bool(shared["raw_first_ns"].all()) and _are_of_one_time(files)


def _are_of_one_time(files: pl.DataFrame) -> bool:
    """Whether all hosts were recorded at one time, as far as their clocks say the time at all."""
    known = files.drop_nulls(["raw_first_ns", "raw_last_ns"])
    by_host = known.group_by("host").agg(pl.col("raw_first_ns").min(), pl.col("raw_last_ns").max())
    if by_host.is_empty() or by_host.select(pl.col("raw_last_ns").max()).item() < thresholds.EARLIEST_EPOCH_NS:
        return True
    return bool(by_host.select(pl.col("raw_first_ns").max() < pl.col("raw_last_ns").min()).item())
