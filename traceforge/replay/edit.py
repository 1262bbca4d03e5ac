"""What-if edits: what if something of the job were different. In: a run. Out: the run with that one thing changed.

An edit is one file in `edits/` that exposes `EDIT`: a pure function from an `EditedJob` and settings to another.
Edits may follow one another. Measured durations stay what they are unless the edit says otherwise; what an edit
assumes stands in its file. An edit for which the run holds too little raises `InsufficientData` with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError, UsageError
from traceforge.registry import discover
from traceforge.replay.coupling import NO_COUPLING, Baseline, Couplings
from traceforge.replay.model import StepModel, Times
from traceforge.replay.places import Places
from traceforge.replay.reference import references
from traceforge.replay.settings import Settings, parse_settings
from traceforge.replay.unslowed import unslowed


class InsufficientData(Exception):  # noqa: N818 - an answer, not an error of anybody's
    """The run does not hold what the edit needs; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class EditedJob:
    """A run while it is edited.

    Attributes:
        samples_share: samples of an iteration, as a share of those of the recorded run.
        couplings: as measured; what they cost is in no reference.
    """

    model: StepModel
    places: Places
    recorded: Baseline
    samples_share: float = 1.0
    couplings: Couplings = NO_COUPLING

    def with_model(self, **changes: object) -> "EditedJob":
        """The job with other arrays in its model."""
        return replace(self, model=replace(self.model, **changes))  # type: ignore[arg-type]

    def without(self, gone: NDArray[np.bool_]) -> "EditedJob":
        """The job without some collectives (shape (I, P, R)): their ranks go on at once, as if they met nobody."""
        group = np.where(gone, -1, self.model.group)
        return self.with_model(group=group, transfer_ns=np.where(gone, 0, self.model.transfer_ns))

    def of_ranks(self, kept: NDArray[np.bool_]) -> "EditedJob":
        """The job with some of its ranks (shape (R,)) only."""
        hosts = tuple(host for host, keeps in zip(self.places.host_of, kept.tolist(), strict=True) if keeps)
        return replace(
            self,
            model=_of_ranks(self.model, kept, {"ranks": 0, "role": 0, "start_ns": 1, "end_ns": 1, "usual": 1}, _MODEL),
            places=replace(_of_ranks(self.places, kept, {}, _PLACES), host_of=hosts),
            recorded=_of_ranks(self.recorded, kept, {"host": 0}, _RECORDED),
        )

    def without_excess(self, ranks: Sequence[int] | None = None, kinds: Sequence[int] | None = None) -> "EditedJob":
        """The job in which work of these ranks and kinds never exceeds the reference of its place; all by default.

        What is held against the reference is what work would take alone; what a collective beside it costs stays.
        """
        model = self.model
        chosen = np.zeros((len(model.ranks), len(model.kinds)), dtype=bool)
        every_rank, every_kind = (range(count) for count in chosen.shape)
        chosen[np.ix_(every_rank if ranks is None else ranks, every_kind if kinds is None else kinds)] = True
        before_arrival, before_wait = model.before_arrival_ns.copy(), model.before_wait_ns.copy()
        alone = unslowed(model, self.recorded, self.couplings)
        of_length = references(alone)
        for i, calls in enumerate(model.calls.tolist()):
            reference, arrivals, waits = of_length[calls], slice(calls + 1), slice(calls)
            _cut(before_arrival[i, arrivals], alone.before_arrival_ns[i, arrivals], reference.before_arrival_ns, chosen)
            _cut(before_wait[i, waits], alone.before_wait_ns[i, waits], reference.before_wait_ns, chosen)
        return self.with_model(before_arrival_ns=before_arrival, before_wait_ns=before_wait)


# Arrays whose third axis are the ranks.
_MODEL = ("group", "leaves_host", "transfer_ns", "awaited", "queued", "behind", "before_arrival_ns", "before_wait_ns")
_PLACES = ("communicator", "op", "size_bytes", "members", "hosts", "sent_elements", "received_elements")
_RECORDED = ("arrival_ns", "begun_ns", "spread_ns", "transfer_ns", "before_arrival_ns")

Holder = TypeVar("Holder", StepModel, Places, Baseline)


def _of_ranks(holder: Holder, kept: NDArray[np.bool_], axes: Mapping[str, int], third: Sequence[str]) -> Holder:
    """The same with some ranks (shape (R,)) only; `axes` are those of the ranks by name of array."""
    arrays: dict[str, Any] = {
        name: np.compress(kept, array, axis=axis)
        for name, axis in {**dict.fromkeys(third, 2), **axes}.items()
        if (array := getattr(holder, name)) is not None
    }
    return replace(holder, **arrays)


def _cut(work_ns: Times, alone_ns: Times, reference_ns: NDArray[np.float64], chosen: NDArray[np.bool_]) -> None:
    """Take out of work (places, R, K) by how much it exceeds, alone, references (places, K) or (places, R, K).

    Args:
        work_ns: changed in place, where it is chosen (R, K).
    """
    limit = np.rint(reference_ns).astype(np.int64)
    limit = limit if limit.ndim > 2 else limit[:, None, :]
    np.subtract(work_ns, np.maximum(alone_ns - limit, 0), out=work_ns, where=chosen)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the job.

    Attributes:
        name: the word used on the command line.
        description: what it changes and what it takes for granted, in one or two sentences.
        defaults: parameters and their default values; a text where a word is expected.
        apply: the changed run.
        usual: settings to try on every run, from the run; replayed when the database is built.
        changes_transfers: whether it takes the time after the last arrival for transfer, which it is only where every
            member was recorded.
        others: settings that the run cannot tell from those chosen; the interval holds what they give.
    """

    name: str
    description: str
    defaults: Settings
    apply: Callable[[EditedJob, Settings], EditedJob]
    usual: Callable[[EditedJob], Sequence[Settings]]
    changes_transfers: bool = False
    others: Callable[[EditedJob, Settings], Sequence[Settings]] = lambda _job, _settings: ()


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


def place_of_rank(job: EditedJob, rank: float) -> int:
    """Index of a global rank in the model.

    Raises:
        UsageError: it is not there.
    """
    at = np.flatnonzero(job.model.ranks == rank)
    if not len(at):
        known = job.model.ranks[:8].tolist()
        more = " …" if len(known) < len(job.model.ranks) else ""
        hint = f"ranks are {', '.join(map(str, known))}{more}"
        raise UsageError(f"there is no rank {rank:g} in the replayed iterations", hint=hint)
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
