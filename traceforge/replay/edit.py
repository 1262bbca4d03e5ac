"""What-if edits: what if something of the job were different. In: a run. Out: the run with that one thing changed.

An edit is one file in `edits/` that exposes `EDIT`: a pure function from a `Job` and settings to another `Job`.
Edits may follow one another. Measured durations stay what they are unless the edit says otherwise; what an edit
assumes stands in its file. An edit that the run tells too little for raises `CannotTell` with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError, UsageError
from traceforge.registry import discover
from traceforge.replay.coupling import Baseline
from traceforge.replay.model import StepModel
from traceforge.replay.places import Places
from traceforge.replay.settings import Settings, parse_settings


class CannotTell(Exception):  # noqa: N818 - an answer, not an error of anybody's
    """The run does not hold what the edit needs; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run while it is edited.

    Attributes:
        samples_share: samples of an iteration, as a share of those of the recorded run.
    """

    model: StepModel
    places: Places
    recorded: Baseline
    samples_share: float = 1.0

    def with_model(self, **changes: object) -> "Job":
        """The job with other arrays in its model."""
        return replace(self, model=replace(self.model, **changes))  # type: ignore[arg-type]

    def without(self, gone: NDArray[np.bool_]) -> "Job":
        """The job without some collectives (shape (I, P, R)): their ranks go on at once, as if they met nobody."""
        group = np.where(gone, -1, self.model.group)
        return self.with_model(group=group, transfer_ns=np.where(gone, 0, self.model.transfer_ns))

    def of_ranks(self, kept: NDArray[np.bool_]) -> "Job":
        """The job with some of its ranks (shape (R,)) only."""
        axes = {"ranks": 0, "start_ns": 1, "end_ns": 1, "group": 2, "transfer_ns": 2, "awaited": 2, "queued": 2}
        axes |= {"before_arrival_ns": 2, "before_wait_ns": 2}
        model: dict[str, Any] = {
            name: np.compress(kept, array, axis=axis)
            for name, axis in axes.items()
            if (array := getattr(self.model, name)) is not None
        }
        names = ("communicator", "op", "size_bytes", "members", "hosts")
        places: dict[str, Any] = {name: getattr(self.places, name)[:, :, kept] for name in names}
        hosts = tuple(host for host, keeps in zip(self.places.host_of, kept.tolist(), strict=True) if keeps)
        recorded = Baseline(
            self.recorded.arrival_ns[:, :, kept],
            self.recorded.begun_ns[:, :, kept],
            self.recorded.spread_ns[:, :, kept],
            self.recorded.transfer_ns[:, :, kept],
            self.recorded.before_arrival_ns[:, :, kept],
            None if self.recorded.host is None else self.recorded.host[kept],
            self.recorded.device_kinds,
        )
        return replace(
            self,
            model=replace(self.model, **model),
            places=replace(self.places, host_of=hosts, **places),
            recorded=recorded,
        )


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the job.

    Attributes:
        name: the word used on the command line.
        description: what it changes and what it takes for granted, in one or two sentences.
        defaults: parameters and their default values; a text where a word is expected.
        apply: the changed run.
        usual: settings to try on every run, from the run; replayed when the database is built.
    """

    name: str
    description: str
    defaults: Settings
    apply: Callable[[Job, Settings], Job]
    usual: Callable[[Job], Sequence[Settings]]


@cache
def edits() -> Mapping[str, Edit]:
    """All edits by name.

    Raises:
        PluginError: a file of `edits/` exposes something else.
    """
    found = {}
    for module, plugin in discover("traceforge.replay.edits", "EDIT").items():
        if not isinstance(plugin, Edit):
            raise PluginError("EDIT is not an Edit", where=f"traceforge.replay.edits.{module}")
        found[plugin.name] = plugin
    return MappingProxyType(found)


def parse_edit(text: str) -> tuple[Edit, dict[str, float | str]]:
    """An edit and its settings from text such as `fix_rank:rank=2`.

    Raises:
        UsageError: there is no such edit or parameter, or a value is no number where one is expected.
    """
    name, settings = parse_settings(text, "edit", "edits", {name: edit.defaults for name, edit in edits().items()})
    return edits()[name], settings


def place_of_rank(job: Job, rank: float) -> int:
    """Index of a global rank in the model.

    Raises:
        UsageError: it is not there.
    """
    at = np.flatnonzero(job.model.ranks == int(rank))
    if not len(at):
        known = ", ".join(map(str, job.model.ranks[:8].tolist()))
        raise UsageError(f"there is no rank {rank:g} in the replayed iterations", hint=f"ranks are {known} …")
    return int(at[0])


def factor_of(settings: Settings) -> float:
    """What durations are multiplied with.

    Raises:
        UsageError: it is below 0, so that work would end before it began.
    """
    factor = float(settings["factor"])
    if factor < 0:
        raise UsageError(f"`factor={factor:g}` must not be negative", hint="0.5 takes half the time, 0 none")
    return factor
