"""What was recorded of a run, in counts. In: a store and a run. Out: `Facts`, the row of `facts.sql`."""

from dataclasses import dataclass
from importlib import resources
from string import Template

from traceforge.store.database import Store


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts; None where nothing says it.

    Attributes:
        timelines, nameless, set_aside: profiler files, those without a rank, those of a rank that another file covers.
        profiler: name of the source that read all timelines; None for several, or none.
        ranks, present, world_size: number of recorded ranks, which ones, and how many the job says it has.
        device_ranks, gloo_ranks: ranks whose file holds device work; ranks that communicate on the host.
        backend: of communication, as the traces state it; several with commas, None where none states it.
        marked_steps, profiler_steps, counted_steps: steps that anything marks, that the profiler marks, that
            annotations mark which hold their number or sizes of a batch.
        judged, warmup, uncommon: iterations that count, that are warm-up, that not all ranks recorded.
        recorded_calls: those whose library and launch let PyTorch record them; no version records the others.
        grouped, sequenced, sized: of these, calls that state their group, their number, their size.
        telemetry_files, telemetry_ranks: files of telemetry, and ranks whose device's clock they show during the trace.
        damage: codes of what was lost or repaired.
    """

    timelines: int
    nameless: int
    set_aside: int
    profiler: str | None
    ranks: int
    world_size: int | None
    present: list[int] | None
    hostless: int
    device_ranks: int
    gloo_ranks: int
    backend: str | None
    shaped: int
    stacked: int
    marked_steps: int
    profiler_steps: int
    counted_steps: int
    iterations: int
    judged: int
    warmup: int
    uncommon: int
    iteration_ns: int | None
    calls: int
    recorded_calls: int
    grouped: int
    sequenced: int
    sized: int
    collectives: int
    matched_share: float | None
    unaligned: int
    residual_ns: int | None
    nccl_logs: int
    nccl_links: int
    nccl_choices: int
    telemetry_files: int
    telemetry_ranks: int
    execution_traces: int
    linked_ranks: int
    lost_events: int
    damage: str | None

    @property
    def on_host(self) -> bool:
        """Whether the job communicates on the host (gloo): devices and NCCL are then not to be expected."""
        return self.gloo_ranks > 0 and self.device_ranks == 0

    @property
    def without_nccl(self) -> bool:
        """Whether the traces say that something else than NCCL (or RCCL, which keeps the name) communicates."""
        return self.backend is not None and "nccl" not in self.backend.lower()


def read_facts(store: Store, run_id: int) -> Facts:
    """The counts of a run."""
    text = (resources.files("traceforge.doctor") / "facts.sql").read_text(encoding="utf-8")
    return Facts(**store.query(Template(text).substitute(run_id=int(run_id))).row(0, named=True))
