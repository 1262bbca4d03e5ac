"""Ranks where no file states one. In: files, with the device and the host of each. Out: a rank for each, or none.

Idea: where each file used one device of its own, the devices of a host stand for its ranks, and hosts follow one
another in the natural order of their names, as launchers number them. It is a guess, and is said to be one.
Not handled: files of several hosts that were recorded at different times, which may be different jobs.
"""

import re
from pathlib import PurePosixPath

import polars as pl

from traceforge.thresholds import align as thresholds

_DIGITS = re.compile(r"(\d+)")


def device_ranks(files: pl.DataFrame) -> pl.Series | None:
    """A rank for each file, from hosts and devices; None where these do not tell the files apart.

    Args:
        files: columns rank, host, first_device, last_device, raw_first_ns and raw_last_ns.
    """
    devices = files["first_device"]
    if not files["rank"].is_null().all() or devices.has_nulls() or not devices.equals(files["last_device"]):
        return None
    if files.select("host", "first_device").n_unique() < files.height:
        return None
    if files["host"].n_unique() == 1:
        return devices.cast(pl.Int32)
    if files["host"].has_nulls() or not _are_of_one_time(files):
        return None
    hosts = sorted(files["host"].unique().to_list(), key=_natural)
    places = pl.DataFrame({"host": hosts, "place": range(len(hosts))})
    order = files.select("host", "first_device").join(places, on="host", maintain_order="left")
    return (order.select(pl.struct("place", "first_device").rank("ordinal")).to_series() - 1).cast(pl.Int32)


def without_shared_names(files: pl.DataFrame) -> pl.DataFrame:
    """Files without the rank that the name of their folder (or report) gives to several, each with a device of its own.

    A report of a whole host may be called `rank1` by whoever counts hosts: then its processes are not all rank 1.

    Args:
        files: columns path, rank, rank_origin, first_device and last_device.
    """
    folder = pl.col("path").map_elements(lambda path: str(PurePosixPath(path).parent), return_dtype=pl.String)
    of_name = (pl.col("rank_origin") == "folder_name").fill_null(value=False)
    one_device = (pl.col("first_device") == pl.col("last_device")).fill_null(value=False)
    named = files.with_columns(folder=folder, alone=one_device)
    sharing = ["folder", "rank", "rank_origin"]
    is_shared = (
        of_name
        & (pl.len().over(sharing) > 1)
        & pl.col("alone").all().over(sharing)
        & (pl.col("first_device").n_unique().over(sharing) == pl.len().over(sharing))
    )
    return named.with_columns(rank=pl.when(~is_shared).then(pl.col("rank"))).drop("folder", "alone")


def _are_of_one_time(files: pl.DataFrame) -> bool:
    """Whether all hosts were recorded at one time, as far as their clocks say the time at all."""
    known = files.drop_nulls(["raw_first_ns", "raw_last_ns"])
    by_host = known.group_by("host").agg(pl.col("raw_first_ns").min(), pl.col("raw_last_ns").max())
    if by_host.is_empty() or by_host.select(pl.col("raw_last_ns").max()).item() < thresholds.EARLIEST_EPOCH_NS:
        return True
    return bool(by_host.select(pl.col("raw_first_ns").max() < pl.col("raw_last_ns").min()).item())


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which `node2` precedes `node10`."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name) if part]
