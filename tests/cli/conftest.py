"""Databases that the tests of several commands ask."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.processes import job, large_job, slow_job  # noqa: F401  # fixtures


@pytest.fixture(scope="session")
def healthy(sample_database: Callable[..., Path]) -> Path:
    """A database of a job that nothing is wrong with."""
    return sample_database("healthy")


@pytest.fixture(scope="session")
def two_runs(sample_database: Callable[..., Path]) -> Path:
    """A database of two runs: compute_straggler and healthy."""
    return sample_database("compute_straggler", "healthy")
