"""Where a job cannot be judged, the file that does not fit the others is named."""

from tests.given import US, Trace, built, store_of
from traceforge.attribute.odd_rank import of_odd_ranks


def traces(calls: dict[int, int], *, idle: int | None = None) -> list[Trace]:
    """Ranks with so many all-reduces in each of six steps; one may have no device at all."""
    found = []
    for rank, count in calls.items():
        trace = Trace(rank)
        for i in range(6):
            start = 100 * US * i
            trace.step(i, start, start + 100 * US)
            if rank == idle:
                continue
            trace.kernel(start, start + 30 * US)
            for n in range(count):
                trace.collective(start + (40 + 10 * n) * US, start + (48 + 10 * n) * US)
        found.append(trace)
    return found


def said(ranks: list[Trace], *, has_stages: bool = False, state: str = "irregular") -> str:
    store = built(store_of(*ranks), "align")
    told = {"run_id": 0, "state": state, "has_stages": has_stages}
    return str(of_odd_ranks(store, told, {"explanation": "So it is."}).get("explanation", ""))


def test_a_file_without_device_work_is_named() -> None:
    explanation = said(traces(dict.fromkeys(range(4), 1), idle=3))

    assert explanation == (
        "The file of rank 3 holds no work of a device, unlike those of the others: look there first. So it is."
    )


def test_a_file_with_other_calls_than_most_is_named_with_both_numbers() -> None:
    explanation = said(traces({0: 1, 1: 1, 2: 1, 3: 4}))

    assert explanation.startswith("The file of rank 3 holds 24 calls of communication, those of most others 6: look")


def test_a_file_that_has_fewer_calls_as_its_device_has_times_that_cannot_be_says_so() -> None:
    store = store_of(*traces({0: 1, 1: 1, 2: 1, 3: 0}))
    columns = "run_id, source_id, stage, code, severity, count, lost_events, detail"
    values = "SELECT run_id, source_id, 'source', 'kineto_stray_time', 'warning', 6, 0, '' FROM meta.source"
    store.execute(f"INSERT INTO meta.issue ({columns}) {values}")
    told = {"run_id": 0, "state": "irregular", "has_stages": False}

    row = of_odd_ranks(built(store, "align"), told, {"explanation": "So it is."})

    assert str(row["explanation"]).startswith(
        "The file of rank 3 holds 0 calls of communication at possible times, those of most others 6: look"
    )


def test_where_no_majority_is_alike_or_stages_differ_by_design_no_file_is_odd() -> None:
    assert said(traces({0: 1, 1: 1, 2: 4, 3: 4})) == ""
    assert said(traces({0: 1, 1: 1, 2: 1, 3: 4}), has_stages=True) == ""


def test_a_job_that_was_judged_has_no_odd_file() -> None:
    assert said(traces({0: 1, 1: 1, 2: 1, 3: 4}), state="nothing_significant") == ""
