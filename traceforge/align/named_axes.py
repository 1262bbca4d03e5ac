"""Ranks of files whose names hold a place on each parallel axis. In: files with path. Out: a rank, or place, each.

SGLang writes `1753000000.1-TP-1-DP-0-PP-0-DECODE.trace.json.gz`, vLLM `dp0_pp0_tp1_dcp0_ep1_rank1.1767.pt.trace.json`.
Idea: engines count tensor-parallel ranks first, then context, pipeline and data parallel ones. Axes that follow from
those before, such as DP where each TP has its own number, count no more. Places must fill a grid, as ranks of one job
do.
Not handled: several pipeline stages of several replicas outside vLLM, whose trainers count in either order.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import polars as pl

_AXIS = re.compile(r"(?:^|[^a-zA-Z])(tp|pcp|cp|pp|dp)[-_]?(\d{1,5})(?=[^0-9]|$)", re.IGNORECASE)
_INNER_FIRST = ("tp", "cp", "pcp", "pp", "dp")
_OF_VLLM = re.compile(r"dp\d+_pp\d+_tp\d+_", re.IGNORECASE)


def places(files: pl.DataFrame) -> pl.Series | None:
    """A number for each place on the axes that names hold, alike for files of one place; None where one holds none.

    Args:
        files: column path.
    """
    held = [tuple(sorted(own.items())) for own in _axes(files)]
    number = {place: n for n, place in enumerate(sorted(set(held)))}
    return pl.Series([number[place] for place in held], dtype=pl.Int32) if held else None


def by_axes(files: pl.DataFrame) -> pl.Series | None:
    """A rank for each file; None where names hold no place of its own for each, or places fill no grid.

    Args:
        files: column path.
    """
    if not (axes := _axes(files)):
        return None
    used: list[str] = []
    for axis in _INNER_FIRST:
        if axis in axes[0] and len({tuple(own[one] for one in used) for own in axes}) < len(axes):
            used.append(axis)
    sizes = {axis: 1 + max(own[axis] for own in axes) for axis in used}
    varying = [axis for axis in used if sizes[axis] > 1]
    if {"pp", "dp"} <= set(varying) and not all(_OF_VLLM.search(name) for name in _names(files)):
        return None
    ranks = [_rank(own, varying, sizes) for own in axes]
    return pl.Series(ranks, dtype=pl.Int32) if sorted(ranks) == list(range(len(axes))) else None


def replica(name: str) -> int | None:
    """The data-parallel place that the name of a file holds; None where it holds none."""
    return next((int(place) for axis, place in _AXIS.findall(name) if axis.lower() == "dp"), None)


def _rank(place: dict[str, int], axes: Sequence[str], sizes: dict[str, int]) -> int:
    rank, stride = 0, 1
    for axis in axes:
        rank += place[axis] * stride
        stride *= sizes[axis]
    return rank


def _axes(files: pl.DataFrame) -> list[dict[str, int]]:
    """Place by axis of each file; none where names hold different axes, or none."""
    found = [{axis.lower(): int(place) for axis, place in _AXIS.findall(name)} for name in _names(files)]
    return found if found and found[0] and len({frozenset(own) for own in found}) == 1 else []


def _names(files: pl.DataFrame) -> list[str]:
    return [PurePosixPath(path).name for path in files["path"]]
