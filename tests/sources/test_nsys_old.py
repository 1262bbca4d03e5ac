"""Exports of 2020 and 2021, by the schema in their manual: no column is NULL, and what is missing is 0 or empty."""

from tests.given import add_facts, built, rows_of
from tests.sources.nsys_exports import Export, export, kernel, process, read
from traceforge.store.database import Store

__all__ = ["export"]


def old_range(start: int, end: int, text: str = "", text_id: int = 0, kind: int = 59) -> dict[str, object]:
    on_thread = {"globalTid": process(7) + 7, "endGlobalTid": 0, "textId": text_id, "domainId": 0}
    return {"start": start, "end": end, "eventType": kind, "rangeId": 0, "category": 0, "color": 0, "text": text,
            **on_thread, "uint64Value": 0, "int32Value": 0}  # fmt: skip


def old_call(start: int, end: int, correlation: int = 5) -> dict[str, object]:
    where = {"globalTid": process(7) + 7, "correlationId": correlation}
    return {"start": start, "end": end, **where, "nameId": 3, "returnValue": 0}


def test_ranges_calls_and_kernels_of_an_old_export_are_those_of_a_new_one(export: Export) -> None:
    # given four steps, a registered range without a text of its own, a mark whose end is 0, and no table that says
    # what wrote the file, when, on which host or device
    steps = range(0, 4_000, 1_000)
    path = export(
        META_DATA_EXPORT=[{"none": 0}],
        NVTX_EVENTS=[old_range(at, at + 1_000, f"step {at // 1000}") for at in steps]
        + [old_range(at + 10, at + 20, text_id=4) for at in steps]
        + [old_range(5, 0, "here", kind=34)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[old_call(at + 100, at + 110, at + 1) for at in steps],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(at + 150, at + 900, correlationId=at + 1) for at in steps],
    )

    reading = read(path)

    assert sorted({(e["category"], e["name"], e["phase"]) for e in reading.events}) == [
        ("cpu_op", "ncclAllReduce", "X"),
        ("cuda_runtime", "cudaLaunchKernel", "X"),
        ("kernel", "void gemm<float>(float*)", "X"),
        ("user_annotation", "here", "i"),
        ("user_annotation", "step 0", "X"),
        ("user_annotation", "step 1", "X"),
        ("user_annotation", "step 2", "X"),
        ("user_annotation", "step 3", "X"),
    ]
    assert reading.codes == ["nsys_no_session_start"]
    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "timeline.iteration", "timeline.phase")
        iterations = rows_of(store, "SELECT duration_ns FROM timeline.iteration ORDER BY iteration")
        computed = rows_of(store, "SELECT SUM(duration_ns) FROM timeline.phase WHERE phase = 'compute'")
    assert iterations == [(1_000,)] * 4
    assert computed == [(4 * 750,)]
