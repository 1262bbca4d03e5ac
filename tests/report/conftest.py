"""Fixtures of the report's tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from traceforge.report import Report, build_report
from traceforge.store.database import Store

from .browser import Page, chromium
from .tables import Job, store_of

HOSTILE = "</script><script>window.PWNED=1</script><img src=x onerror=window.PWNED=1>\"'`{{7*7}}"

_HOSTILE_UPDATES = (
    "UPDATE attribute.verdict SET headline = headline || ?, explanation = ?, next_step = ?",
    "UPDATE attribute.finding SET summary = summary || ?, next_step = ?, subject = ? WHERE finding_id > 0",
    "UPDATE attribute.evidence SET statement = statement || ?",
    "UPDATE meta.issue SET detail = ?, code = ?, first_at = ?",
    "UPDATE meta.source SET kind = ?, content_hash = ?, rank_origin = ?",
    "UPDATE replay.outcome SET policy = policy || ?, reason = ?, parameters = ?",
    "UPDATE forecast.missing_measurement SET item = item || ?, why = ?",
    "UPDATE timeline.collective SET op = ?, dtype = ?",
)


@pytest.fixture(scope="session")
def late_job() -> Iterator[Store]:
    """Four ranks on two hosts; rank 2 is late from iteration 3 on."""
    with store_of(Job()) as store:
        yield store


@pytest.fixture(scope="session")
def late_report(late_job: Store) -> Report:
    """The report on that job."""
    return build_report(late_job, run_id=1, versions={"traceforge": "0.1.0"}, command="traceforge report job42.duckdb")


@contextmanager
def hostile_store() -> Iterator[Store]:
    """A job all of whose names try to break out of the page."""
    job = Job(
        iterations=12,
        run_name=f"run{HOSTILE}",
        host=f"host{HOSTILE}",
        cause=f"cause{HOSTILE}",
        path=f"path{HOSTILE}",
        communicator=f"group{HOSTILE}",
    )
    with store_of(job) as store:
        for statement in _HOSTILE_UPDATES:
            store.execute(statement, [HOSTILE] * statement.count("?"))
        yield store


@pytest.fixture(scope="session")
def hostile_report() -> Report:
    """The report on it."""
    with hostile_store() as store:
        return build_report(store, run_id=1, versions={HOSTILE: HOSTILE}, command=f"traceforge report {HOSTILE}")


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    """One browser for all tests."""
    with chromium() as opened:
        yield opened
