"""What all tests share: where samples lie, and whether golden files are to be written anew."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# What lands is judged by the same examples each time; on a developer's machine every run tries new ones.
settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write reports/*/ anew; say in the commit why they moved"
    )


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real traces that other people recorded; not part of the project."""
    folder = os.environ.get("TRACEFORGE_CORPUS")
    if not folder:
        pytest.skip("TRACEFORGE_CORPUS is not set: no corpus of real traces")
    return Path(folder)
