"""Fixtures of the report's tests."""

from collections.abc import Iterator

import pytest

from traceforge.store.database import Store

from .tables import Job, store_of


@pytest.fixture(scope="session")
def late_job() -> Iterator[Store]:
    """Four ranks on two hosts; rank 2 is late from iteration 3 on."""
    with store_of(Job()) as store:
        yield store
