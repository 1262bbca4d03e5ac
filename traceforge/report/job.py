"""Ranks, hosts, files, iterations of the job. In: queries on meta.* and timeline.iteration. Out: one `JobOverview`.

Warm-up and partial iterations take no part in any statistics of the report; they are counted and drawn apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from traceforge.errors import UsageError
from traceforge.report.formatting import clean

Rows = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of the job, over all ranks; times in ns on the aligned clock.

    `annotation` names the kind of an inference engine's batch, or what else was taken for the step.
    """

    number: int
    start_ns: int
    duration_ns: int
    is_warmup: bool
    is_partial: bool
    annotation: str | None = None

    @property
    def is_used(self) -> bool:
        """Whether it counts in statistics."""
        return not self.is_warmup and not self.is_partial


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Files of one kind: how many are used, and their size."""

    kind: str
    files: int
    used_files: int
    size_bytes: int
    events: int


@dataclass(frozen=True)
class JobOverview:
    """A run; names are cleaned. `host_of` maps each recorded rank to its host, None where no file says it.

    `has_steps` is False where no trace marks a step: a stretch of the recording then stands for an iteration.
    """

    name: str
    world_size: int | None
    host_of: dict[int, str | None]
    sources: Sequence[SourceCount]
    iterations: Sequence[Iteration]
    has_steps: bool = True

    @property
    def is_one_stretch(self) -> bool:
        """Whether no step is known, and all that was recorded is looked at as one."""
        return len(self.iterations) == 1 and not self.has_steps and not self.used

    @property
    def ranks(self) -> list[int]:
        """Recorded ranks, ascending."""
        return sorted(self.host_of)

    @property
    def hosts(self) -> list[str]:
        """Known hosts in the order of their first rank."""
        return list(dict.fromkeys(host for rank in self.ranks if (host := self.host_of[rank]) is not None))

    @property
    def is_one_host(self) -> bool:
        """Whether all ranks of the job were recorded, as far as it tells, and are of one host."""
        is_whole = self.world_size in (None, len(self.host_of))
        return is_whole and len(set(self.host_of.values())) == 1 and None not in self.host_of.values()

    @property
    def ranks_per_host(self) -> int | None:
        """Number of ranks on every host, where hosts are runs of as many consecutive ranks; else None."""
        hosts = [self.host_of[rank] for rank in self.ranks]
        if not hosts or hosts[0] is None or (size := hosts.count(hosts[0])) == len(hosts):
            return None
        runs = [hosts[first : first + size] for first in range(0, len(hosts), size)]
        alike = all(len(set(run)) == 1 for run in runs) and len(runs) == len(set(hosts))
        return size if alike else None

    def ranks_per_row(self, most_rows: int) -> int:
        """Ranks that share a row of a picture with so many rows: a part of a host, or whole hosts where they allow."""
        shared, on_host = -(-len(self.ranks) // most_rows), self.ranks_per_host
        while on_host and shared > 1 and on_host % shared and shared % on_host:
            shared += 1
        return shared

    @cached_property
    def used(self) -> list[Iteration]:
        """Iterations that count in statistics, in order."""
        return [iteration for iteration in self.iterations if iteration.is_used]

    @cached_property
    def durations_ns(self) -> list[int]:
        """Durations of the used iterations, in order, ns."""
        return [iteration.duration_ns for iteration in self.used]

    @property
    def mean_ns(self) -> float | None:
        """Mean duration of the used iterations, ns."""
        return sum(self.durations_ns) / len(self.durations_ns) if self.durations_ns else None

    @property
    def variation(self) -> float | None:
        """Coefficient of variation of the used iterations (sample standard deviation over mean)."""
        if len(self.durations_ns) < 2 or not self.mean_ns:
            return None
        return float(np.std(self.durations_ns, ddof=1)) / self.mean_ns

    def quantile_ns(self, share: float) -> float | None:
        """A quantile of the used iterations' durations, linearly interpolated, ns."""
        return float(np.quantile(self.durations_ns, share)) if self.durations_ns else None


def read_job(rows: Rows, run_id: int) -> JobOverview:
    """The job of a run.

    Raises:
        UsageError: the database holds no such run.
    """
    runs = rows("run")
    if not runs:
        hint = "list them with `traceforge sql DB 'FROM meta.run'`"
        raise UsageError(f"the database holds no run {run_id}", hint=hint)
    return JobOverview(
        name=clean(runs[0]["run_name"], 120),
        world_size=runs[0]["world_size"],
        host_of={row["rank"]: None if row["host"] is None else clean(row["host"], 80) for row in rows("ranks")},
        sources=[SourceCount(**{**row, "kind": clean(row["kind"], 80)}) for row in rows("sources")],
        iterations=[Iteration(number=row.pop("iteration"), **row) for row in rows("iterations")],
        has_steps=runs[0]["has_steps"],
    )
