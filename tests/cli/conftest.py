"""Databases that the tests of several commands ask: read once a session."""

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import ROOT


def _ingested(folder: Path, *scenarios: str) -> Path:
    path = folder / f"{scenarios[0]}.duckdb"
    for scenario in scenarios:
        result = run("ingest", ROOT / "sample_traces" / scenario, "--db", path, "--jobs", 1)
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
    return path


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of a job that nothing is wrong with."""
    return _ingested(tmp_path_factory.mktemp("healthy"), "healthy")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of two runs: compute_straggler and healthy."""
    return _ingested(tmp_path_factory.mktemp("two"), "compute_straggler", "healthy")
